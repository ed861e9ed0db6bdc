//! The code that a signal handler returns to, where it has no call frame information, as musl's has none. It is known by
//! its instructions (those that GDB knows it by, too), and the frame that the kernel pushed is read as `struct rt_sigframe`
//! of `arch/x86/include/asm/sigframe.h` lays it out: the return address, which is popped by then, and `ucontext_t`.

use super::registers::Values;
use super::{BP, RETURN_ADDRESS, SP};
use crate::StackMemory;

/// `mov $__NR_rt_sigreturn, %rax; syscall`, and the shorter `mov` to `%eax`
const LONG: [u8; SIGNAL_RETURN] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
const SHORT: [u8; 7] = [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05];
pub(super) const SIGNAL_RETURN: usize = 9;

/// `uc_flags`, `uc_link` and `uc_stack`.
const SIGCONTEXT_IN_UCONTEXT: u64 = 8 + 8 + 24;
/// By DWARF number: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
const SIGCONTEXT: [u8; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, BP, 3, 1, 0, 2, SP, RETURN_ADDRESS];

pub(super) fn is_signal_return(code: [u8; SIGNAL_RETURN]) -> bool {
    code == LONG || code.starts_with(&SHORT)
}

/// The registers that the signal interrupted.
pub(super) fn interrupted<M: StackMemory>(at_return: &Values, stack: &M) -> Option<Values> {
    let mut interrupted = *at_return;
    let mut address = at_return[usize::from(SP)].checked_add(SIGCONTEXT_IN_UCONTEXT)?;
    for register in SIGCONTEXT {
        interrupted[usize::from(register)] = stack.read_u64(address).ok()?;
        address = address.checked_add(8)?;
    }
    Some(interrupted)
}
