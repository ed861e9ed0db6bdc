//! The bytes of a protobuf message, taken apart into fields without a copy
//! (protobuf.dev/programming-guides/encoding).

use std::io::{BufRead, Read as _};

use super::read::malformed;
use crate::import::ImportError;
use crate::import::unpack::placed;
use crate::leb128;

/// The most bytes of a number.
const LONGEST: usize = 10;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Wire type 0.
    Number(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// A value of fixed size, which this format does not use.
    Fixed,
}

/// The fields of a message that is read as it comes, of which one is there at a time.
pub(super) struct Stream<R> {
    input: R,
    part: Vec<u8>,
    position: u64,
}

impl<R: BufRead> Stream<R> {
    pub(super) const fn of(input: R) -> Self {
        Self { input, part: Vec::new(), position: 0 }
    }

    /// How many bytes were read.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The next one; none at the message's end. One of more than `most` bytes is an error.
    pub(super) fn next(&mut self, most: usize) -> Result<Option<(u32, Value<'_>)>, ImportError> {
        if self.first()?.is_none() {
            return Ok(None);
        }
        let outside = || malformed("a field ends outside of it");
        let key = self.varint()?;
        let tag = u32::try_from(key >> 3).ok().filter(|&tag| tag != 0).ok_or_else(outside)?;
        let length = match key & 7 {
            0 => return Ok(Some((tag, Value::Number(self.varint()?)))),
            1 => 8,
            2 => self.varint()?,
            5 => 4,
            _ => return Err(outside()),
        };
        if length > most as u64 {
            return Err(ImportError::TooMuch { what: "bytes in a part", limit: most as u64 });
        }
        self.part.clear();
        let read = self.input.by_ref().take(length).read_to_end(&mut self.part);
        self.position += read.map_err(|error| placed(error, self.position + self.part.len() as u64))? as u64;
        let missing = length - self.part.len() as u64;
        if missing > 0 {
            return Err(self.cut(missing));
        }
        Ok(Some((tag, if key & 7 == 2 { Value::Bytes(&self.part) } else { Value::Fixed })))
    }

    /// It ends here, at least so many bytes too early.
    fn cut(&self, missing: u64) -> ImportError {
        let position = self.position;
        ImportError::Cut(format!(
            "it ends at byte {position}, in a field, at least {missing} bytes too early"
        ))
    }

    /// The byte that comes next.
    fn first(&mut self) -> Result<Option<u8>, ImportError> {
        let position = self.position;
        let read = self.input.fill_buf().map_err(|error| placed(error, position))?;
        Ok(read.first().copied())
    }

    fn varint(&mut self) -> Result<u64, ImportError> {
        let mut bytes = [0; LONGEST];
        for length in 1..=LONGEST {
            bytes[length - 1] = self.first()?.ok_or_else(|| self.cut(1))?;
            self.input.consume(1);
            self.position += 1;
            if bytes[length - 1] < 0x80 {
                let number = leb128::read(&bytes[..length]).ok();
                return number.map(|(number, _)| number).ok_or_else(|| malformed("a number is too large"));
            }
        }
        Err(malformed("a number is too large"))
    }
}

/// The fields of a message, in the order of its bytes. It ends after an error.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = self.varint()?;
        let tag = u32::try_from(key >> 3).ok().filter(|&tag| tag != 0)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => self.skip(4)?,
            _ => return None,
        };
        Some((tag, value))
    }

    fn skip(&mut self, length: usize) -> Option<Value<'a>> {
        self.rest = self.rest.get(length..)?;
        Some(Value::Fixed)
    }

    fn varint(&mut self) -> Option<u64> {
        let (number, rest) = leb128::read(self.rest).ok()?;
        self.rest = rest;
        Some(number)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| malformed("a field ends outside of it")))
    }
}
