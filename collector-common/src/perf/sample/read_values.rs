//! Counter values: `struct read_format` of `perf_event.h`, in samples and in records of their own.

use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{ReadFormat, SampleType, Words};

/// The value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadValue {
    /// What was counted.
    pub value: u64,
    /// The event's id, with [`ReadFormat::ID`].
    pub id: Option<u64>,
    /// Records lost, with [`ReadFormat::LOST`].
    pub lost: Option<u64>,
}

/// The values of a group of counters, the leader's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupValues<'a> {
    words: Words<'a>,
    format: ReadFormat,
}

impl<'a> GroupValues<'a> {
    /// Of numbers that are laid out as `format` says: for each counter its value, id and number of lost records,
    /// the latter two if the format has them. Numbers behind the last whole counter are left out.
    pub fn new(words: Words<'a>, format: ReadFormat) -> Self {
        Self { words, format: format.and(ReadFormat::ID | ReadFormat::LOST) }
    }

    /// How many counters there are.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn stride(&self) -> usize {
        1 + self.format.0.count_ones() as usize
    }

    /// Counter by counter.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + use<'a> {
        let mut words = self.words.iter();
        let format = self.format;
        std::iter::from_fn(move || {
            let value = words.next()?;
            let id = if format.contains(ReadFormat::ID) { Some(words.next()?) } else { None };
            let lost = if format.contains(ReadFormat::LOST) { Some(words.next()?) } else { None };
            Some(ReadValue { value, id, lost })
        })
    }
}

/// One counter, or all of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters<'a> {
    /// The event's own.
    One(ReadValue),
    /// Those of its group.
    Group(GroupValues<'a>),
}

/// What `read(2)` on the event would have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValues<'a> {
    /// Nanoseconds for which it was enabled.
    pub time_enabled: Option<u64>,
    /// Nanoseconds for which it counted.
    pub time_running: Option<u64>,
    /// The values.
    pub counters: Counters<'a>,
}

impl<'a> ReadValues<'a> {
    /// Counter by counter.
    pub fn iter(&self) -> impl Iterator<Item = ReadValue> + use<'a> {
        let (one, group) = match self.counters {
            Counters::One(value) => (Some(value), None),
            Counters::Group(values) => (None, Some(values.iter())),
        };
        one.into_iter().chain(group.into_iter().flatten())
    }

    pub(in crate::perf) fn read(fields: &mut Fields<'a>, format: ReadFormat) -> Option<Self> {
        let is_group = format.contains(ReadFormat::GROUP);
        let first = fields.u64()?;
        let mut optional = |bit| {
            if format.contains(bit) { fields.u64().map(Some) } else { Some(None) }
        };
        let time_enabled = optional(ReadFormat::TOTAL_TIME_ENABLED)?;
        let time_running = optional(ReadFormat::TOTAL_TIME_RUNNING)?;
        let counters = if is_group {
            let mut values = GroupValues::new(Words::default(), format);
            values.words = fields.words(first.checked_mul(values.stride() as u64)?)?;
            Counters::Group(values)
        } else {
            let (id, lost) = (optional(ReadFormat::ID)?, optional(ReadFormat::LOST)?);
            Counters::One(ReadValue { value: first, id, lost })
        };
        Some(Self { time_enabled, time_running, counters })
    }

    pub(in crate::perf) fn write(
        &self,
        writer: &mut Writer<'_>,
        format: ReadFormat,
    ) -> Result<(), WriteError> {
        let is_group = matches!(self.counters, Counters::Group(_));
        let mut fits = is_group == format.contains(ReadFormat::GROUP);
        match self.counters {
            Counters::One(value) => writer.u64(value.value),
            Counters::Group(values) => writer.u64(values.len() as u64),
        }
        let mut optional = |writer: &mut Writer<'_>, bit, value: Option<u64>| {
            fits &= format.contains(bit) == value.is_some();
            if let Some(value) = value {
                writer.u64(value);
            }
        };
        optional(writer, ReadFormat::TOTAL_TIME_ENABLED, self.time_enabled);
        optional(writer, ReadFormat::TOTAL_TIME_RUNNING, self.time_running);
        for counter in self.iter() {
            if is_group {
                writer.u64(counter.value);
            }
            optional(writer, ReadFormat::ID, counter.id);
            optional(writer, ReadFormat::LOST, counter.lost);
        }
        if fits { Ok(()) } else { Err(WriteError::Layout(SampleType::READ)) }
    }
}
