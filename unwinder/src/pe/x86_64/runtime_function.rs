//! `.pdata`: `RUNTIME_FUNCTION`, three RVAs a function, sorted by the first.
//!
//! ```text
//!  0       4     8              12
//!  | begin | end | unwind data |        all of 32 bits, little-endian
//! ```
//!
//! Bit 0 of the unwind data set makes the entry an indirect one: what describes its code is the `RUNTIME_FUNCTION` at
//! the address without that bit.

use crate::pe::Image;

const SIZE: usize = 12;
const INDIRECT: u32 = 1;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeFunction {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) unwind_data: u32,
}

impl RuntimeFunction {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let field = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(RuntimeFunction { begin: field(0)?, end: field(4)?, unwind_data: field(8)? })
    }

    /// The entry that describes this one's code: itself, but for an indirect one.
    pub(super) fn described_by(self, image: &Image<'_>) -> Option<Self> {
        if self.unwind_data & INDIRECT == 0 {
            return Some(self);
        }
        let direct = Self::parse(image.bytes_at(self.unwind_data & !INDIRECT))?;
        (direct.unwind_data & INDIRECT == 0).then_some(direct)
    }
}

/// The entries of an image that lie in its text, sorted, no two with the same beginning.
#[derive(Debug)]
pub(crate) struct Functions {
    entries: Vec<RuntimeFunction>,
}

impl Functions {
    pub(crate) fn list(image: &Image<'_>) -> Self {
        let (chunks, _) = image.exceptions.as_chunks::<SIZE>();
        let parsed = chunks.iter().filter_map(|bytes| RuntimeFunction::parse(bytes));
        let in_text = |entry: &RuntimeFunction| {
            entry.begin < entry.end && image.text.contains(&entry.begin) && entry.end <= image.text.end
        };
        let mut entries: Vec<RuntimeFunction> = parsed.filter(in_text).collect();
        entries.sort_by_key(|entry| entry.begin);
        entries.dedup_by_key(|entry| entry.begin);
        Functions { entries }
    }

    pub(crate) fn all(&self) -> &[RuntimeFunction] {
        &self.entries
    }

    /// Where the code of an entry ends: at the next one, should they overlap, so that no byte is of two functions.
    pub(crate) fn code_end(&self, index: usize) -> u32 {
        let end = self.entries.get(index).map_or(0, |entry| entry.end);
        self.entries.get(index + 1).map_or(end, |next| end.min(next.begin))
    }

    pub(super) fn at(&self, rva: u32) -> Option<RuntimeFunction> {
        let behind = self.entries.partition_point(|entry| entry.begin <= rva);
        let entry = *self.entries.get(behind.checked_sub(1)?)?;
        (rva < entry.end).then_some(entry)
    }
}
