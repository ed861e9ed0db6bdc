//! A column of a row group on its way in: rows that have a value, and those that have none.
//!
//! How far each value is there is told by levels (`README.md` of apache/parquet-format, "Nested Encoding"): of a flat column 1 for a
//! value and 0 for none. An entry of a map is there at 2, and a second number says whether it begins a row (0) or goes on with it (1).

use std::iter;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition};
use parquet::data_type::DataType as _;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{Type, TypePtr};

use super::file::Group;
use super::values::{Texts, Values};

/// Levels that are written at once.
const AT_ONCE: usize = 1024;

/// A column of the schema.
pub(super) trait Column {
    /// What the schema has of it.
    fn schema(&self) -> Result<TypePtr>;
    /// Bytes of its distinct texts.
    fn size(&self) -> usize;
    /// Writes it into a group of so many rows; it is empty then.
    fn write(&mut self, rows: u32, group: &mut Group<'_>) -> Result<()>;
}

/// Small numbers in runs.
#[derive(Debug, Default)]
struct Levels(Vec<(i16, u32)>);

impl Levels {
    fn push(&mut self, level: i16, count: u32) {
        match self.0.last_mut() {
            Some((last, so_often)) if *last == level => *so_often += count,
            _ if count == 0 => {}
            _ => self.0.push((level, count)),
        }
    }

    fn take(&mut self) -> Vec<i16> {
        self.0.drain(..).flat_map(|(level, count)| iter::repeat_n(level, count as usize)).collect()
    }
}

/// A column of values, of which a row has one or none.
#[derive(Debug)]
pub(super) struct Leaf<V> {
    name: &'static str,
    /// Rows so far.
    rows: u32,
    levels: Levels,
    values: V,
}

impl<V: Values> Leaf<V> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, rows: 0, levels: Levels::default(), values: V::default() }
    }

    /// Rows before `row` that nothing was set in have no value.
    fn fill(&mut self, row: u32) {
        let skipped = row.saturating_sub(self.rows);
        self.levels.push(0, skipped);
        self.rows += skipped;
    }

    /// Gives a row its value, which `push` adds. Rows come in order.
    pub(super) fn set(&mut self, row: u32, push: impl FnOnce(&mut V)) {
        self.fill(row);
        self.levels.push(1, 1);
        self.rows += 1;
        push(&mut self.values);
    }
}

impl<V: Values> Column for Leaf<V> {
    fn schema(&self) -> Result<TypePtr> {
        leaf::<V>(self.name, Repetition::OPTIONAL)
    }

    fn size(&self) -> usize {
        self.values.size()
    }

    fn write(&mut self, rows: u32, group: &mut Group<'_>) -> Result<()> {
        self.fill(rows);
        self.rows = 0;
        write(&mut self.values, 1, &self.levels.take(), None, group)
    }
}

/// A column of maps from texts to values.
#[derive(Debug)]
pub(super) struct Map<V> {
    name: &'static str,
    rows: u32,
    /// Entries, and rows without any.
    count: u32,
    definition: Levels,
    repetition: Levels,
    keys: Texts,
    values: V,
}

impl<V: Values> Map<V> {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: 0,
            count: 0,
            definition: Levels::default(),
            repetition: Levels::default(),
            keys: Texts::default(),
            values: V::default(),
        }
    }

    fn fill(&mut self, row: u32) {
        let skipped = row.saturating_sub(self.rows);
        self.definition.push(0, skipped);
        self.repetition.push(0, skipped);
        self.count += skipped;
        self.rows += skipped;
    }

    /// Adds an entry to a row, whose value `push` adds. Rows come in order.
    pub(super) fn add(&mut self, row: u32, key: (u128, &str), push: impl FnOnce(&mut V)) {
        self.fill(row);
        let is_first = self.rows == row;
        self.rows = row + 1;
        self.definition.push(2, 1);
        self.repetition.push((!is_first).into(), 1);
        self.count += 1;
        self.keys.push(key.0, key.1);
        push(&mut self.values);
    }

    /// Entries so far, and rows without any.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

impl<V: Values> Column for Map<V> {
    fn schema(&self) -> Result<TypePtr> {
        let (key, value) =
            (leaf::<Texts>("key", Repetition::REQUIRED)?, leaf::<V>("value", Repetition::REQUIRED)?);
        let entries = Type::group_type_builder("key_value")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![key, value]);
        let map = Type::group_type_builder(self.name)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::Map))
            .with_fields(vec![Arc::new(entries.build()?)]);
        Ok(Arc::new(map.build()?))
    }

    fn size(&self) -> usize {
        self.keys.size() + self.values.size()
    }

    fn write(&mut self, rows: u32, group: &mut Group<'_>) -> Result<()> {
        self.fill(rows);
        (self.rows, self.count) = (0, 0);
        let (definition, repetition) = (self.definition.take(), self.repetition.take());
        write(&mut self.keys, 2, &definition, Some(&repetition), group)?;
        write(&mut self.values, 2, &definition, Some(&repetition), group)
    }
}

/// What the schema has of a column of values.
fn leaf<V: Values>(name: &str, repetition: Repetition) -> Result<TypePtr> {
    let leaf = Type::primitive_type_builder(name, V::Stored::get_physical_type())
        .with_repetition(repetition)
        .with_logical_type(V::meaning());
    Ok(Arc::new(leaf.build()?))
}

/// Writes values, which are there where the level is `there`; they are empty then. Rows that are written at once are whole.
fn write<V: Values>(
    values: &mut V,
    there: i16,
    definition: &[i16],
    repetition: Option<&[i16]>,
    group: &mut Group<'_>,
) -> Result<()> {
    let next = group.next_column()?;
    let mut column = next.ok_or_else(|| ParquetError::General("a column that the schema lacks".into()))?;
    let writer = column.typed::<V::Stored>();
    let begins_row = |at: usize| repetition.and_then(|levels| levels.get(at)).is_none_or(|level| *level == 0);
    let (mut begin, mut taken) = (0, 0);
    while begin < definition.len() {
        let mut end = (begin + AT_ONCE).min(definition.len());
        while !begins_row(end) {
            end += 1;
        }
        let levels = &definition[begin..end];
        let count = levels.iter().filter(|level| **level == there).count();
        let repetition = repetition.map(|levels| &levels[begin..end]);
        writer.write_batch(&values.get(taken..taken + count), Some(levels), repetition)?;
        (begin, taken) = (end, taken + count);
    }
    values.clear();
    column.close()
}
