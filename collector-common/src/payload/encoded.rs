//! An event as its source tells it, before its payload is understood.

use crate::event::Guid;

/// Width of a pointer on the traced machine or in the traced process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointerSize {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

impl PointerSize {
    /// In bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// What an event is, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The provider, or the class of classic events.
    pub provider: Guid,
    /// Which of its events, of those with a manifest.
    pub id: u16,
    /// Which of its events, of classic ones.
    pub opcode: u8,
    /// Version of the payload.
    pub version: u8,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The payload.
    pub bytes: &'a [u8],
}
