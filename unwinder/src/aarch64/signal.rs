//! The code that a signal handler returns to. Linux has no call frame information for it (`arch/arm64/kernel/vdso/
//! sigreturn.S` says why), so its two instructions are what it is known by, and the frame that the kernel pushed is read
//! as `arch/arm64/kernel/signal.c` lays it out: `siginfo_t`, then `ucontext_t`, whose `struct sigcontext` begins with the
//! fault's address, x0 to x30, the stack pointer and the program counter.

use super::registers::Values;
use crate::StackMemory;

/// `mov x8, #__NR_rt_sigreturn; svc #0`
const CODE: [u8; SIGNAL_RETURN] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
pub(super) const SIGNAL_RETURN: usize = 8;

const SIGINFO_SIZE: u64 = 128;
/// `uc_flags`, `uc_link`, `uc_stack`, the signal mask with its reserve, and the alignment to 16.
const SIGCONTEXT_IN_UCONTEXT: u64 = 8 + 8 + 24 + 128 + 8;
const FIRST_REGISTER: u64 = SIGINFO_SIZE + SIGCONTEXT_IN_UCONTEXT + 8;

/// The registers that the signal interrupted.
pub(super) fn interrupted<M: StackMemory>(
    code: [u8; SIGNAL_RETURN],
    handler: &Values,
    stack: &M,
) -> Option<Values> {
    if code != CODE {
        return None;
    }
    let mut interrupted = *handler;
    let mut address = handler.get(super::SP).checked_add(FIRST_REGISTER)?;
    for value in interrupted.as_mut() {
        *value = stack.read_u64(address).ok()?;
        address = address.checked_add(8)?;
    }
    Some(interrupted)
}
