//! Threads that have just been made, with nothing on their stacks yet.
//!
//! glibc has no rules for the instructions between the system call and the new thread's first call (`clone.S` and
//! `clone3.S` in `sysdeps/unix/sysv/linux/x86_64`): there is nothing to unwind, the frame is the outermost one.

use collector_common::ids::Avma;
use collector_common::track::MappedModule;
use collector_common::wire::{SampleFlags, SampleHeader};
use unwinder::StopReason;

use super::registers::{instruction_pointer, result_of_call};
use crate::modules::Modules;
use crate::this_machine::read_exact_at;

/// `mov $NUMBER, %eax; syscall; test %rax, %rax`, as those functions have it, with the numbers of `clone` and `clone3` in
/// `arch/x86/entry/syscalls/syscall_64.tbl`. `_Fork`, whose child has the callers of its parent, goes on with a `cmp`.
const MAKES_A_THREAD: [[u8; 10]; 2] =
    [[0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0], [0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0]];

/// Bytes of it behind the system call: the test.
const TEST: usize = 3;

/// Bytes of the jumps behind the test: `jl`, `je`.
const JUMPS: usize = 4;

/// Whether a stack without a caller that ended so may be that of a thread that has just been made. The page with the
/// stack pointer may be absent: never touched, or on its way to another place in memory.
pub(super) fn may_be_at_birth(end: StopReason) -> bool {
    matches!(end, StopReason::NoRule | StopReason::Unreadable)
}

/// Whether the thread is just behind the system call that made it, in the file of `mapping`, with the result that the new
/// one of two gets. The code is the file's: the process may execute another program meanwhile.
pub(super) fn is_at_birth(header: &SampleHeader, mapping: &MappedModule, modules: &Modules) -> bool {
    const BEFORE: usize = MAKES_A_THREAD[0].len() + JUMPS;
    let mut code = [0; BEFORE + TEST];
    let first = instruction_pointer(header).wrapping_sub(BEFORE as u64);
    if result_of_call(header) != 0
        || header.flags().has(SampleFlags::COMPAT)
        || header.flags().has(SampleFlags::AARCH64)
        || !mapping.contains(Avma(first))
    {
        return false;
    }
    let at = mapping.file_offset.0.wrapping_add(first - mapping.start.0);
    let read = modules.file(mapping.module).map(|file| read_exact_at(file, &mut code, at));
    let mut calls = code.array_windows().map(|window| MAKES_A_THREAD.contains(window));
    matches!(read, Some(Ok(()))) && calls.any(|makes| makes)
}
