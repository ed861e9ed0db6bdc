//! Why a payload can't be decoded.

use thiserror::Error;

/// A payload is not what its event should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("event {event}, version {version}: field {field} at byte {position} of {len}: {problem}")]
pub struct DecodeError {
    /// The event, as in its table: `Process/Start`.
    pub event: &'static str,
    /// Version of its payload.
    pub version: u8,
    /// The field, by the name that its provider gives it.
    pub field: &'static str,
    /// Where in the payload the field begins.
    pub position: usize,
    /// Bytes of the payload.
    pub len: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The payload ends before the field does.
    #[error("the payload ends within it")]
    TooShort,
    /// Text has no NUL.
    #[error("no NUL ends its text")]
    NoEnd,
    /// A number that should have 32 bits has more.
    #[error("its number has more than 32 bits")]
    TooLarge,
}
