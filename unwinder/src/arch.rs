//! The seam between what all architectures share (walk, table, expressions) and what each defines for itself.

pub use crate::x86_64::Registers;
pub(crate) use crate::x86_64::{Core, GeneralStep, Known, REGISTER_COUNT, Rule};
