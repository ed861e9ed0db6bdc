//! Samples in columns: 19 bytes each, and 8 more for kinds whose values differ, 4 more where attributes are
//! used, and 4 where raw events are kept.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::{EventRecordId, ThreadId};
use crate::ids::Nanos;
use crate::intern::{Seeded, StackId, StringId};

/// What the value of a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Occurrences.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The unit's name as pprof spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
        }
    }
}

/// Names a kind of sample of one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKindId(pub u8);

/// A kind of sample, as `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleKind {
    /// The kind's name.
    pub name: StringId,
    /// What a value of 1 means.
    pub unit: Unit,
    /// What one sample stands for in `unit`s of the period's own clock: for a sampling clock its period in
    /// nanoseconds, else 1.
    pub period: u64,
    /// Whether a sample's value is the sum of several, of which the number is not known.
    pub is_sum: bool,
}

/// Names a list of attributes; [`AttributeListId::NONE`] is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeListId(pub u32);

impl AttributeListId {
    /// No attributes.
    pub const NONE: Self = Self(0);
}

/// What an attribute says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// A text.
    Label(StringId),
    /// A number, as of bytes or of a port.
    Number(i64),
}

impl From<StringId> for AttributeValue {
    fn from(text: StringId) -> Self {
        Self::Label(text)
    }
}

/// Lists of attributes (name, value), each stored once.
#[derive(Debug)]
pub struct Attributes {
    lists: Vec<Box<[(StringId, AttributeValue)]>>,
    /// The list that is looked up; kept for its memory.
    wanted: Vec<(StringId, AttributeValue)>,
    index: HashTable<AttributeListId>,
    /// What comes, and in which order, is chosen by the recorded programs.
    hasher: Seeded,
}

impl Default for Attributes {
    fn default() -> Self {
        let mut attributes = Self {
            lists: Vec::new(),
            wanted: Vec::new(),
            index: HashTable::new(),
            hasher: Seeded::default(),
        };
        attributes.intern::<AttributeValue>(&[]);
        attributes
    }
}

impl Attributes {
    /// The id of a list, which is stored if it is new.
    pub fn intern<V: Into<AttributeValue> + Copy>(&mut self, list: &[(StringId, V)]) -> AttributeListId {
        self.wanted.clear();
        self.wanted.extend(list.iter().map(|&(name, value)| (name, value.into())));
        let hash = self.hasher.hash_one(&*self.wanted);
        let (lists, wanted) = (&self.lists, &self.wanted);
        if let Some(&id) = self.index.find(hash, |id| *lists[id.0 as usize] == **wanted) {
            return id;
        }
        let id = AttributeListId(self.lists.len() as u32);
        self.lists.push(self.wanted.as_slice().into());
        let (lists, hasher) = (&self.lists, &self.hasher);
        self.index.insert_unique(hash, id, |id| hasher.hash_one(&*lists[id.0 as usize]));
        id
    }

    /// The list behind an id; empty for an id of another set.
    pub fn get(&self, id: AttributeListId) -> &[(StringId, AttributeValue)] {
        self.lists.get(id.0 as usize).map_or(&[], |list| list)
    }
}

/// The attribute, with the value `yes`, of samples in nanoseconds that stand for others, too, which were not recorded: so much time
/// was spent so, but not at once.
pub const ESTIMATED: &str = "estimated";

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When what it tells of began, by `CLOCK_MONOTONIC`: of a time that was spent, which is the value in nanoseconds, its start.
    pub time: Nanos,
    /// The thread, with its process and name.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The CPU it was taken on.
    pub cpu: u16,
    /// Its kind, with the unit of `value`.
    pub kind: SampleKindId,
    /// How much, in the kind's unit.
    pub value: i64,
    /// Further facts.
    pub attributes: AttributeListId,
}

/// All samples of a recording, a column per field, in the order they were taken out of the rings: per CPU in
/// time order, between CPUs not.
#[derive(Debug, Default)]
pub struct Samples {
    times: Vec<Nanos>,
    threads: Vec<ThreadId>,
    stacks: Vec<StackId>,
    cpus: Vec<u16>,
    kinds: Vec<SampleKindId>,
    /// Empty while every value is 1.
    values: Vec<i64>,
    /// Empty while no sample has attributes.
    attributes: Vec<AttributeListId>,
    /// The raw event of each, [`NO_RECORD`] for none; shorter than the others where none of those that follow has one.
    records: Vec<u32>,
}

/// Stands for no raw event.
const NO_RECORD: u32 = u32::MAX;

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, sample: &Sample) {
        if sample.value != 1 && self.values.is_empty() {
            self.values = vec![1; self.times.len()];
        }
        if sample.value != 1 || !self.values.is_empty() {
            self.values.push(sample.value);
        }
        if sample.attributes != AttributeListId::NONE && self.attributes.is_empty() {
            self.attributes = vec![AttributeListId::NONE; self.times.len()];
        }
        if sample.attributes != AttributeListId::NONE || !self.attributes.is_empty() {
            self.attributes.push(sample.attributes);
        }
        self.times.push(sample.time);
        self.threads.push(sample.thread);
        self.stacks.push(sample.stack);
        self.cpus.push(sample.cpu);
        self.kinds.push(sample.kind);
    }

    /// Says that the last sample is of a raw event.
    pub fn set_record(&mut self, record: EventRecordId) {
        if let Some(last) = self.times.len().checked_sub(1) {
            self.records.resize(last, NO_RECORD);
            self.records.push(record.0);
        }
    }

    /// The raw event that the sample at a position is of.
    pub fn record(&self, index: usize) -> Option<EventRecordId> {
        self.records.get(index).filter(|&&record| record != NO_RECORD).map(|&record| EventRecordId(record))
    }

    /// Multiplies the value of the sample at a position, if there is one.
    pub fn scale(&mut self, index: usize, factor: f64) {
        if self.values.is_empty() && index < self.times.len() {
            self.values = vec![1; self.times.len()];
        }
        if let Some(value) = self.values.get_mut(index) {
            *value = (*value as f64 * factor).round() as i64;
        }
    }

    /// Gives the sample at a position another stack, if there is one.
    pub fn set_stack(&mut self, index: usize, stack: StackId) {
        if let Some(known) = self.stacks.get_mut(index) {
            *known = stack;
        }
    }

    /// The samples that `keep` takes, with the raw events that they are of.
    pub(super) fn part(&self, keep: impl Fn(&Sample) -> bool) -> Self {
        let mut part = Self::default();
        for (sample, at) in self.iter().zip(0..).filter(|(sample, _)| keep(sample)) {
            part.push(&sample);
            if let Some(record) = self.record(at) {
                part.set_record(record);
            }
        }
        part
    }

    /// Leaves out the samples that `keep` refuses. Out: the raw events that those were of.
    pub fn retain(&mut self, mut keep: impl FnMut(&Sample) -> bool) -> Vec<EventRecordId> {
        let all = std::mem::take(self);
        let mut left_out = Vec::new();
        for (sample, at) in all.iter().zip(0..) {
            let record = all.record(at);
            if keep(&sample) {
                self.push(&sample);
                if let Some(record) = record {
                    self.set_record(record);
                }
            } else {
                left_out.extend(record);
            }
        }
        left_out
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The sample at a position.
    pub fn get(&self, index: usize) -> Option<Sample> {
        (index < self.len()).then(|| self.at(index))
    }

    /// The sample at a position that is known to be there.
    ///
    /// # Panics
    /// Where there is none.
    pub fn at(&self, index: usize) -> Sample {
        Sample {
            time: self.times[index],
            thread: self.threads[index],
            stack: self.stacks[index],
            cpu: self.cpus[index],
            kind: self.kinds[index],
            value: self.values.get(index).copied().unwrap_or(1),
            attributes: self.attributes.get(index).copied().unwrap_or_default(),
        }
    }

    /// The times of all samples, in stored order.
    pub fn times(&self) -> &[Nanos] {
        &self.times
    }

    /// All samples, in stored order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        (0..self.len()).map(|index| self.at(index))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_give_back_what_was_pushed(
            rows in proptest::collection::vec((any::<u64>(), -1_i64..3, 0_u32..3), 0..50)
        ) {
            let mut samples = Samples::default();
            let rows: Vec<Sample> = rows
                .iter()
                .map(|&(time, value, list)| Sample {
                    time: Nanos(time),
                    thread: ThreadId(list),
                    stack: StackId(7),
                    cpu: 3,
                    kind: SampleKindId(0),
                    value,
                    attributes: AttributeListId(list),
                })
                .collect();
            for row in &rows {
                samples.push(row);
            }
            prop_assert_eq!(samples.iter().collect::<Vec<_>>(), rows.clone());
            let mut odd = Samples::default();
            for (row, at) in rows.iter().zip(0_u32..) {
                odd.push(row);
                if at.is_multiple_of(3) {
                    odd.set_record(EventRecordId(at));
                }
            }
            let left_out = odd.retain(|sample| sample.time.0 % 2 == 1);
            let (kept, removed): (Vec<_>, Vec<_>) = rows.iter().zip(0..).partition(|(row, _)| row.time.0 % 2 == 1);
            let of = |at: u32| at.is_multiple_of(3).then_some(EventRecordId(at));
            prop_assert_eq!(left_out, removed.iter().filter_map(|(_, at)| of(*at)).collect::<Vec<_>>());
            let records: Vec<_> = (0..odd.len()).map(|at| odd.record(at)).collect();
            prop_assert_eq!(records, kept.iter().map(|(_, at)| of(*at)).collect::<Vec<_>>());
            let expected: Vec<Sample> = rows.iter().filter(|row| row.time.0 % 2 == 1).copied().collect();
            prop_assert_eq!(odd.iter().collect::<Vec<_>>(), expected);
            for place in [0, rows.len()] {
                samples.scale(place, 2.5);
            }
            let scaled: Vec<i64> = samples.iter().map(|sample| sample.value).collect();
            let first = rows.first().map(|row| (row.value as f64 * 2.5).round() as i64);
            let expected: Vec<i64> = first.into_iter().chain(rows.iter().skip(1).map(|row| row.value)).collect();
            prop_assert_eq!(scaled, expected);
        }
    }
}
