//! What `perf stat record` counted (Linux 4.5).

use super::UserBody;
use crate::ids::Nanos;
use crate::perf::fields::Fields;
use crate::perf::write::Writer;
use crate::perf::{Misc, Words};

/// `PERF_RECORD_STAT_CONFIG`: how it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatConfig<'a> {
    /// Pairs of a term's number and its value.
    terms: Words<'a>,
}

impl<'a> StatConfig<'a> {
    /// The terms, `PERF_STAT_CONFIG_TERM__*`, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let mut terms = self.terms.iter();
        std::iter::from_fn(move || terms.next().zip(terms.next()))
    }

    fn term(&self, number: u64) -> Option<u64> {
        // As in perf, the last one holds.
        self.iter().filter(|(term, _)| *term == number).last().map(|(_, value)| value)
    }

    /// What the values are sums of, `enum aggr_mode`.
    pub fn aggregation(&self) -> Option<u64> {
        self.term(0)
    }

    /// Milliseconds between two rounds; 0 if there is only the last one.
    pub fn interval(&self) -> Option<u64> {
        self.term(1)
    }

    /// Whether values are scaled up by the time in which the counter did not run.
    pub fn is_scaled(&self) -> Option<bool> {
        self.term(2).map(|value| value != 0)
    }
}

impl<'a> UserBody<'a> for StatConfig<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        let count = fields.u64()?;
        Some(Self { terms: fields.words(count.checked_mul(2)?)? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.terms.len() as u64 / 2);
        writer.words(self.terms);
    }
}

/// `PERF_RECORD_STAT`: a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The event's id.
    pub id: u64,
    /// The CPU, or -1: any.
    pub cpu: i32,
    /// The place of the thread in [`super::ThreadMap`].
    pub thread: u32,
    /// The counter.
    pub value: u64,
    /// Nanoseconds for which the event was enabled.
    pub enabled: u64,
    /// Nanoseconds for which it ran.
    pub running: u64,
}

impl<'a> UserBody<'a> for Stat {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self {
            id: fields.u64()?,
            cpu: fields.u32()? as i32,
            thread: fields.u32()?,
            value: fields.u64()?,
            enabled: fields.u64()?,
            running: fields.u64()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.id);
        writer.u32(self.cpu as u32);
        writer.u32(self.thread);
        for number in [self.value, self.enabled, self.running] {
            writer.u64(number);
        }
    }
}

/// `PERF_RECORD_STAT_ROUND`: the counters of a moment have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatRound {
    /// 0: an interval has passed; 1: it is the last one. `PERF_STAT_ROUND_TYPE__*`.
    pub kind: u64,
    /// When, from the start.
    pub time: Nanos,
}

impl<'a> UserBody<'a> for StatRound {
    fn read(fields: &mut Fields<'a>, _: Misc) -> Option<Self> {
        Some(Self { kind: fields.u64()?, time: fields.nanos()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: Misc) {
        writer.u64(self.kind);
        writer.nanos(self.time);
    }
}
