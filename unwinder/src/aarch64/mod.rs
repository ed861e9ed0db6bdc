//! aarch64: its registers, what a rule is there, and how a rule leads to the caller. Register numbers are those of "DWARF
//! for the Arm 64-bit Architecture" (section 4.1); frame records and the link register are of the procedure call
//! standard (AAPCS64).

mod call;
mod epilogue;
mod general;
mod instruction;
mod prologue;
mod quick;
mod registers;
mod rule;
mod signal;
mod switch;

use object::LittleEndian as LE;
use object::elf::FileHeader64;

use crate::arch::{Call, Loaded, Machine};
use crate::epilogue::{Epilogue, Next};
use crate::prologue::Prologue;
use crate::table::{RegisterNumber, RuleView, Saved, Traits};
use crate::word::Word;
use crate::{Architecture, StackMemory};

pub(crate) use registers::{FP, LR, PC, SP};
use registers::{REGISTER_COUNT, Values};
pub use registers::{Registers, ReturnAddressMask};

/// The architecture aarch64 (also called ARM64), 64-bit and little-endian code only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aarch64;

impl Architecture for Aarch64 {}

impl Machine for Aarch64 {
    const NAME: &str = "aarch64";
    const ELF_MACHINE: u16 = object::elf::EM_AARCH64.0;
    const WORD: Word = Word::Eight;
    const REGISTER_COUNT: usize = REGISTER_COUNT;
    const IP: RegisterNumber = PC;
    const SP: RegisterNumber = SP;
    const FOLLOWED: &[RegisterNumber] = &[FP, LR, SP];
    const RETURNS_BY_REGISTER: bool = true;
    const LANDING: Option<RegisterNumber> = Some(registers::FIRST_ARGUMENT);
    const MAY_DROP_ARGUMENTS: bool = false;
    const KEEPS_FRAME_POINTER: bool = true;
    const OUTERMOST_FRAME: u64 = 16;
    const NOTHING_SAVED: Self::Saved = [Saved::NONE; REGISTER_COUNT];

    type Elf = FileHeader64<LE>;
    type Values = Values;
    type Saved = [Saved; REGISTER_COUNT];
    type Core = quick::Core;
    type Quick = rule::Quick;

    #[inline]
    fn core(values: &Values) -> quick::Core {
        registers::core(values)
    }

    fn set_core(values: &mut Values, core: quick::Core) {
        registers::set_core(values, core);
    }

    fn quick(rule: &RuleView<'_>) -> Option<rule::Quick> {
        rule::Quick::of(rule)
    }

    fn uncounted(rule: &RuleView<'_>) -> i32 {
        rule::uncounted(rule)
    }

    fn return_to(caller: &mut Values, found: Option<u64>, traits: Traits) -> Option<()> {
        general::return_to(caller, found, traits)
    }

    fn toggles_signature(opcode: u8) -> bool {
        general::toggles_signature(opcode)
    }

    const SIGNAL_RETURN: usize = signal::SIGNAL_RETURN;

    fn is_signal_return(code: &[u8]) -> bool {
        code.first_chunk().is_some_and(|code| signal::is_signal_return(*code))
    }

    fn interrupted<M: StackMemory>(at_return: &Values, stack: &M) -> Option<Values> {
        signal::interrupted(at_return, stack)
    }

    /// `svc #0`
    const SYSTEM_CALL: &[u8] = b"\x01\x00\x00\xd4";

    const LONGEST_CALL: usize = call::LONGEST_CALL;
    const LONGEST_STUB: usize = call::LONGEST_STUB;

    fn call_at_end(code: &[u8]) -> Option<Call> {
        call::call_at_end(*code.last_chunk()?)
    }

    // Where a frame keeps the return address of the one it called is for that one to say: who called is not found from above.
    fn switches_stack(_code: &[u8]) -> bool {
        false
    }

    fn loaded(code: &[u8]) -> Option<Loaded> {
        switch::loaded(code)
    }

    fn is_stub(code: &[u8]) -> bool {
        code.first_chunk().is_some_and(|code| call::is_stub(*code))
    }

    fn prologue(code: &[u8]) -> Prologue {
        prologue::prologue(code)
    }

    const FUNCTION_ALIGNMENT: usize = 4;

    fn begins_function(before: &[u8], code: &[u8]) -> bool {
        prologue::begins_function(before, code)
    }

    const TOLD_BY: usize = epilogue::LONGEST_BEFORE;

    fn epilogue(
        before: &[u8],
        code: &[u8],
        epilogue: &mut Epilogue,
        fork: impl FnMut(i64, Epilogue),
    ) -> Next {
        epilogue::follow(before, code, epilogue, fork)
    }

    fn tail_jump(code: &[u8]) -> Option<i64> {
        prologue::tail_jump(code)
    }
}
