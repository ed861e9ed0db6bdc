//! A description, read from its start.

use super::error::{DescriptionError, DescriptionProblem};

/// What is left of a description.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, DescriptionError>;

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn error(&self, what: &'static str, problem: DescriptionProblem) -> DescriptionError {
        DescriptionError { what, position: self.at, problem }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let bytes =
            self.rest().first_chunk().ok_or_else(|| self.error(what, DescriptionProblem::TooShort))?;
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Read<u8> {
        self.array(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Read<u16> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Read<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn bytes(&mut self, len: usize, what: &'static str) -> Read<&'a [u8]> {
        let bytes = self.rest().get(..len).ok_or_else(|| self.error(what, DescriptionProblem::TooShort))?;
        self.at += len;
        Ok(bytes)
    }

    /// Text of 8-bit units up to a NUL, which is read as well. What is not UTF-8 is U+FFFD.
    pub(super) fn text(&mut self, what: &'static str) -> Read<String> {
        let end = self.rest().iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| self.error(what, DescriptionProblem::NoEnd))?;
        let text = String::from_utf8_lossy(self.bytes(end, what)?).into_owned();
        self.at += 1;
        Ok(text)
    }

    /// UTF-16 text somewhere in the description up to a NUL; none at 0, where no text can be. All such texts together may have as many units
    /// as the description has bytes, though each may be anywhere: `left` of them.
    pub(super) fn utf16_at(&self, offset: u32, what: &'static str, left: &mut usize) -> Read<Option<String>> {
        if offset == 0 {
            return Ok(None);
        }
        let position = offset as usize;
        let error = |problem| DescriptionError { what, position, problem };
        let rest = self.bytes.get(position..).ok_or_else(|| error(DescriptionProblem::TooShort))?;
        let units = rest.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        let end = units.clone().take(*left).position(|unit| unit == 0);
        let end = end.ok_or_else(|| error(DescriptionProblem::NoEnd))?;
        *left -= end;
        Ok(Some(
            char::decode_utf16(units.take(end))
                .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        ))
    }
}
