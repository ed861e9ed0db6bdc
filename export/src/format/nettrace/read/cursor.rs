//! Bytes in, numbers and text out. Nothing is read past the end, and nothing is copied.

use super::ReadError;
use crate::leb128::{self, NoNumber};

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Where that begins in the file.
    position: u64,
}

type Result<T> = std::result::Result<T, ReadError>;

const SHORT: &str = "something that ends outside of what it is part of";

impl<'a> Cursor<'a> {
    /// Bytes that begin there in the file.
    pub(super) const fn of(bytes: &'a [u8], position: u64) -> Self {
        Self { rest: bytes, position }
    }

    /// Where what is left begins in the file.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// All that is left.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn malformed(&self, what: &'static str) -> ReadError {
        ReadError::Malformed { what, position: self.position }
    }

    pub(super) const fn too_large(&self, what: &'static str) -> ReadError {
        ReadError::TooLarge { what, position: self.position }
    }

    /// What is left is this.
    const fn go_on(&mut self, rest: &'a [u8]) {
        self.position += (self.rest.len() - rest.len()) as u64;
        self.rest = rest;
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.malformed(SHORT))?;
        self.go_on(rest);
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(|| self.malformed(SHORT))?;
        self.go_on(rest);
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
        self.sized(length.into())
    }

    /// A part of a size.
    pub(super) fn sized(&mut self, length: usize) -> Result<Self> {
        let position = self.position;
        self.bytes(length).map(|bytes| Self::of(bytes, position))
    }

    /// A number of variable length that fits into 64 bits.
    pub(super) fn varuint(&mut self) -> Result<u64> {
        let (number, rest) = leb128::read(self.rest).map_err(|error| match error {
            NoNumber::Short => self.malformed(SHORT),
            NoNumber::TooLarge => self.malformed("a number of more than 64 bits"),
        })?;
        self.go_on(rest);
        Ok(number)
    }

    pub(super) fn varuint32(&mut self) -> Result<u32> {
        let before = *self;
        let number = self.varuint()?;
        u32::try_from(number).map_err(|_| before.malformed("a number of more than 32 bits"))
    }

    pub(super) fn varint(&mut self) -> Result<i64> {
        self.varuint().map(leb128::from_zigzag)
    }

    /// Text with its length before it.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let length = self.varuint32()?;
        self.utf8(length as usize)
    }

    /// So many bytes as text.
    pub(super) fn utf8(&mut self, length: usize) -> Result<&'a str> {
        let before = *self;
        str::from_utf8(self.bytes(length)?).map_err(|_| before.malformed("text that is not UTF-8"))
    }

    /// Text of 16-bit units up to one that is 0.
    pub(super) fn wide_text(&mut self) -> Result<String> {
        let units = self.rest.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let length = units.clone().position(|unit| unit == 0).ok_or_else(|| self.malformed(SHORT))?;
        let text = char::decode_utf16(units.take(length));
        let text = text.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.bytes(length * 2 + 2)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(bytes: &[u8]) -> Cursor<'_> {
        Cursor::of(bytes, 0)
    }

    #[test]
    fn numbers_that_are_too_large_are_refused() {
        assert_eq!(of(&[0xac, 2]).varuint().unwrap(), 300);
        assert_eq!(of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).varuint().unwrap(), u64::MAX);
        assert!(of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]).varuint().is_err());
        assert!(of(&[128; 10]).varuint().is_err());
        assert!(of(&[128]).varuint().is_err());
        assert!(of(&[255, 255, 255, 255, 0x1f]).varuint32().is_err());
        assert_eq!(of(&[0x7f]).varint().unwrap(), -64);
        assert_eq!(of(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).varint().unwrap(), i64::MIN);
    }
}
