//! Kinds of raw events: whose an event is, what it is called, and what its bytes mean.

use std::sync::Arc;

use super::SampleKindId;
use crate::event::EventFormat;
use crate::intern::StringId;

/// Names a kind of raw event of one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKindId(pub u16);

impl EventKindId {
    /// Kinds that a machine may have.
    pub(super) const MOST: usize = 1 << 16;
}

/// A kind of raw event, as `sched:sched_switch`.
#[derive(Clone, Debug)]
pub struct EventKind {
    /// What people call it, with its provider: as a rule as the kind of its samples, where it has some.
    pub name: StringId,
    /// Whose it is, as `sched`.
    pub provider: StringId,
    /// Its name with the provider, as `sched_switch`; empty where it has but a number.
    pub short_name: StringId,
    /// The provider's number of it.
    pub id: u64,
    /// Its version, importance and further facts, where the provider tells them.
    pub facts: EventFacts,
    /// What the bytes of its records mean. Without a field they are not described.
    pub format: Arc<EventFormat>,
    /// The kind of the samples that records of this kind are of.
    pub samples: Option<SampleKindId>,
}

/// What providers of ETW and `EventPipe` tell of a kind of event beside its fields: all 0 where they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFacts {
    /// Which of the event's layouts it has.
    pub version: u8,
    /// How important it is: 1 is critical, 5 is verbose.
    pub level: u8,
    /// What happened: 1 is a start, 2 a stop.
    pub opcode: u8,
    /// The provider's groups of events that it is in, a bit each.
    pub keywords: u64,
}
