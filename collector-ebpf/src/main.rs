//! The eBPF programs.
//!
//! - [`sample`]: the sampling programs, one per kernel level; attached to a `cpu-clock` event per CPU.
//! - [`switch`]: programs at the scheduler's tracepoints: time that threads do not run.
//! - [`allocation`]: programs at the functions of memory allocators: blocks of memory, until they are freed.
//! - [`block`]: programs at the block layer's tracepoints: how long requests take.
//! - [`fault`]: programs at the counters of page faults.
//! - [`function`]: programs at many functions of the kernel at once.
//! - [`probe`]: a program that says whose hits of probes perf records.
//! - [`growth`]: a program at the exit of system calls that give memory.
//! - [`kernel_lock`]: programs at the tracepoints of locks of the kernel that are waited for.
//! - [`lives`]: programs at the tracepoints of processes: who makes whom, what they execute, how they end.
//! - [`calls`]: programs at the entry and exit of system calls.
//! - [`transfers`]: programs at the entry and exit of those that transfer data, with the file ([`files`]) or the address
//!   ([`sockets`]); [`tcp`]: programs at the tracepoints of TCP connections.
//! - [`follow`]: which processes are followed: children come in, and what is gone goes out.
//!
//! What user space and these programs agree on is `collector_common::wire`; settings come in as one read-only
//! global ([`maps::CONFIG`]).
#![no_std]
#![no_main]

mod allocation;
mod block;
mod calls;
mod chosen;
mod current;
mod fault;
mod files;
mod filter;
mod follow;
mod function;
mod futex;
mod growth;
mod interrupt;
mod kernel;
mod kernel_lock;
mod lives;
mod maps;
mod outer_lines;
mod owner;
mod probe;
mod record;
mod registers;
mod returns;
mod sample;
mod sockets;
mod stack;
mod switch;
mod tcp;
mod times;
mod tracepoint;
mod transfers;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Helpers such as `bpf_probe_read_kernel` are given to GPL-compatible programs alone.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
