//! Records as bytes: header and body, one after the other in a buffer, or owned.
//!
//! A header is `struct perf_event_header`: type u32, misc u16, and size u16, which counts the header.

use thiserror::Error;

use super::{Misc, RecordKind};
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{ByteOrder, Bytes};

/// Bytes of a header.
const HEADER: usize = 8;

/// A record whose body has not been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its type.
    pub kind: RecordKind,
    /// The bits of its header.
    pub misc: Misc,
    /// What follows the header.
    pub body: Bytes<'a>,
}

impl RawRecord<'_> {
    /// Bytes with the header.
    pub const fn size(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Appends the record to `out`.
    ///
    /// # Errors
    /// When its size does not fit into a header.
    pub fn write(&self, order: ByteOrder, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let size = u16::try_from(self.size()).map_err(|_| WriteError::TooLong(self.size()))?;
        let mut writer = Writer::new(out, order);
        writer.u32(self.kind.0);
        writer.u16(self.misc.0);
        writer.u16(size);
        writer.bytes(self.body);
        Ok(())
    }
}

/// A record that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its type.
    pub kind: RecordKind,
    /// The bits of its header.
    pub misc: Misc,
    /// What follows the header.
    pub body: Vec<u8>,
}

impl OwnedRecord {
    /// The record, as it can be parsed.
    pub fn as_raw(&self) -> RawRecord<'_> {
        RawRecord { kind: self.kind, misc: self.misc, body: Bytes::from(&self.body) }
    }
}

impl From<RawRecord<'_>> for OwnedRecord {
    fn from(raw: RawRecord<'_>) -> Self {
        Self { kind: raw.kind, misc: raw.misc, body: raw.body.to_cow().into_owned() }
    }
}

/// Where a buffer of records cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// The header is cut off.
    #[error("perf record at byte {offset} is cut off in its header, {left} bytes are left")]
    Header {
        /// Where the record begins.
        offset: usize,
        /// Bytes that there are.
        left: usize,
    },
    /// The size is less than the header's own, or more than there is.
    #[error("perf record at byte {offset} says that it has {size} bytes, of {left} that are left")]
    Size {
        /// Where the record begins.
        offset: usize,
        /// What the header says.
        size: u16,
        /// Bytes that there are.
        left: usize,
    },
}

/// The records in a buffer, such as the filled part of a ring in its one or two pieces.
pub fn records<'a>(bytes: impl Into<Bytes<'a>>, order: ByteOrder) -> Records<'a> {
    let bytes = bytes.into();
    Records { fields: Fields::new(bytes, order), len: bytes.len() }
}

/// Iterates over the records of a buffer; after an error it ends.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    fields: Fields<'a>,
    len: usize,
}

impl Records<'_> {
    /// Where the next record begins.
    pub fn offset(&self) -> usize {
        self.len - self.fields.rest.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>, RecordsError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (offset, left) = (self.offset(), self.fields.rest.len());
        if left == 0 {
            return None;
        }
        let mut header = || Some((self.fields.u32()?, self.fields.u16()?, self.fields.u16()?));
        let Some((kind, misc, size)) = header() else {
            self.fields.rest = Bytes::default();
            return Some(Err(RecordsError::Header { offset, left }));
        };
        let body = usize::from(size).checked_sub(HEADER).and_then(|len| self.fields.bytes(len));
        let record = body.map(|body| RawRecord { kind: RecordKind(kind), misc: Misc(misc), body });
        if record.is_none() {
            self.fields.rest = Bytes::default();
        }
        Some(record.ok_or(RecordsError::Size { offset, size, left }))
    }
}

impl std::iter::FusedIterator for Records<'_> {}
