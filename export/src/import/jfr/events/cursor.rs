//! Bytes of a chunk in, numbers and text out. Nothing is read past the end of what is being read.

use std::borrow::Cow;

use super::ReadError;

type Result<T> = std::result::Result<T, ReadError>;

/// Text as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenText<'a> {
    Null,
    Text(Cow<'a, str>),
    /// The number of a constant.
    Constant(u64),
}

/// A place in a chunk, and where what is read there ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    chunk: &'a [u8],
    at: usize,
    end: usize,
    /// Where the chunk begins in the file.
    base: u64,
    /// Whether whole numbers are of variable length.
    is_compressed: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(chunk: &'a [u8], at: usize, base: u64, is_compressed: bool) -> Self {
        Self { chunk, at: at.min(chunk.len()), end: chunk.len(), base, is_compressed }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn left(&self) -> usize {
        self.end - self.at
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    pub(super) fn malformed(&self, what: &'static str) -> ReadError {
        ReadError::Malformed { what, position: self.base + self.at as u64 }
    }

    /// What is left of so many bytes from here on that `used` of them have been read.
    pub(super) fn part(&mut self, size: usize, used: usize) -> Result<Self> {
        let left = size.checked_sub(used).filter(|left| *left <= self.left());
        let left = left.ok_or_else(|| self.malformed("an event that ends outside of its chunk"))?;
        let part = Self { end: self.at + left, ..*self };
        self.at += left;
        Ok(part)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let bytes = self.chunk.get(self.at..self.end).and_then(|left| left.get(..length));
        let bytes =
            bytes.ok_or_else(|| self.malformed("something that ends outside of what it is part of"))?;
        self.at += length;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn compressed(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << 56)
    }

    /// 64 bits.
    pub(super) fn long(&mut self) -> Result<u64> {
        if self.is_compressed { self.compressed() } else { self.array().map(u64::from_be_bytes) }
    }

    /// 32 bits.
    pub(super) fn int(&mut self) -> Result<u32> {
        if self.is_compressed {
            self.compressed().map(|number| number as u32)
        } else {
            self.array().map(u32::from_be_bytes)
        }
    }

    /// 16 bits.
    pub(super) fn short(&mut self) -> Result<u16> {
        if self.is_compressed {
            self.compressed().map(|number| number as u16)
        } else {
            self.array().map(u16::from_be_bytes)
        }
    }

    pub(super) fn float(&mut self) -> Result<f32> {
        self.array().map(f32::from_be_bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// A number of things, of which each takes a byte at least.
    pub(super) fn count(&mut self) -> Result<usize> {
        let before = *self;
        let count = self.int()? as usize;
        if count > self.left() {
            Err(before.malformed("more of something than there is room for"))
        } else {
            Ok(count)
        }
    }

    pub(super) fn text(&mut self) -> Result<WrittenText<'a>> {
        let before = *self;
        Ok(match self.byte()? {
            0 => WrittenText::Null,
            1 => WrittenText::Text(Cow::Borrowed("")),
            2 => WrittenText::Constant(self.long()?),
            3 => {
                let length = self.count()?;
                WrittenText::Text(String::from_utf8_lossy(self.bytes(length)?))
            }
            4 => {
                let length = self.count()?;
                let mut units = Vec::with_capacity(length);
                for _ in 0..length {
                    units.push(self.short()?);
                }
                WrittenText::Text(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let length = self.count()?;
                let bytes = self.bytes(length)?;
                WrittenText::Text(match str::from_utf8(bytes) {
                    Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                    _ => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
                })
            }
            _ => return Err(before.malformed("text in an unknown encoding")),
        })
    }

    /// The number of the constant that text is, where it is one.
    pub(super) fn text_constant(&self) -> Option<u64> {
        let mut ahead = *self;
        if ahead.byte().ok()? == 2 { ahead.long().ok() } else { None }
    }

    /// Leaves text out.
    pub(super) fn skip_text(&mut self) -> Result<()> {
        let mut ahead = *self;
        match ahead.byte()? {
            3 | 5 => {
                let length = ahead.count()?;
                ahead.bytes(length)?;
            }
            4 => {
                for _ in 0..ahead.count()? {
                    ahead.short()?;
                }
            }
            _ => {
                self.text()?;
                return Ok(());
            }
        }
        *self = ahead;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, 0, 1000, true)
    }

    /// By hand.
    #[test]
    fn numbers_of_both_kinds() {
        assert_eq!(compressed(&[0xac, 2]).long().unwrap(), 300);
        assert_eq!(compressed(&[255; 9]).long().unwrap(), u64::MAX);
        assert_eq!(compressed(&[255, 255, 255, 255, 15]).int().unwrap().cast_signed(), -1);
        let raw = [0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2];
        let mut raw = Cursor::new(&raw, 0, 0, false);
        assert_eq!((raw.int().unwrap(), raw.long().unwrap(), raw.short().unwrap()), (300, 5, 258));
        assert!(raw.is_at_end());
    }

    #[test]
    fn text_of_all_encodings() {
        let text = |bytes: &[u8]| {
            let mut skipped = compressed(bytes);
            skipped.skip_text().unwrap();
            assert!(skipped.is_at_end());
            match compressed(bytes).text().unwrap() {
                WrittenText::Text(text) => text.into_owned(),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(text(&[0]), "Null");
        assert_eq!(text(&[1]), "");
        assert_eq!(text(&[2, 9]), "Constant(9)");
        assert_eq!(text(&[3, 2, 0xc3, 0xb1]), "ñ");
        assert_eq!(text(&[4, 2, 0x61, 0xf1, 1]), "añ");
        assert_eq!(text(&[5, 2, 0x61, 0xf1]), "añ");
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_is() {
        for bytes in [&[][..], &[3, 9, 1], &[4, 255, 255, 255, 255, 15], &[6], &[128]] {
            let mut cursor = compressed(bytes);
            let error =
                if bytes.is_empty() || bytes[0] == 128 { cursor.long().err() } else { cursor.text().err() };
            let Some(ReadError::Malformed { position, .. }) = error else { panic!("{bytes:?}") };
            assert!((1000..1000 + 3).contains(&position));
        }
    }
}
