//! From the kernel's `struct pt_regs`, or `struct user_pt_regs` of aarch64, to what the unwinder wants.

use collector_common::wire::{SampleFlags, SampleHeader};
use unwinder::aarch64::{self, ReturnAddressMask};
use unwinder::{StopReason, x86, x86_64};

/// User registers of a sample. The kernel's order on `x86_64`
/// (`arch/x86/include/asm/ptrace.h`): r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig\_ax ip cs flags sp
/// ss. DWARF's: ax dx cx bx si di bp sp r8 to r15.
pub(super) fn user_registers(header: &SampleHeader) -> x86_64::Registers {
    let r = &header.registers;
    let [ax, dx, cx, bx, si, di, bp, sp] = [r[10], r[12], r[11], r[5], r[13], r[14], r[4], r[19]];
    let gprs = [ax, dx, cx, bx, si, di, bp, sp, r[9], r[8], r[7], r[6], r[3], r[2], r[1], r[0]];
    x86_64::Registers::new(r[16], gprs)
}

/// The same of a thread that runs 32-bit code, which has the lower halves of half of them. DWARF's order is another there:
/// ax cx dx bx sp bp si di.
pub(super) fn compat_registers(header: &SampleHeader) -> x86::Registers {
    let r = header.registers.map(|register| register as u32);
    x86::Registers::new(r[16], [r[10], r[11], r[12], r[5], r[19], r[4], r[13], r[14]])
}

/// The same of a thread of aarch64: x0 to x30, sp, pc (`arch/arm64/include/uapi/asm/ptrace.h`). Return addresses may be
/// signed; no code lies beyond `highest`.
pub(super) fn aarch64_registers(header: &SampleHeader, highest: u64) -> aarch64::Registers {
    let r = &header.registers;
    let general = std::array::from_fn(|register| r[register]);
    let mask = ReturnAddressMask::of_highest_address(highest.max(instruction_pointer(header)));
    aarch64::Registers::new(instruction_pointer(header), stack_pointer(header), general, mask)
}

fn is_of_aarch64(header: &SampleHeader) -> bool {
    header.flags().has(SampleFlags::AARCH64)
}

/// Where the copy of the stack begins: at the user's stack pointer.
pub(super) fn stack_pointer(header: &SampleHeader) -> u64 {
    header.registers[if is_of_aarch64(header) { 31 } else { 19 }]
}

/// The user's instruction pointer.
pub(super) fn instruction_pointer(header: &SampleHeader) -> u64 {
    header.registers[if is_of_aarch64(header) { 32 } else { 16 }]
}

/// Where the result of a system call is on `x86_64`.
pub(super) fn result_of_call(header: &SampleHeader) -> u64 {
    header.registers[10]
}

/// Whether the thread is executing a program: `orig_ax` holds the number of the system call it is in
/// (`arch/x86/entry/syscalls/syscall_64.tbl`, `syscall_32.tbl`). Where the new program's words have another size, the
/// kernel puts its `execve` there while the other registers are still the old program's
/// (`arch/x86/kernel/process_64.c`); it is another call's number in the old one, which has its code mapped.
/// Of aarch64, nothing tells.
pub(super) fn is_in_exec(header: &SampleHeader, reason: StopReason) -> bool {
    const EXECVE: [u64; 2] = [59, 322];
    const COMPAT_EXECVE: [u64; 2] = [11, 358];
    let is_compat = header.flags().has(SampleFlags::COMPAT);
    let (own, other) = if is_compat { (COMPAT_EXECVE, EXECVE) } else { (EXECVE, COMPAT_EXECVE) };
    let call = header.registers[15];
    header.flags().has(SampleFlags::IN_KERNEL)
        && !is_of_aarch64(header)
        && (own.contains(&call) || call == other[0] && reason == StopReason::NoMapping)
}
