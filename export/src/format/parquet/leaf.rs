//! A column of a row group on its way in: rows that have a value, and those that have none.
//!
//! How far each value is there is told by levels (`README.md` of apache/parquet-format, "Nested Encoding"): of a flat column 1 for a
//! value and 0 for none. An entry of a map is there at 2, and a second number says whether it begins a row (0) or goes on with it (1).

use super::bits;
use super::file::{Chunk, Element, Repetition};
use super::hybrid::Hybrid;
use super::values::{Meaning, Texts, Values};

/// A column of the schema.
pub(super) trait Column {
    /// Appends it to the schema.
    fn schema(&self, schema: &mut Vec<Element>);
    /// Bytes of its distinct texts.
    fn size(&self) -> usize;
    /// What is stored of it in a group of so many rows; it is empty then.
    fn take(&mut self, rows: u32) -> Vec<Chunk>;
}

/// Small numbers in runs.
#[derive(Debug, Default)]
struct Levels(Vec<(u32, u32)>);

impl Levels {
    fn push(&mut self, level: u32, count: u32) {
        match self.0.last_mut() {
            Some((last, so_often)) if *last == level => *so_often += count,
            _ if count == 0 => {}
            _ => self.0.push((level, count)),
        }
    }

    /// As a page has them: their length before them.
    fn take(&mut self, most: u32, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut hybrid = Hybrid::new(out, bits::width(most.into()));
        self.0.drain(..).for_each(|(level, count)| hybrid.push(level, count));
        hybrid.finish();
        let length = (out.len() - begin - 4) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A column of values, of which a row has one or none.
#[derive(Debug)]
pub(super) struct Leaf<V> {
    name: &'static str,
    /// Rows so far.
    rows: u32,
    nulls: u32,
    levels: Levels,
    values: V,
}

impl<V: Values> Leaf<V> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, rows: 0, nulls: 0, levels: Levels::default(), values: V::default() }
    }

    /// Rows before `row` that nothing was set in have no value.
    fn fill(&mut self, row: u32) {
        let skipped = row.saturating_sub(self.rows);
        self.levels.push(0, skipped);
        self.nulls += skipped;
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
    fn schema(&self, schema: &mut Vec<Element>) {
        schema.push(Element::leaf::<V>(self.name, Repetition::Optional));
    }

    fn size(&self) -> usize {
        self.values.size()
    }

    fn take(&mut self, rows: u32) -> Vec<Chunk> {
        self.fill(rows);
        let mut levels = Vec::new();
        self.levels.take(1, &mut levels);
        let chunk = Chunk {
            path: vec![self.name],
            physical: V::PHYSICAL,
            count: self.rows,
            nulls: self.nulls,
            levels,
            encoded: self.values.take(),
        };
        (self.rows, self.nulls) = (0, 0);
        vec![chunk]
    }
}

/// A column of maps from text to text.
#[derive(Debug)]
pub(super) struct Map {
    name: &'static str,
    rows: u32,
    /// Entries, and rows without any.
    count: u32,
    nulls: u32,
    definition: Levels,
    repetition: Levels,
    keys: Texts,
    values: Texts,
}

const ENTRIES: &str = "key_value";
const KEY: &str = "key";
const VALUE: &str = "value";

impl Map {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: 0,
            count: 0,
            nulls: 0,
            definition: Levels::default(),
            repetition: Levels::default(),
            keys: Texts::default(),
            values: Texts::default(),
        }
    }

    fn fill(&mut self, row: u32) {
        let skipped = row.saturating_sub(self.rows);
        self.definition.push(0, skipped);
        self.repetition.push(0, skipped);
        self.nulls += skipped;
        self.count += skipped;
        self.rows += skipped;
    }

    /// Adds an entry to a row. Rows come in order.
    pub(super) fn add(&mut self, row: u32, key: (u128, &str), value: (u128, &str)) {
        self.fill(row);
        let is_first = self.rows == row;
        self.rows = row + 1;
        self.definition.push(2, 1);
        self.repetition.push(u32::from(!is_first), 1);
        self.count += 1;
        self.keys.push(key.0, key.1);
        self.values.push(value.0, value.1);
    }

    /// Entries so far, and rows without any.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

impl Column for Map {
    fn schema(&self, schema: &mut Vec<Element>) {
        schema.push(Element { is_map: true, ..Element::group(self.name, Repetition::Optional, 1) });
        schema.push(Element::group(ENTRIES, Repetition::Repeated, 2));
        schema.push(Element::leaf::<Texts>(KEY, Repetition::Required));
        schema.push(Element::leaf::<Texts>(VALUE, Repetition::Required));
    }

    fn size(&self) -> usize {
        self.keys.size() + self.values.size()
    }

    fn take(&mut self, rows: u32) -> Vec<Chunk> {
        self.fill(rows);
        let mut levels = Vec::new();
        self.repetition.take(1, &mut levels);
        self.definition.take(2, &mut levels);
        let chunk = |field, texts: &mut Texts| Chunk {
            path: vec![self.name, ENTRIES, field],
            physical: Texts::PHYSICAL,
            count: self.count,
            nulls: self.nulls,
            levels: levels.clone(),
            encoded: texts.take(),
        };
        let chunks = vec![chunk(KEY, &mut self.keys), chunk(VALUE, &mut self.values)];
        (self.rows, self.count, self.nulls) = (0, 0, 0);
        chunks
    }
}

impl Element {
    fn leaf<V: Values>(name: &'static str, repetition: Repetition) -> Self {
        let repetition = Some(repetition);
        Self {
            name,
            repetition,
            physical: Some(V::PHYSICAL),
            meaning: V::MEANING,
            children: 0,
            is_map: false,
        }
    }

    fn group(name: &'static str, repetition: Repetition, children: i32) -> Self {
        Self { repetition: Some(repetition), ..Self::all(name, children) }
    }

    /// What holds all columns.
    pub(super) fn all(name: &'static str, children: i32) -> Self {
        Self { name, repetition: None, physical: None, meaning: Meaning::Plain, children, is_map: false }
    }
}
