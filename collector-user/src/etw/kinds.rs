//! Kinds of samples of a trace: which there are, and what one of them stands for.

use std::collections::HashMap;

use collector_common::ids::Nanos;
use collector_common::record::{EventKindId, ExportMachine, SampleKindId, Unit};

/// In place of a kind: it is no sample.
pub(super) const NONE: SampleKindId = SampleKindId(u16::MAX);

/// The most kinds.
const MOST: usize = ExportMachine::MOST_KINDS;

/// Windows' own interval between samples, where a trace tells none: 1 ms.
const DEFAULT: Nanos = Nanos(1_000_000);

#[derive(Debug)]
struct Kind {
    name: String,
    unit: Unit,
    /// 0 where it is not known.
    period: Nanos,
}

/// How often a hardware counter's samples are taken.
#[derive(Debug, Default)]
struct Counter {
    name: String,
    /// Counted events from one sample to the next; 0 where it is not known.
    interval: u32,
}

/// What a block of memory is a sample of.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockKinds {
    pub(super) alloc_space: SampleKindId,
    pub(super) alloc_objects: SampleKindId,
    /// That under which it is kept until all is known.
    pub(super) inuse_space: SampleKindId,
    pub(super) inuse_objects: SampleKindId,
}

/// All kinds of a trace.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    all: Vec<Kind>,
    /// That of CPU samples now.
    cpu: Option<SampleKindId>,
    /// What is between two of those; none where it was not told yet.
    period: Option<Nanos>,
    main: Option<SampleKindId>,
    of_events: HashMap<EventKindId, SampleKindId>,
    measured: HashMap<&'static str, SampleKindId>,
    blocks: Option<BlockKinds>,
    counters: HashMap<u32, Counter>,
    of_counters: HashMap<u32, SampleKindId>,
    left_out: u64,
}

impl Kinds {
    /// The kind of CPU samples. Of another period it is another kind.
    pub(super) fn cpu(&mut self) -> SampleKindId {
        if let Some(kind) = self.cpu {
            return kind;
        }
        let period = self.period.unwrap_or(Nanos(0));
        let name = match self.main {
            None => "cpu".to_owned(),
            Some(_) => format!("cpu, each {} us", period.0 / 1000),
        };
        let known = self.all.iter().position(|kind| kind.name == name && kind.period == period);
        let kind = match known {
            Some(known) => SampleKindId(known as u16),
            None => self.add(name, Unit::Count, period),
        };
        self.main = self.main.or(Some(kind).filter(|kind| *kind != NONE));
        self.cpu = Some(kind);
        kind
    }

    /// The time between CPU samples is told, in units of 100 ns. Those before the first time that it is told have it, too.
    pub(super) fn tell_interval(&mut self, units: u32) {
        let period = Nanos(u64::from(units) * 100);
        if period.0 == 0 || self.period == Some(period) {
            return;
        }
        match self.cpu.and_then(|cpu| self.all.get_mut(usize::from(cpu.0))) {
            Some(kind) if kind.period.0 == 0 => kind.period = period,
            // The first kind is that of its period again.
            _ => {
                let main = self.main.filter(|main| {
                    self.all.get(usize::from(main.0)).is_some_and(|kind| kind.period == period)
                });
                self.cpu = main;
            }
        }
        self.period = Some(period);
    }

    /// What is told of a hardware counter: its name, and how many events a sample stands for.
    pub(super) fn tell_counter(&mut self, source: u32, name: &str, interval: u32) {
        if self.counters.len() < MOST || self.counters.contains_key(&source) {
            let counter = self.counters.entry(source).or_default();
            counter.interval = interval;
            if !name.is_empty() {
                super::name(name).clone_into(&mut counter.name);
            }
        }
    }

    /// The kind of a hardware counter's samples, and what each stands for.
    pub(super) fn counter(&mut self, source: u32) -> (SampleKindId, i64) {
        let counter = self.counters.get(&source);
        let value = counter.map_or(1, |counter| i64::from(counter.interval.max(1)));
        if let Some(kind) = self.of_counters.get(&source) {
            return (*kind, value);
        }
        let name = counter.map(|counter| counter.name.clone()).filter(|name| !name.is_empty());
        let kind = self.add(name.unwrap_or_else(|| format!("counter {source}")), Unit::Count, Nanos(1));
        self.of_counters.insert(source, kind);
        (kind, value)
    }

    /// The kind of an event's samples.
    pub(super) fn of_event(&mut self, event: EventKindId, name: &str, unit: Unit) -> SampleKindId {
        if let Some(kind) = self.of_events.get(&event) {
            return *kind;
        }
        // Versions of an event are one kind.
        let kind = self.named(name, unit);
        self.of_events.insert(event, kind);
        kind
    }

    /// The kind of something that is measured, which has a unit of its own.
    pub(super) fn measured(&mut self, name: &'static str, unit: Unit) -> SampleKindId {
        if let Some(kind) = self.measured.get(name) {
            return *kind;
        }
        let kind = self.named(name, unit);
        self.measured.insert(name, kind);
        kind
    }

    /// Whether a kind is called so.
    pub(super) fn is_called(&self, kind: SampleKindId, name: &str) -> bool {
        self.all.get(usize::from(kind.0)).is_some_and(|kind| kind.name == name)
    }

    /// Has the kinds of blocks be there.
    pub(super) fn make_kinds_of_blocks(&mut self) {
        if self.blocks.is_none() {
            self.blocks = Some(BlockKinds {
                alloc_space: self.measured("alloc_space", Unit::Bytes),
                alloc_objects: self.measured("alloc_objects", Unit::Count),
                inuse_space: self.measured("inuse_space", Unit::Bytes),
                inuse_objects: self.measured("inuse_objects", Unit::Count),
            });
        }
    }

    /// That of system calls, where there are any.
    pub(super) fn of_calls(&self) -> Option<SampleKindId> {
        self.measured.get("syscalls").copied()
    }

    /// Those of blocks, where there are any.
    pub(super) const fn blocks(&self) -> Option<BlockKinds> {
        self.blocks
    }

    fn named(&mut self, name: &str, unit: Unit) -> SampleKindId {
        match self.all.iter().position(|kind| kind.name == name && kind.unit == unit) {
            Some(known) => SampleKindId(known as u16),
            None => self.add(name.to_owned(), unit, Nanos(1)),
        }
    }

    /// The kind that was made for an event.
    pub(super) fn made_for(&self, event: EventKindId) -> Option<SampleKindId> {
        self.of_events.get(&event).copied().filter(|kind| *kind != NONE)
    }

    /// Samples of which the kind had no room.
    pub(super) fn count_left_out(&mut self) {
        self.left_out += 1;
    }

    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether CPU samples have a period that nothing tells.
    pub(super) fn has_guessed(&self) -> bool {
        self.all.iter().any(|kind| kind.period.0 == 0)
    }

    /// Adds them all, under the numbers that they have here.
    pub(super) fn add_to(&self, machine: &mut ExportMachine) {
        for kind in &self.all {
            let period = if kind.period.0 == 0 { DEFAULT } else { kind.period };
            machine.add_kind(&kind.name, kind.unit, period.0);
        }
    }

    fn add(&mut self, name: String, unit: Unit, period: Nanos) -> SampleKindId {
        if self.all.len() >= MOST {
            return NONE;
        }
        self.all.push(Kind { name, unit, period });
        SampleKindId(self.all.len() as u16 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(kinds: &Kinds) -> Vec<(String, u64)> {
        let mut machine = ExportMachine::default();
        kinds.add_to(&mut machine);
        machine.kinds().iter().map(|kind| (machine.string(kind.name).to_owned(), kind.period)).collect()
    }

    #[test]
    fn samples_before_the_interval_is_told_have_it() {
        let mut kinds = Kinds::default();
        let first = kinds.cpu();
        assert!(kinds.has_guessed());
        assert_eq!(periods(&kinds), [("cpu".to_owned(), 1_000_000)]);
        kinds.tell_interval(2500);
        assert_eq!((kinds.cpu(), kinds.has_guessed()), (first, false));
        assert_eq!(periods(&kinds), [("cpu".to_owned(), 250_000)]);
    }

    #[test]
    fn another_interval_is_another_kind() {
        let mut kinds = Kinds::default();
        kinds.tell_interval(10_000);
        let slow = kinds.cpu();
        kinds.tell_interval(1250);
        let fast = kinds.cpu();
        kinds.tell_interval(1250);
        assert_ne!(slow, fast);
        assert_eq!(kinds.cpu(), fast);
        kinds.tell_interval(10_000);
        assert_eq!(kinds.cpu(), slow);
        kinds.tell_interval(1250);
        assert_eq!(kinds.cpu(), fast);
        let expected = [("cpu".to_owned(), 1_000_000), ("cpu, each 125 us".to_owned(), 125_000)];
        assert_eq!(periods(&kinds), expected);
    }

    #[test]
    fn what_there_is_no_room_for_is_none() {
        let mut kinds = Kinds::default();
        for event in 0..MOST as u16 + 100 {
            let kind = kinds.of_event(EventKindId(event), &event.to_string(), Unit::Count);
            assert_eq!(kind == NONE, usize::from(event) >= MOST);
        }
        assert_eq!(kinds.of_event(EventKindId(u16::MAX), "7", Unit::Count), SampleKindId(7));
    }

    #[test]
    fn a_counter_has_its_name_and_interval() {
        let mut kinds = Kinds::default();
        kinds.tell_counter(19, "LLCMisses", 65_536);
        assert_eq!(kinds.counter(19), (SampleKindId(0), 65_536));
        assert_eq!(kinds.counter(3).1, 1);
        let names: Vec<_> = periods(&kinds).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["LLCMisses", "counter 3"]);
    }
}
