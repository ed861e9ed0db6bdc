//! x86-64: its registers, what a rule is there, and how a rule leads to the caller. Register numbers are those of the
//! System V ABI's DWARF mapping (figure 3.36 of version 1.0).

mod call;
mod general;
mod quick;
mod registers;
mod rule;

pub(crate) use call::{Call, LONGEST_CALL, LONGEST_STUB, call_at_end, is_stub};
pub(crate) use general::{GeneralStep, Known};
pub(crate) use quick::Core;
pub use registers::Registers;
pub(crate) use registers::{BP, REGISTER_COUNT, RETURN_ADDRESS, SP};
pub(crate) use rule::{Rule, SavedBase};
