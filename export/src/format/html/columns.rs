//! Numbers of the HTML page's profile: unsigned LEB128, and zigzag for signed ones.
//! The viewer reads them in `viewer/decode.js`.

use std::io::{self, Write};

use crate::leb128;

/// Writes columns of numbers.
#[derive(Debug)]
pub(super) struct Columns<W> {
    out: W,
}

impl<W: Write> Columns<W> {
    /// Columns go to `out`, a few bytes at a time: it should be buffered.
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    /// One number.
    pub(super) fn number(&mut self, value: u64) -> io::Result<()> {
        self.out.write_all(leb128::bytes(value).as_ref())
    }

    /// A number that may be negative: 0, -1, 1, -2, 2 are written as 0, 1, 2, 3, 4.
    pub(super) fn signed(&mut self, value: i64) -> io::Result<()> {
        self.number(leb128::zigzag(value))
    }

    /// Numbers one after another, without their count.
    pub(super) fn column(&mut self, values: impl IntoIterator<Item = u64>) -> io::Result<()> {
        values.into_iter().try_for_each(|value| self.number(value))
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// What the columns were written to.
    pub(super) fn into_inner(self) -> W {
        self.out
    }
}
