//! `.pdata`: `RUNTIME_FUNCTION`, three RVAs a function, sorted by the first.
//!
//! ```text
//!  0       4     8              12
//!  | begin | end | unwind data |        all of 32 bits, little-endian
//! ```
//!
//! Bit 0 of the unwind data set makes the entry an indirect one: what describes its code is the `RUNTIME_FUNCTION` at
//! the address without that bit.

use std::ops::Range;

use crate::pe::{Entry, Functions, Image};

const SIZE: usize = 12;
const INDIRECT: u32 = 1;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeFunction {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) unwind_data: u32,
}

impl Entry for RuntimeFunction {
    const SIZE: usize = SIZE;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(RuntimeFunction { begin: field(0)?, end: field(4)?, unwind_data: field(8)? })
    }

    fn begin(self) -> u32 {
        self.begin
    }

    fn is_in(self, text: &Range<u32>) -> bool {
        self.begin < self.end && text.contains(&self.begin) && self.end <= text.end
    }
}

impl RuntimeFunction {
    /// The entry that describes this one's code: itself, but for an indirect one.
    pub(super) fn described_by(self, image: &Image) -> Option<Self> {
        if self.unwind_data & INDIRECT == 0 {
            return Some(self);
        }
        image.count_record()?;
        let direct = Self::parse(&image.array::<SIZE>(self.unwind_data & !INDIRECT)?)?;
        (direct.unwind_data & INDIRECT == 0).then_some(direct)
    }
}

impl Functions<RuntimeFunction> {
    /// Where the code of an entry ends: at the next one, should they overlap, so that no byte is of two functions.
    pub(super) fn code_end(&self, number: usize) -> u32 {
        let end = self.get(number).map_or(0, |entry| entry.end);
        self.get(number + 1).map_or(end, |next| end.min(next.begin))
    }

    /// The entry of the code at an RVA.
    pub(super) fn at(&self, rva: u32) -> Option<RuntimeFunction> {
        self.last_before(rva).filter(|entry| rva < entry.end)
    }
}
