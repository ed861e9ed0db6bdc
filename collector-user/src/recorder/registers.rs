//! From the kernel's `struct pt_regs` to what the unwinder wants.

use collector_common::wire::{SampleFlags, SampleHeader};
use unwinder::x86_64::Registers;

/// User registers of a sample. The kernel's order on `x86_64`
/// (`arch/x86/include/asm/ptrace.h`): r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig\_ax ip cs flags sp
/// ss. DWARF's: ax dx cx bx si di bp sp r8 to r15.
pub(super) fn user_registers(header: &SampleHeader) -> Registers {
    let r = &header.registers;
    let [ax, dx, cx, bx, si, di, bp, sp] = [r[10], r[12], r[11], r[5], r[13], r[14], r[4], r[19]];
    let gprs = [ax, dx, cx, bx, si, di, bp, sp, r[9], r[8], r[7], r[6], r[3], r[2], r[1], r[0]];
    Registers::new(r[16], gprs)
}

/// Whether the thread is executing a program: `orig_ax` holds the number of the system call it is in
/// (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub(super) fn is_in_exec(header: &SampleHeader) -> bool {
    const EXECVE: u64 = 59;
    const EXECVEAT: u64 = 322;
    header.flags().has(SampleFlags::IN_KERNEL) && matches!(header.registers[15], EXECVE | EXECVEAT)
}
