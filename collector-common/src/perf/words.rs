//! Lists of 64-bit numbers in a record, decoded as they are asked for.

use std::fmt;

use super::fields::Fields;
use super::{ByteOrder, Bytes};

/// A list of 64-bit numbers: addresses of a callchain, values of registers. Nothing is copied; a number is put into
/// this machine's byte order when it is read.
#[derive(Clone, Copy, Default)]
pub struct Words<'a> {
    bytes: Bytes<'a>,
    order: ByteOrder,
}

impl<'a> Words<'a> {
    /// The numbers in `bytes`; bytes behind the last whole one are left out.
    pub fn new(bytes: Bytes<'a>, order: ByteOrder) -> Self {
        let whole = bytes.len() - bytes.len() % 8;
        let bytes = bytes.split_at_checked(whole).map_or(bytes, |(head, _)| head);
        Self { bytes, order }
    }

    /// How many numbers there are.
    pub const fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number at `index`.
    pub fn get(&self, index: usize) -> Option<u64> {
        let (_, from) = self.bytes.split_at_checked(index.checked_mul(8)?)?;
        Fields::new(from, self.order).u64()
    }

    /// From the first to the last.
    pub fn iter(&self) -> WordsIter<'a> {
        WordsIter(Fields::new(self.bytes, self.order))
    }

    pub(super) fn bytes(&self) -> Bytes<'a> {
        self.bytes
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }
}

/// Numbers of this machine, without a copy.
impl<'a> From<&'a [u64]> for Words<'a> {
    fn from(numbers: &'a [u64]) -> Self {
        Self::new(Bytes::from(bytemuck::cast_slice::<u64, u8>(numbers)), ByteOrder::NATIVE)
    }
}

impl<'a> IntoIterator for &Words<'a> {
    type Item = u64;
    type IntoIter = WordsIter<'a>;

    fn into_iter(self) -> WordsIter<'a> {
        self.iter()
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl Eq for Words<'_> {}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|word| format!("{word:#x}"))).finish()
    }
}

/// Iterates over [`Words`].
#[derive(Clone, Debug)]
pub struct WordsIter<'a>(Fields<'a>);

impl Iterator for WordsIter<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.0.u64()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.rest.len() / 8;
        (len, Some(len))
    }
}

impl ExactSizeIterator for WordsIter<'_> {}
