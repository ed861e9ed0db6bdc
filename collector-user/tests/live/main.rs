//! Live tests: real BPF programs record real processes, and what comes out is compared with what is known from
//! elsewhere: the sources of the programs, the kernel's own counters, `perf` and `go tool pprof`.
//!
//! They need root, a kernel with BTF and the compilers of the test programs. Where one is missing a test writes
//! `SKIPPED <test>: <reason>` to stderr, and fails if `COLLECTOR_LIVE=require` is set; where the kernel was built without what it
//! tests, `NOT ON THIS KERNEL <test>: <reason>`.
//!
//! - `prerequisites`, `programs`, `recording`: what a test needs, the programs under record, and a recording of one.
//! - `chains`: a program's real call chains, and how far a recording agrees with them.
//! - `languages`, `compat`, `lives`, `damaged`: stacks of programs by how they are built, of 32-bit programs, by how they
//!   live, and of spoilt files.
//! - `jit`: names of code that was made at run time.
//! - `memory`: programs whose memory changes without being told of.
//! - `scenarios`: times that threads run, are blocked and wait for a CPU; `interrupts`: those that interrupts ended.
//! - `locks`, `io_monitoring`: times that threads wait for locks, and that devices take for requests.
//! - `transfers`: reads, writes and calls on sockets, with their paths and addresses.
//! - `page_faults`: pages that were met absent.
//! - `processes`: who starts what, and how it ends.
//! - `syscalls`: system calls, counted and timed; `counted`: these, and processes, in JSON lines.
//! - `kinds`: which kind of samples is shown where there is room for one.
//! - `events`: tracepoints and counters, with their fields; `specifications`: how they are written.
//! - `raw_events`: what their fields are in JSON lines.
//! - `kernel_filters`: filters of tracepoints that the kernel applies.
//! - `bpf_maps`: what another program writes into maps.
//! - `user_events`: tracepoints that programs register.
//! - `convert`: recordings that are kept, and unwound later; `captured`: what is in them.
//! - `aarch64`, `big_endian`, `put_off`: recordings of other machines and kernels, which are put together in `put_together`.
//! - `otlp`: recordings that go to a receiver, by `http_receiver` or `grpc_receiver`.
//! - `debuginfod`: names from servers of debug files.
//! - `images`: code of PE images; `wine`: programs for Windows, by `windows`.
//! - `examples`: the programs in `examples/`.
//! - `probes`: functions and markers of programs as events, with their arguments; `kernel_probes`: the kernel's own functions;
//!   `probe_values`: what both see.
//! - `universal`: from settings to files, with hooks; `sources`: sources of an embedding program.
//! - `trapped_returns`: stacks through return probes.
//! - `perf_events`: the recorder without programs in the kernel, and without rights.
//! - `clocks`: times that closures are told.
//! - `targets`, `followed`, `command_line`, `surroundings`, `ledger`, `peers`: the recorder itself.

#![cfg(all(target_os = "linux", feature = "ebpf"))]
#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod aarch64;
mod big_endian;
mod bpf_maps;
mod captured;
mod chains;
mod clocks;
mod command_line;
mod compat;
mod convert;
mod counted;
mod cpus;
mod damaged;
mod debuginfod;
mod doctor;
mod events;
mod examples;
mod followed;
#[cfg(feature = "otlp-grpc")]
#[path = "../otlp/grpc_receiver.rs"]
mod grpc_receiver;
#[cfg(feature = "otlp")]
#[expect(dead_code, reason = "what only failing receivers do is tested without recordings")]
#[path = "../otlp/http_receiver.rs"]
mod http_receiver;
mod images;
mod interrupts;
mod io_monitoring;
mod jit;
mod kernel_code;
mod kernel_filters;
mod kernel_locks;
mod kernel_probes;
mod kinds;
mod languages;
mod ledger;
mod lives;
mod locks;
mod memory;
mod native_memory;
mod native_memory_failures;
mod native_memory_left;
#[cfg(feature = "otlp")]
mod otlp;
mod page_faults;
mod peers;
mod perf_counters;
mod perf_events;
mod prerequisites;
mod probe_values;
mod probes;
mod process_facts;
mod processes;
mod programs;
mod put_off;
mod put_together;
mod raw_events;
mod recording;
mod scenarios;
mod sources;
mod specifications;
mod surroundings;
mod syscalls;
mod targets;
mod tracepoints;
mod transfers;
mod trapped_returns;
mod universal;
mod user_events;
#[path = "../wine/mod.rs"]
mod windows;
mod wine;
