//! Comparisons of text, unit by unit: bytes, or units of UTF-16 as they lie in an event. Nothing is copied.

use std::cmp::Ordering;

use super::super::value::Utf16Text;
use super::{Comparison, TextTest};
use crate::byte_order::ByteOrder;
use crate::glob::{Units, glob};

impl Units for Utf16Text<'_> {
    type Unit = u16;

    fn count(self) -> usize {
        self.bytes.len() / 2
    }

    fn unit(self, index: usize) -> Option<u16> {
        let unit = *self.bytes.as_chunks().0.get(index)?;
        Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(unit),
            ByteOrder::Big => u16::from_be_bytes(unit),
        })
    }
}

/// What a text is compared with.
#[derive(Clone, Debug)]
pub(super) struct Pattern<U> {
    pub(super) test: Test,
    pub(super) units: Box<[U]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    Compare(Comparison),
    Text(TextTest),
}

impl<U: Copy + Ord + From<u8>> Pattern<U> {
    pub(super) fn matches(&self, text: impl Units<Unit = U>) -> bool {
        let own = &*self.units;
        match self.test {
            Test::Compare(comparison) => comparison.holds(Some(order(text, own))),
            Test::Text(TextTest::StartsWith) => is_at(text, 0, own),
            Test::Text(TextTest::EndsWith) => {
                text.count().checked_sub(own.len()).is_some_and(|start| is_at(text, start, own))
            }
            Test::Text(TextTest::Contains) => {
                let starts = (text.count() + 1).saturating_sub(own.len());
                (0..starts).any(|start| is_at(text, start, own))
            }
            Test::Text(TextTest::Glob) => glob(text, own),
        }
    }
}

fn order<T: Units>(text: T, own: &[T::Unit]) -> Ordering {
    let different = own.iter().enumerate().find_map(|(index, unit)| match text.unit(index) {
        Some(other) if other == *unit => None,
        Some(other) => Some(other.cmp(unit)),
        None => Some(Ordering::Less),
    });
    different.unwrap_or_else(|| text.count().cmp(&own.len()))
}

fn is_at<T: Units>(text: T, start: usize, own: &[T::Unit]) -> bool {
    own.iter().enumerate().all(|(index, unit)| text.unit(start + index) == Some(*unit))
}
