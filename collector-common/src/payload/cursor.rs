//! A payload, read from its start to its end: little-endian, without padding, pointers as wide as the traced machine's.

use crate::event::{ByteOrder, Sid, Text, Utf16Text};

use super::encoded::PointerSize;
use super::error::Problem;

/// What decides how a payload of one event lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Version of the payload.
    pub version: u8,
    /// Width of pointers in it.
    pub pointer: PointerSize,
}

/// What is left of a payload.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
    layout: Layout,
}

type Read<T> = Result<T, Problem>;

impl<'a> Cursor<'a> {
    /// A payload from its start.
    pub const fn new(payload: &'a [u8], layout: Layout) -> Self {
        Self { rest: payload, len: payload.len(), layout }
    }

    /// How the payload lies.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of the whole payload.
    pub const fn total(&self) -> usize {
        self.len
    }

    /// Bytes that were read.
    pub const fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// So many bytes, by value.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Problem::TooShort)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Read<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Problem::TooShort)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number as wide as a pointer.
    #[inline]
    pub fn pointer(&mut self) -> Read<u64> {
        Ok(match self.layout.pointer {
            PointerSize::Bits32 => u32::from_le_bytes(self.array()?).into(),
            PointerSize::Bits64 => u64::from_le_bytes(self.array()?),
        })
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// UTF-16 text up to a NUL, which is read as well.
    pub fn utf16(&mut self) -> Read<Utf16Text<'a>> {
        let (units, _) = self.rest.as_chunks::<2>();
        let length = units.iter().position(|unit| *unit == [0; 2]).ok_or(Problem::NoEnd)?;
        let text = self.bytes(2 * length)?;
        self.bytes(2)?;
        Ok(Utf16Text::new(text, ByteOrder::Little))
    }

    /// UTF-16 text that fills so many units, or ends at a NUL among them.
    pub fn fixed_utf16(&mut self, units: usize) -> Read<Utf16Text<'a>> {
        let bytes = self.bytes(2 * units)?;
        let length = bytes.as_chunks::<2>().0.iter().position(|unit| *unit == [0; 2]).unwrap_or(units);
        Ok(Utf16Text::new(bytes.get(..2 * length).unwrap_or(bytes), ByteOrder::Little))
    }

    /// UTF-16 text that ends at a NUL or with the payload.
    pub fn last_utf16(&mut self) -> Utf16Text<'a> {
        self.utf16().unwrap_or_else(|_| {
            let rest = self.rest();
            Utf16Text::new(rest.get(..rest.len() & !1).unwrap_or(rest), ByteOrder::Little)
        })
    }

    /// Text of 8-bit units up to a NUL, which is read as well.
    pub fn text(&mut self) -> Read<Text<'a>> {
        let length = self.rest.iter().position(|unit| *unit == 0).ok_or(Problem::NoEnd)?;
        let text = self.bytes(length)?;
        self.bytes(1)?;
        Ok(Text::new(text))
    }

    /// `TOKEN_USER`, two pointers, and the SID; or 4 bytes of 0 for none.
    pub fn user(&mut self) -> Read<Option<Sid<'a>>> {
        if self.rest.first_chunk() == Some(&[0; 4]) {
            self.bytes(4)?;
            return Ok(None);
        }
        self.bytes(2 * self.layout.pointer.bytes())?;
        self.sid().map(Some)
    }

    /// A SID by itself.
    pub fn sid(&mut self) -> Read<Sid<'a>> {
        let sid = Sid::from_start(self.rest).ok_or(Problem::TooShort)?;
        self.bytes(sid.as_bytes().len())?;
        Ok(sid)
    }
}
