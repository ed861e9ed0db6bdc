//! Columns of tables: numbers of which some may be missing, and strings, each in one piece of memory.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A number of a column.
pub(super) trait Cell: Copy {
    /// Of what is missing, or is no number.
    const MISSING: Self;
    fn of(number: f64) -> Self;
}

impl Cell for f64 {
    const MISSING: Self = Self::NAN;

    fn of(number: f64) -> Self {
        number
    }
}

/// A position in a table; the greatest number for none.
impl Cell for u32 {
    const MISSING: Self = Self::MAX;

    fn of(number: f64) -> Self {
        if number >= 0.0 && number < f64::from(Self::MAX) { number as Self } else { Self::MAX }
    }
}

/// Anything, of which a number counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loose<T>(pub(super) T);

impl<'de, T: Cell> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData)).map(Self)
    }
}

struct LooseVisitor<T>(PhantomData<T>);

impl<'de, T: Cell> Visitor<'de> for LooseVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::of(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::of(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::of(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::MISSING)
    }

    fn visit_str<E>(self, _: &str) -> Result<T, E> {
        Ok(T::MISSING)
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::MISSING)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::MISSING)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(T::MISSING)
    }
}

/// A column; empty where there is none.
#[derive(Clone, Debug)]
pub(super) struct Column<T>(Vec<T>);

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Cell> Column<T> {
    /// Of a row that is not there the same as of one that has nothing.
    pub(super) fn get(&self, row: u32) -> T {
        self.0.get(row as usize).copied().unwrap_or(T::MISSING)
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'de, T: Cell> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ColumnVisitor(PhantomData)).map(Self)
    }
}

struct ColumnVisitor<T>(PhantomData<T>);

impl<'de, T: Cell> Visitor<'de> for ColumnVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut column = Vec::new();
        while let Some(Loose(cell)) = seq.next_element()? {
            column.push(cell);
        }
        Ok(column)
    }
}

/// Strings by position.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    pub(super) fn get(&self, index: u32) -> Option<&str> {
        let index = index as usize;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or_default()..end)
    }
}

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(StringsVisitor)
    }
}

struct StringsVisitor;

impl<'de> Visitor<'de> for StringsVisitor {
    type Value = Strings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strings, A::Error> {
        let mut strings = Strings::default();
        while seq.next_element_seed(Push(&mut strings))?.is_some() {}
        Ok(strings)
    }
}

/// Adds one string.
struct Push<'a>(&'a mut Strings);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Push<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, string: &str) -> Result<(), E> {
        self.0.text.push_str(string);
        self.0.ends.push(self.0.text.len());
        Ok(())
    }
}
