//! 32-bit x86: its registers, and how a rule leads to the caller. Register numbers are those of the System V ABI's
//! Intel386 supplement (table 2.14 of version 1.1), which are those of `.eh_frame` on Linux: `esp` is 4 and `ebp` 5.
//!
//! What its instructions and rules are like is x86-64's matter (`crate::x86_64`), with words of four bytes.

mod call;
mod general;
mod registers;
mod signal;
#[cfg(test)]
mod tests;

use object::LittleEndian as LE;
use object::elf::FileHeader32;

use crate::arch::{Call, Machine};
use crate::epilogue::{Epilogue, Next};
use crate::prologue::Prologue;
use crate::table::{RegisterNumber, RuleView, Saved, Traits};
use crate::word::Word;
use crate::x86_64::{call as shared_call, epilogue, prologue, quick, rule};
use crate::{Architecture, StackMemory};

pub use registers::Registers;
use registers::{BP, REGISTER_COUNT, RETURN_ADDRESS, SP, Values};

/// The architecture x86 in 32-bit protected mode (also called i386 or IA-32), as Linux runs it on x86-64, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct X86;

impl Architecture for X86 {}

impl Machine for X86 {
    const NAME: &str = "x86";
    const ELF_MACHINE: u16 = object::elf::EM_386.0;
    const WORD: Word = Word::Four;
    const REGISTER_COUNT: usize = REGISTER_COUNT;
    const IP: RegisterNumber = RETURN_ADDRESS;
    const SP: RegisterNumber = SP;
    const FOLLOWED: &[RegisterNumber] = &[BP, SP];
    const RETURNS_BY_REGISTER: bool = false;
    const MISSES_PUSHES: bool = true;
    /// `ret $n`: those that return a structure, which the caller made room for.
    const MAY_DROP_ARGUMENTS: bool = true;
    const KEEPS_FRAME_POINTER: bool = false;
    /// Arguments are on the stack: `__libc_start_main` has seven.
    const OUTERMOST_FRAME: u64 = 8 * 4 + 16;
    const NOTHING_SAVED: Self::Saved = [Saved::NONE; REGISTER_COUNT];

    type Elf = FileHeader32<LE>;
    type Values = Values;
    type Saved = [Saved; REGISTER_COUNT];
    type Core = quick::Core<Self>;
    type Quick = rule::Quick;

    #[inline]
    fn core(values: &Values) -> quick::Core<Self> {
        registers::core(values)
    }

    fn set_core(values: &mut Values, core: quick::Core<Self>) {
        registers::set_core(values, core);
    }

    fn quick(rule: &RuleView<'_>) -> Option<rule::Quick> {
        rule::Quick::of::<Self>(rule, BP)
    }

    fn return_to(caller: &mut Values, found: Option<u64>, _traits: Traits) -> Option<()> {
        general::return_to(caller, found)
    }

    fn toggles_signature(_opcode: u8) -> bool {
        false
    }

    const SIGNAL_RETURN: usize = signal::SIGNAL_RETURN;

    fn is_signal_return(code: &[u8]) -> bool {
        code.first_chunk().is_some_and(|code| signal::is_signal_return(*code))
    }

    fn interrupted<M: StackMemory>(at_return: &Values, stack: &M) -> Option<Values> {
        signal::interrupted(at_return, stack)
    }

    /// `int $0x80`
    const SYSTEM_CALL: &[u8] = b"\xcd\x80";

    /// `ret`
    const BEFORE_ROOT: Option<&[u8]> = Some(b"\xc3");

    const LONGEST_CALL: usize = shared_call::LONGEST_CALL;
    const LONGEST_STUB: usize = call::LONGEST_STUB;

    fn call_at_end(code: &[u8]) -> Option<Call> {
        shared_call::call_at_end(*code.last_chunk()?)
    }

    fn switches_stack(code: &[u8]) -> bool {
        shared_call::switches_stack(code, Self::WORD)
    }

    fn is_stub(code: &[u8]) -> bool {
        code.first_chunk().is_some_and(|code| call::is_stub(*code))
    }

    fn prologue(code: &[u8]) -> Prologue {
        prologue::prologue(code, Self::WORD)
    }

    const FUNCTION_ALIGNMENT: usize = 16;

    fn begins_function(before: &[u8], code: &[u8]) -> bool {
        prologue::begins_function(before, code, Self::WORD)
    }

    const TOLD_BY: usize = 0;

    fn epilogue(
        _before: &[u8],
        code: &[u8],
        epilogue: &mut Epilogue,
        fork: impl FnMut(i64, Epilogue),
    ) -> Next {
        epilogue::follow(code, epilogue, fork, Self::WORD)
    }

    fn tail_jump(code: &[u8]) -> Option<i64> {
        prologue::tail_jump(code, Self::WORD)
    }
}
