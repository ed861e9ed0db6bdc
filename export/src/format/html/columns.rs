//! Numbers of the HTML page's profile: unsigned LEB128, as in DWARF 5 section 7.6, and zigzag for signed ones.
//! The viewer reads them in `viewer/decode.js`.

use std::io::{self, Write};

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
    pub(super) fn number(&mut self, mut value: u64) -> io::Result<()> {
        let mut bytes = [0; 10];
        let mut len = 0;
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            bytes[len] = if value == 0 { low } else { low | 0x80 };
            len += 1;
            if value == 0 {
                return self.out.write_all(&bytes[..len]);
            }
        }
    }

    /// A number that may be negative: 0, -1, 1, -2, 2 are written as 0, 1, 2, 3, 4.
    pub(super) fn signed(&mut self, value: i64) -> io::Result<()> {
        self.number(((value << 1) ^ (value >> 63)) as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Columns<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut columns = Columns::new(Vec::new());
        write(&mut columns).unwrap();
        columns.into_inner()
    }

    #[test]
    fn numbers_are_those_of_the_dwarf_standard() {
        // DWARF 5, figure 22.
        for (value, bytes) in
            [(2, &[2][..]), (127, &[127]), (128, &[0x80, 1]), (129, &[0x81, 1]), (12857, &[0xb9, 0x64])]
        {
            assert_eq!(written(|columns| columns.number(value)), bytes);
        }
        assert_eq!(written(|columns| columns.number(u64::MAX)).len(), 10);
    }

    #[test]
    fn small_signed_numbers_are_short() {
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (-64, 127)] {
            assert_eq!(written(|columns| columns.signed(value)), [byte]);
        }
        assert_eq!(written(|columns| columns.signed(i64::MIN)).len(), 10);
    }
}
