//! The bytes of a protobuf message, taken apart into fields without a copy
//! (protobuf.dev/programming-guides/encoding).

use super::read::malformed;
use crate::import::ImportError;
use crate::leb128;

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
