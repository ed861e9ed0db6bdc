//! The values of a column: added one by one, taken as the crate `parquet` wants them.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use parquet::basic::{LogicalType, TimeUnit};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};

use crate::table::Table;

/// Values of one type.
pub(super) trait Values: Default {
    /// How they are stored.
    type Stored: DataType;
    /// What they mean; none are what they are.
    fn meaning() -> Option<LogicalType>;
    /// Bytes of distinct texts.
    fn size(&self) -> usize {
        0
    }
    /// Some of them.
    fn get(&self, range: Range<usize>) -> Cow<'_, [<Self::Stored as DataType>::T]>;
    fn clear(&mut self);
}

/// What integers are.
pub(super) trait Integer {
    fn meaning() -> Option<LogicalType>;
}

/// Integers with a sign.
#[derive(Debug)]
pub(super) struct Signed;

impl Integer for Signed {
    fn meaning() -> Option<LogicalType> {
        None
    }
}

/// Addresses, of which many are above 2^63.
#[derive(Debug)]
pub(super) struct Address;

impl Integer for Address {
    fn meaning() -> Option<LogicalType> {
        Some(LogicalType::integer(64, false))
    }
}

/// Times of day: nanoseconds since 1970 in UTC.
#[derive(Debug)]
pub(super) struct Time;

impl Integer for Time {
    fn meaning() -> Option<LogicalType> {
        Some(LogicalType::timestamp(true, TimeUnit::NANOS))
    }
}

/// Integers.
#[derive(Debug)]
pub(super) struct Integers<K> {
    numbers: Vec<i64>,
    kind: PhantomData<K>,
}

impl<K> Default for Integers<K> {
    fn default() -> Self {
        Self { numbers: Vec::new(), kind: PhantomData }
    }
}

impl<K: Integer> Integers<K> {
    pub(super) fn push(&mut self, number: i64) {
        self.numbers.push(number);
    }
}

impl<K: Integer> Values for Integers<K> {
    type Stored = Int64Type;

    fn meaning() -> Option<LogicalType> {
        K::meaning()
    }

    fn get(&self, range: Range<usize>) -> Cow<'_, [i64]> {
        Cow::Borrowed(&self.numbers[range])
    }

    fn clear(&mut self) {
        self.numbers.clear();
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
    type Stored = BoolType;

    fn meaning() -> Option<LogicalType> {
        None
    }

    fn get(&self, range: Range<usize>) -> Cow<'_, [bool]> {
        Cow::Borrowed(&self.0[range])
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// What is kept of a text; what is longer ends there.
const LONGEST_TEXT: usize = 64 << 10;

/// Texts, each distinct one once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    index: Table<u128, u32>,
    distinct: Vec<ByteArray>,
    size: usize,
    /// Of each value which one it is.
    positions: Vec<u32>,
}

impl Texts {
    /// Adds a text; of this column, equal ones have equal numbers.
    pub(super) fn push(&mut self, id: u128, text: &str) {
        let next = self.index.len() as u32;
        let position = *self.index.entry(id).or_insert(next);
        if position == next {
            let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
            self.distinct.push(text.into());
            self.size += text.len();
        }
        self.positions.push(position);
    }
}

impl Values for Texts {
    type Stored = ByteArrayType;

    fn meaning() -> Option<LogicalType> {
        Some(LogicalType::String)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn get(&self, range: Range<usize>) -> Cow<'_, [ByteArray]> {
        let text = |position: &u32| self.distinct[*position as usize].clone();
        Cow::Owned(self.positions[range].iter().map(text).collect())
    }

    fn clear(&mut self) {
        self.index.clear();
        self.distinct.clear();
        self.size = 0;
        self.positions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &Texts) -> Vec<String> {
        let all = texts.get(0..texts.positions.len());
        all.iter().map(|text| text.as_utf8().unwrap().to_owned()).collect()
    }

    #[test]
    fn texts_are_there_once() {
        let mut texts = Texts::default();
        for (id, text) in [(7, "b"), (3, "a"), (7, "b"), (9, "")] {
            texts.push(id, text);
        }
        assert_eq!(all(&texts), ["b", "a", "b", ""]);
        assert_eq!((texts.distinct.len(), texts.size()), (3, 2));
        texts.clear();
        texts.push(7, "c");
        assert_eq!((all(&texts), texts.size()), (vec!["c".to_owned()], 1));
    }

    #[test]
    fn long_texts_end_between_characters() {
        let mut texts = Texts::default();
        texts.push(0, &"é".repeat(LONGEST_TEXT));
        texts.push(1, &format!("a{}", "é".repeat(LONGEST_TEXT)));
        assert_eq!(texts.size(), LONGEST_TEXT + LONGEST_TEXT - 1);
    }
}
