//! Reads the fields of a record one after the other, and never past its end.

use super::{ByteOrder, Bytes, Words};
use crate::ids::{Avma, FileOffset, Nanos, Pid, Tid};

/// What of a record has not been read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) rest: Bytes<'a>,
    pub(super) order: ByteOrder,
}

impl<'a> Fields<'a> {
    pub(super) fn new(rest: Bytes<'a>, order: ByteOrder) -> Self {
        Self { rest, order }
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let Some((head, tail)) = self.rest.first.split_first_chunk() else {
            return self.array_over_the_seam();
        };
        self.rest.first = tail;
        Some(*head)
    }

    #[cold]
    fn array_over_the_seam<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut array = [0; N];
        self.bytes(N)?.copy_to(&mut array);
        Some(array)
    }

    #[inline]
    pub(super) fn bytes(&mut self, len: usize) -> Option<Bytes<'a>> {
        let (head, tail) = self.rest.split_at_checked(len)?;
        self.rest = tail;
        Some(head)
    }

    /// As many bytes as a field says that follow it.
    pub(super) fn bytes_of(&mut self, len: u64) -> Option<Bytes<'a>> {
        self.bytes(usize::try_from(len).ok()?)
    }

    /// What is left.
    pub(super) fn remaining(&mut self) -> Bytes<'a> {
        std::mem::take(&mut self.rest)
    }

    /// `count` numbers of 64 bits.
    #[inline]
    pub(super) fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let len = usize::try_from(count).ok()?.checked_mul(8)?;
        Some(Words::new(self.bytes(len)?, self.order))
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(self.order.u16(self.array()?))
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(self.order.u32(self.array()?))
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(self.order.u64(self.array()?))
    }

    pub(super) fn pid(&mut self) -> Option<Pid> {
        self.u32().map(Pid)
    }

    pub(super) fn tid(&mut self) -> Option<Tid> {
        self.u32().map(Tid)
    }

    pub(super) fn nanos(&mut self) -> Option<Nanos> {
        self.u64().map(Nanos)
    }

    pub(super) fn address(&mut self) -> Option<Avma> {
        self.u64().map(Avma)
    }

    pub(super) fn file_offset(&mut self) -> Option<FileOffset> {
        self.u64().map(FileOffset)
    }
}
