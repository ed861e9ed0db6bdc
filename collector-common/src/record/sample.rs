//! One sample, and what it refers to: kinds and lists of attributes.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::ThreadId;
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

    /// The unit of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Count, Self::Nanoseconds, Self::Bytes].into_iter().find(|unit| unit.name() == name)
    }
}

/// Names a kind of sample of one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKindId(pub u16);

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
