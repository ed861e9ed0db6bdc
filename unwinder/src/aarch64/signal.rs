//! The code that a signal handler returns to. Linux has no call frame information for it (`arch/arm64/kernel/vdso/
//! sigreturn.S` says why), so its two instructions are what it is known by, and the frame that the kernel pushed is read
//! as `arch/arm64/kernel/signal.c` lays it out: `siginfo_t`, then `ucontext_t`, whose `struct sigcontext` begins with the
//! fault's address, x0 to x30, the stack pointer and the program counter.

use super::registers::Values;
use super::{FP, LR, SP};
use crate::StackMemory;
use crate::table::RegisterNumber;

/// `mov x8, #__NR_rt_sigreturn; svc #0`
const CODE: [u8; SIGNAL_RETURN] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
pub(super) const SIGNAL_RETURN: usize = 8;

const SIGINFO_SIZE: u64 = 128;
/// `uc_flags`, `uc_link`, `uc_stack`, the signal mask with its reserve, and the alignment to 16.
const SIGCONTEXT_IN_UCONTEXT: u64 = 8 + 8 + 24 + 128 + 8;
const FIRST_REGISTER: u64 = SIGINFO_SIZE + SIGCONTEXT_IN_UCONTEXT + 8;

pub(super) fn is_signal_return(code: [u8; SIGNAL_RETURN]) -> bool {
    code == CODE
}

/// The registers that the signal interrupted.
pub(super) fn interrupted<M: StackMemory>(at_return: &Values, stack: &M) -> Option<Values> {
    let sp = if at_return.exact_sp { at_return.get(SP) } else { find_frame(at_return, stack)? };
    let mut interrupted = at_return.with_exact_sp();
    let mut address = sp.checked_add(FIRST_REGISTER)?;
    for value in interrupted.as_mut() {
        *value = stack.read_u64(address).ok()?;
        address = address.checked_add(8)?;
    }
    Some(interrupted)
}

/// Where the kernel's frame begins, if the handler was left by its frame record: `x29` then points to another record, in
/// which the kernel put the interrupted `x29` and `x30`. The frame is the one that has these two in their places.
fn find_frame<M: StackMemory>(at_return: &Values, stack: &M) -> Option<u64> {
    const ALIGNMENT: u64 = 16;
    /// The handler's own frame is hardly larger.
    const TRIED: u64 = 512;
    let record = [at_return.get(FP), at_return.get(FP).checked_add(8)?];
    let [fp, lr] = record.map(|address| stack.read_u64(address));
    let (fp, lr) = (fp.ok()?, lr.ok()?);
    let holds = |frame: u64, register: RegisterNumber, value: u64| {
        let slot = frame.checked_add(FIRST_REGISTER)?.checked_add(u64::from(register) * 8)?;
        (stack.read_u64(slot).ok()? == value).then_some(())
    };
    let least = at_return.get(SP).checked_next_multiple_of(ALIGNMENT)?;
    (0..TRIED).find_map(|step| {
        let frame = least.checked_add(step * ALIGNMENT)?;
        holds(frame, FP, fp).and(holds(frame, LR, lr)).map(|()| frame)
    })
}
