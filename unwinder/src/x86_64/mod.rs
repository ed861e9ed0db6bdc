//! x86-64: its registers, what a rule is there, and how a rule leads to the caller. Register numbers are those of the
//! System V ABI's DWARF mapping (figure 3.36 of version 1.0).

pub(crate) mod call;
pub(crate) mod epilogue;
mod general;
mod instruction;
pub(crate) mod prologue;
pub(crate) mod quick;
mod registers;
pub(crate) mod rule;
mod signal;

use object::LittleEndian as LE;
use object::elf::FileHeader64;

use crate::arch::{Call, Machine};
use crate::epilogue::{Epilogue, Next};
use crate::prologue::Prologue;
use crate::table::{RegisterNumber, RuleView, Saved, Traits};
use crate::word::Word;
use crate::{Architecture, StackMemory};

pub use registers::Registers;
use registers::{BP, REGISTER_COUNT, Values};
pub(crate) use registers::{RETURN_ADDRESS, SP};

/// The architecture x86-64 (also called AMD64), 64-bit code only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct X86_64;

impl Architecture for X86_64 {}

impl Machine for X86_64 {
    const NAME: &str = "x86-64";
    const ELF_MACHINE: u16 = object::elf::EM_X86_64.0;
    const WORD: Word = Word::Eight;
    const REGISTER_COUNT: usize = REGISTER_COUNT;
    const IP: RegisterNumber = RETURN_ADDRESS;
    const SP: RegisterNumber = SP;
    const FOLLOWED: &[RegisterNumber] = &[BP, SP];
    const RETURNS_BY_REGISTER: bool = false;
    const MAY_DROP_ARGUMENTS: bool = false;
    const KEEPS_FRAME_POINTER: bool = false;
    const OUTERMOST_FRAME: u64 = 16;
    const NOTHING_SAVED: Self::Saved = [Saved::NONE; REGISTER_COUNT];

    type Elf = FileHeader64<LE>;
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

    /// `syscall`
    const SYSTEM_CALL: &[u8] = b"\x0f\x05";

    const LONGEST_CALL: usize = call::LONGEST_CALL;
    const LONGEST_STUB: usize = call::LONGEST_STUB;

    fn call_at_end(code: &[u8]) -> Option<Call> {
        call::call_at_end(*code.last_chunk()?)
    }

    fn switches_stack(code: &[u8]) -> bool {
        call::switches_stack(code, Self::WORD)
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
