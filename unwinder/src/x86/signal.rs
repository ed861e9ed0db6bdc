//! The code that a signal handler returns to, known by its instructions, and the frame that the kernel pushed, read as
//! `struct sigframe_ia32` and `struct rt_sigframe_ia32` of `arch/x86/include/asm/sigframe.h` lay it out; a handler with
//! `SA_SIGINFO` has the latter. The vDSO's code (`arch/x86/entry/vdso/vdso32/sigreturn.S`) has call frame information, that
//! of glibc and of musl for kernels without a vDSO has none and is the same.
//!
//! ```text
//!  sigframe_ia32     | signal | sigcontext_32 ...
//!  rt_sigframe_ia32  | signal | pinfo | puc | siginfo (128 bytes) | flags, link, stack (20 bytes) | sigcontext_32 ...
//!                    ^ the stack pointer when the handler has returned
//! ```

use super::registers::Values;
use super::{BP, RETURN_ADDRESS, SP};
use crate::StackMemory;
use crate::word::Word;

/// `popl %eax; movl $__NR_sigreturn, %eax; int $0x80`
const CODE: [u8; SIGNAL_RETURN] = [0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80];
/// `movl $__NR_rt_sigreturn, %eax; int $0x80`
const RT_CODE: [u8; 7] = [0xb8, 0xad, 0, 0, 0, 0xcd, 0x80];
pub(super) const SIGNAL_RETURN: usize = 8;

const SIGCONTEXT: u64 = 4;
const RT_SIGCONTEXT: u64 = 3 * 4 + 128 + 20;
/// gs, fs, es and ds.
const FIRST_REGISTER: u64 = 4 * 4;
/// By DWARF number: edi, esi, ebp, esp, ebx, edx, ecx, eax.
const REGISTERS: [u8; 8] = [7, 6, BP, SP, 3, 2, 1, 0];
/// Behind those, the trap's number and the error's.
const IP: u64 = FIRST_REGISTER + (8 + 2) * 4;

pub(super) fn is_signal_return(code: [u8; SIGNAL_RETURN]) -> bool {
    code == CODE || code.starts_with(&RT_CODE)
}

/// The registers that the signal interrupted. Which of the frames it is tells its second word: in the longer one, that points
/// into the frame.
pub(super) fn interrupted<M: StackMemory>(at_return: &Values, stack: &M) -> Option<Values> {
    let frame = at_return[usize::from(SP)];
    let word = |distance: u64| Word::Four.read(stack, Word::Four.wrap(frame.wrapping_add(distance))).ok();
    let is_rt = word(4)? == Word::Four.wrap(frame.wrapping_add(3 * 4));
    let context = if is_rt { RT_SIGCONTEXT } else { SIGCONTEXT };
    let mut interrupted = *at_return;
    for (place, register) in (0..).zip(REGISTERS) {
        interrupted[usize::from(register)] = word(context + FIRST_REGISTER + place * 4)?;
    }
    interrupted[usize::from(RETURN_ADDRESS)] = word(context + IP)?;
    Some(interrupted)
}
