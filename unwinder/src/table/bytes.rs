//! Reads the little-endian numbers of call frame information, which end nowhere but where their bytes do.

use crate::word::Word;

/// A position in bytes. What can't be read is `None`, and the position is then anywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    /// From `at` up to `end` of `bytes`, or to their end where that is before.
    pub(super) fn new(bytes: &'a [u8], at: usize, end: usize) -> Self {
        Bytes { bytes: bytes.get(..end).unwrap_or(bytes), at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(bytes)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn word(&mut self, word: Word) -> Option<u64> {
        match word {
            Word::Four => self.u32().map(u64::from),
            Word::Eight => self.u64(),
        }
    }

    /// An unsigned LEB128 number of up to 64 bits.
    #[inline]
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift >= 64 || bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    /// A signed LEB128 number of up to 64 bits.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            // The tenth byte holds the last bit and its sign.
            if shift == 63 && !matches!(byte, 0 | 0x7f) {
                return None;
            }
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                let unused = 64_u32.saturating_sub(shift);
                return Some(value << unused >> unused);
            }
            if shift >= 64 {
                return None;
            }
        }
    }

    /// The bytes up to a NUL, without it; `None` if they are more than `longest`.
    pub(super) fn text(&mut self, longest: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().take(longest + 1).position(|&byte| byte == 0)?;
        self.at += len + 1;
        rest.get(..len)
    }

    /// Steps over `len` bytes that are there.
    pub(super) fn skip(&mut self, len: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(len).ok()?)?;
        (at <= self.bytes.len()).then(|| self.at = at)
    }
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, LittleEndian, Reader};
    use proptest::prelude::*;

    use super::Bytes;

    proptest! {
        #[test]
        fn numbers_are_those_that_gimli_reads(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(0x80), Just(0xff), Just(0x7f), Just(0)], 0..14,
        )) {
            let mut peer = EndianSlice::new(&bytes, LittleEndian);
            prop_assert_eq!(Bytes::new(&bytes, 0, 14).unsigned(), peer.read_uleb128().ok());
            let mut peer = EndianSlice::new(&bytes, LittleEndian);
            prop_assert_eq!(Bytes::new(&bytes, 0, 14).signed(), peer.read_sleb128().ok());
        }
    }
}
