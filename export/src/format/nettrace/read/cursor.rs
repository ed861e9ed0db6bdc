//! Bytes in, numbers and text out. Nothing is read past the end, and nothing is copied.

use super::ReadError;
use crate::leb128::{self, NoNumber};

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

type Result<T> = std::result::Result<T, ReadError>;

const SHORT: ReadError = ReadError::Malformed("something that ends outside of what it is part of");

impl<'a> Cursor<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(SHORT)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A part whose size in 16 bits is before it.
    pub(super) fn part(&mut self) -> Result<Self> {
        let length = self.u16()?;
        self.bytes(length.into()).map(Self::of)
    }

    /// A number of variable length that fits into 64 bits.
    pub(super) fn varuint(&mut self) -> Result<u64> {
        let (number, rest) = leb128::read(self.rest).map_err(|error| match error {
            NoNumber::Short => SHORT,
            NoNumber::TooLarge => ReadError::Malformed("a number of more than 64 bits"),
        })?;
        self.rest = rest;
        Ok(number)
    }

    pub(super) fn varuint32(&mut self) -> Result<u32> {
        let number = self.varuint()?;
        u32::try_from(number).map_err(|_| ReadError::Malformed("a number of more than 32 bits"))
    }

    pub(super) fn varint(&mut self) -> Result<i64> {
        self.varuint().map(leb128::from_zigzag)
    }

    /// Text with its length before it.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let length = self.varuint32()?;
        utf8(self.bytes(length as usize)?)
    }

    /// Text of 16-bit units up to one that is 0.
    pub(super) fn wide_text(&mut self) -> Result<String> {
        let units = self.rest.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let length = units.clone().position(|unit| unit == 0).ok_or(SHORT)?;
        let text = char::decode_utf16(units.take(length));
        let text = text.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.bytes(length * 2 + 2)?;
        Ok(text)
    }
}

/// Bytes as text.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    str::from_utf8(bytes).map_err(|_| ReadError::Malformed("text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_too_large_are_refused() {
        assert_eq!(Cursor::of(&[0xac, 2]).varuint().unwrap(), 300);
        assert_eq!(
            Cursor::of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).varuint().unwrap(),
            u64::MAX
        );
        assert!(Cursor::of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]).varuint().is_err());
        assert!(Cursor::of(&[128; 10]).varuint().is_err());
        assert!(Cursor::of(&[128]).varuint().is_err());
        assert!(Cursor::of(&[255, 255, 255, 255, 0x1f]).varuint32().is_err());
        assert_eq!(Cursor::of(&[0x7f]).varint().unwrap(), -64);
        assert_eq!(Cursor::of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).varint().unwrap(), i64::MIN);
    }
}
