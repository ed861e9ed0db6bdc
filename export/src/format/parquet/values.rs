//! The values of a column: added one by one, taken as what a page of them holds.

use std::marker::PhantomData;
use std::mem;
use std::ops::Range;

use crate::table::Table;

use super::bits;
use super::delta::Delta;
use super::hybrid::Hybrid;

/// How values are stored (`Type` of parquet.thrift).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean = 0,
    Int64 = 2,
    ByteArray = 6,
}

/// How values are spelled (`Encoding` of parquet.thrift).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain = 0,
    /// Runs, of levels.
    Runs = 3,
    Delta = 5,
    /// Positions in a dictionary.
    Dictionary = 8,
}

/// What values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// What they are.
    Plain,
    /// UTF-8.
    Text,
    /// Integers without a sign.
    Unsigned,
    /// Nanoseconds since 1970 in UTC.
    Time,
}

/// The distinct values of a column.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) count: usize,
    pub(super) bytes: Vec<u8>,
}

/// What a page holds of values.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) dictionary: Option<Entries>,
    pub(super) encoding: Encoding,
    pub(super) bytes: Vec<u8>,
    /// The least and the greatest, where there are some.
    pub(super) bounds: Option<[Vec<u8>; 2]>,
}

impl Encoded {
    /// Of no values: what any reader takes for that.
    fn nothing() -> Self {
        Self { dictionary: None, encoding: Encoding::Plain, bytes: Vec::new(), bounds: None }
    }
}

/// Values of one type.
pub(super) trait Values: Default {
    const PHYSICAL: Physical;
    const MEANING: Meaning;
    /// Bytes of distinct texts.
    fn size(&self) -> usize {
        0
    }
    /// All of them; there is none then.
    fn take(&mut self) -> Encoded;
}

/// What integers are.
pub(super) trait Integer {
    const MEANING: Meaning;
}

/// Integers with a sign.
#[derive(Debug)]
pub(super) struct Signed;

impl Integer for Signed {
    const MEANING: Meaning = Meaning::Plain;
}

/// Addresses, of which many are above 2^63.
#[derive(Debug)]
pub(super) struct Address;

impl Integer for Address {
    const MEANING: Meaning = Meaning::Unsigned;
}

/// Times of day.
#[derive(Debug)]
pub(super) struct Time;

impl Integer for Time {
    const MEANING: Meaning = Meaning::Time;
}

/// Integers.
#[derive(Debug)]
pub(super) struct Integers<K> {
    delta: Delta,
    bounds: Option<[i64; 2]>,
    kind: PhantomData<K>,
}

impl<K> Default for Integers<K> {
    fn default() -> Self {
        Self { delta: Delta::default(), bounds: None, kind: PhantomData }
    }
}

impl<K: Integer> Integers<K> {
    pub(super) fn push(&mut self, number: i64) {
        let [least, most] = self.bounds.unwrap_or([number; 2]);
        self.bounds = Some([
            if Self::order(number) < Self::order(least) { number } else { least },
            if Self::order(number) > Self::order(most) { number } else { most },
        ]);
        self.delta.push(number);
    }

    /// A number that is compared with a sign and comes where this one does without.
    fn order(number: i64) -> i64 {
        if K::MEANING == Meaning::Unsigned { number ^ i64::MIN } else { number }
    }
}

impl<K: Integer> Values for Integers<K> {
    const PHYSICAL: Physical = Physical::Int64;
    const MEANING: Meaning = K::MEANING;

    fn take(&mut self) -> Encoded {
        if self.delta.is_empty() {
            return Encoded::nothing();
        }
        let bounds = self.bounds.take().map(|bounds| bounds.map(|bound| bound.to_le_bytes().to_vec()));
        Encoded { dictionary: None, encoding: Encoding::Delta, bytes: self.delta.take(), bounds }
    }
}

/// Yes and no.
#[derive(Debug, Default)]
pub(super) struct Flags(Vec<bool>);

impl Flags {
    pub(super) fn push(&mut self, flag: bool) {
        self.0.push(flag);
    }
}

impl Values for Flags {
    const PHYSICAL: Physical = Physical::Boolean;
    const MEANING: Meaning = Meaning::Plain;

    fn take(&mut self) -> Encoded {
        let mut bytes = Vec::new();
        let flags = || self.0.iter().copied();
        bits::pack(&mut bytes, flags().map(u64::from), 1);
        let bounds =
            flags().min().zip(flags().max()).map(|(least, most)| [vec![least.into()], vec![most.into()]]);
        self.0.clear();
        Encoded { dictionary: None, encoding: Encoding::Plain, bytes, bounds }
    }
}

/// What is kept of a text; what is longer ends there.
const LONGEST_TEXT: usize = 64 << 10;
/// Bounds that are longer are not told.
const LONGEST_BOUND: usize = 64;

/// Texts, each distinct one once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    index: Table<u128, u32>,
    /// Each with its length before it.
    entries: Vec<u8>,
    /// Where in `entries` the least and the greatest are.
    bounds: Option<[Range<usize>; 2]>,
    /// Of each value the entry.
    positions: Vec<u32>,
}

impl Texts {
    /// Adds a text; of this column, equal ones have equal numbers.
    pub(super) fn push(&mut self, id: u128, text: &str) {
        let next = self.index.len() as u32;
        let position = *self.index.entry(id).or_insert(next);
        if position == next {
            self.add(text);
        }
        self.positions.push(position);
    }

    fn add(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
        self.entries.extend_from_slice(&(text.len() as u32).to_le_bytes());
        let added = self.entries.len()..self.entries.len() + text.len();
        self.entries.extend_from_slice(text.as_bytes());
        let [least, most] = self.bounds.take().unwrap_or_else(|| [added.clone(), added.clone()]);
        let bytes = |range: &Range<usize>| &self.entries[range.clone()];
        self.bounds = Some([
            if bytes(&added) < bytes(&least) { added.clone() } else { least },
            if bytes(&added) > bytes(&most) { added } else { most },
        ]);
    }
}

impl Values for Texts {
    const PHYSICAL: Physical = Physical::ByteArray;
    const MEANING: Meaning = Meaning::Text;

    fn size(&self) -> usize {
        self.entries.len()
    }

    fn take(&mut self) -> Encoded {
        if self.positions.is_empty() {
            return Encoded::nothing();
        }
        let count = self.index.len();
        self.index.clear();
        let bounds = self.bounds.take().filter(|bounds| bounds.iter().all(|it| it.len() <= LONGEST_BOUND));
        let bounds = bounds.map(|bounds| bounds.map(|range| self.entries[range].to_vec()));
        let width = bits::width(count as u64 - 1).max(1);
        let mut bytes = vec![width as u8];
        let mut hybrid = Hybrid::new(&mut bytes, width);
        for run in self.positions.chunk_by(|a, b| a == b) {
            hybrid.push(run[0], run.len() as u32);
        }
        hybrid.finish();
        self.positions.clear();
        let entries = Entries { count, bytes: mem::take(&mut self.entries) };
        Encoded { dictionary: Some(entries), encoding: Encoding::Dictionary, bytes, bounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_meaning() {
        let mut addresses = Integers::<Address>::default();
        let mut numbers = Integers::<Signed>::default();
        for number in [5, -1, 7] {
            addresses.push(number);
            numbers.push(number);
        }
        let bounds =
            |encoded: Encoded| encoded.bounds.unwrap().map(|it| i64::from_le_bytes(it.try_into().unwrap()));
        assert_eq!(bounds(addresses.take()), [5, -1]);
        assert_eq!(bounds(numbers.take()), [-1, 7]);
        assert!(numbers.take().bounds.is_none());
    }

    #[test]
    fn texts_are_there_once() {
        let mut texts = Texts::default();
        for (id, text) in [(7, "b"), (3, "a"), (7, "b"), (9, "")] {
            texts.push(id, text);
        }
        let encoded = texts.take();
        let entries = encoded.dictionary.unwrap();
        assert_eq!((entries.count, &entries.bytes[..]), (3, b"\x01\0\0\0b\x01\0\0\0a\0\0\0\0".as_slice()));
        assert_eq!(encoded.bounds, Some([b"".to_vec(), b"b".to_vec()]));
        // 0, 1, 0, 2 with two bits each.
        assert_eq!(encoded.bytes, [2, 1 << 1 | 1, 0b1000_0100, 0]);
        assert!(texts.take().dictionary.is_none());
    }

    #[test]
    fn long_texts_end_between_characters() {
        let mut texts = Texts::default();
        texts.push(0, &"é".repeat(LONGEST_TEXT));
        texts.push(1, &format!("a{}", "é".repeat(LONGEST_TEXT)));
        assert_eq!(texts.size(), 4 + LONGEST_TEXT + 4 + LONGEST_TEXT - 1);
        assert!(texts.take().bounds.is_none());
    }
}
