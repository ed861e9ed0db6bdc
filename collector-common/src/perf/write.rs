//! Writes what the rest of this module reads: the same types, given the same [`super::ParseConfig`].

use thiserror::Error;

use super::{ByteOrder, Bytes, SampleType, Text, Words};
use crate::ids::{Avma, FileOffset, Nanos, Pid, Tid};

/// Why a record could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The event's samples have a part that this one does not have.
    #[error("a record lacks a part that the event's sample_type asks for: {0:?}")]
    Missing(SampleType),
    /// What is given for a part is not what the event's configuration makes of it: other registers, other values
    /// of counters.
    #[error("a part of a sample is not laid out as the event's attributes say: {0:?}")]
    Layout(SampleType),
    /// A mapping has a build id, but the event did not ask for build ids: it would be read as an inode.
    #[error("a mapping has a build id, but the event's attributes do not ask for build ids")]
    BuildId,
    /// A record's size has 16 bits.
    #[error("a record of {0} bytes is longer than a record can be")]
    TooLong(usize),
}

/// Appends numbers to bytes.
pub(super) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    order: ByteOrder,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>, order: ByteOrder) -> Self {
        Self { out, order }
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.array(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.array(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.array(value.to_le_bytes());
    }

    /// Puts a number in the place of one that was written before.
    pub(super) fn set_u16(&mut self, at: usize, value: u16) {
        let bytes = if self.order == ByteOrder::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        if let Some(place) = self.out.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(&bytes);
        }
    }

    fn array<const N: usize>(&mut self, mut little: [u8; N]) {
        if self.order == ByteOrder::Big {
            little.reverse();
        }
        self.out.extend_from_slice(&little);
    }

    pub(super) fn pid(&mut self, pid: Pid) {
        self.u32(pid.0);
    }

    pub(super) fn tid(&mut self, tid: Tid) {
        self.u32(tid.0);
    }

    pub(super) fn nanos(&mut self, time: Nanos) {
        self.u64(time.0);
    }

    pub(super) fn address(&mut self, address: Avma) {
        self.u64(address.0);
    }

    pub(super) fn file_offset(&mut self, offset: FileOffset) {
        self.u64(offset.0);
    }

    pub(super) fn bytes(&mut self, bytes: Bytes<'_>) {
        for piece in bytes.pieces() {
            self.out.extend_from_slice(piece);
        }
    }

    pub(super) fn words(&mut self, words: Words<'_>) {
        if words.order() == self.order {
            self.bytes(words.bytes());
        } else {
            words.iter().for_each(|word| self.u64(word));
        }
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Text in a field, with at least one NUL and a length that is a multiple of 8.
    pub(super) fn text(&mut self, text: Text<'_>) {
        let (field, is_whole) = text.field();
        self.bytes(field);
        if !is_whole {
            self.zeros((field.len() + 1).next_multiple_of(8) - field.len());
        }
    }
}
