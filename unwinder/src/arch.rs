//! The seam between what all architectures share (walk, table, expressions) and what each defines for itself.

pub use crate::x86_64::Registers;
pub(crate) use crate::x86_64::{
    Call, Core, GeneralStep, Known, LONGEST_CALL, LONGEST_STUB, REGISTER_COUNT, Rule, call_at_end, is_stub,
};
