//! Threads that have just been made, with nothing on their stacks yet.
//!
//! glibc has no rules for the instructions between the system call and the new thread's first call (`clone.S` and
//! `clone3.S` in `sysdeps/unix/sysv/linux/x86_64`): there is nothing to unwind, the frame is the outermost one.

use collector_common::ids::Avma;
use collector_common::track::MappedModule;
use collector_common::wire::{SampleFlags, SampleHeader};

use super::registers::{instruction_pointer, result_of_call};
use crate::modules::Modules;
use crate::this_machine::read_exact_at;

/// `mov $NUMBER, %eax; syscall`, as those functions have it, with the numbers of `clone` and `clone3` in
/// `arch/x86/entry/syscalls/syscall_64.tbl`.
const MAKES_A_THREAD: [[u8; 7]; 2] = [[0xb8, 56, 0, 0, 0, 0x0f, 0x05], [0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05]];

/// Bytes from there to the last of the instructions that test the result and jump: `test`, `jl`, `je`.
const TEST_OF_RESULT: usize = 9;

/// Whether the thread is just behind the system call that made it, in the file of `mapping`, with the result that the new
/// one of two gets. The code is the file's: the process may execute another program meanwhile.
pub(super) fn is_at_birth(header: &SampleHeader, mapping: &MappedModule, modules: &Modules) -> bool {
    let mut code = [0; MAKES_A_THREAD[0].len() + TEST_OF_RESULT];
    let before = instruction_pointer(header).wrapping_sub(code.len() as u64);
    if result_of_call(header) != 0
        || header.flags().has(SampleFlags::COMPAT)
        || header.flags().has(SampleFlags::AARCH64)
        || !mapping.contains(Avma(before))
    {
        return false;
    }
    let at = mapping.file_offset.0.wrapping_add(before - mapping.start.0);
    let read = modules.file(mapping.module).map(|file| read_exact_at(file, &mut code, at));
    let mut calls = code.array_windows().map(|window| MAKES_A_THREAD.contains(window));
    matches!(read, Some(Ok(()))) && calls.any(|makes| makes)
}
