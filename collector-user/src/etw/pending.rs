//! What happened, as far as it is known when it is met: packed as samples and events of a machine are, with threads and stacks as the
//! trace has them.

use std::collections::HashMap;
use std::io;

use collector_common::ids::{Nanos, Pid};
use collector_common::intern::{Seeded, StackId};
use collector_common::record::{
    AttributeListId, EventKindId, EventRecord, EventRecordId, EventRecords, Sample, SampleKindId, Samples,
    ThreadId,
};

use super::kinds;
use super::whose::Whose;
use crate::spill::spill;

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// When it was told of; of a time that was spent, when that ended.
    pub(super) at: Nanos,
    pub(super) whose: Whose,
    /// Whose addresses the user's half of the stack has, where that is another process.
    pub(super) space: Option<Pid>,
    /// As the trace's stacks are numbered.
    pub(super) stack: StackId,
    pub(super) cpu: u16,
    /// [`kinds::NONE`] where it is an event alone.
    pub(super) kind: SampleKindId,
    pub(super) value: i64,
    pub(super) attributes: AttributeListId,
    pub(super) event: Option<EventRecordId>,
}

/// All that happened, in the order in which it was told of.
#[derive(Debug, Default)]
pub(super) struct Pending {
    rows: Samples,
    /// Of whom a row is, and its stack.
    whose: Vec<(Whose, Option<Pid>)>,
    numbers: HashMap<(Whose, Option<Pid>), ThreadId, Seeded>,
    events: EventRecords,
    /// Blocks that were given back: a bit for each position.
    freed: Vec<u64>,
}

impl Pending {
    /// Events may take so many bytes, and the rest as many as samples of a machine, before it goes into a temporary file.
    pub(super) fn new(event_bytes: u64) -> Self {
        let mut pending = Self::default();
        spill(&mut pending.rows, Samples::LIMIT);
        pending.events.set_limit(event_bytes);
        pending
    }

    /// Keeps an event's bytes; none where there is no room, which is counted.
    pub(super) fn keep(&mut self, kind: EventKindId, payload: &[u8]) -> Option<EventRecordId> {
        self.events.push(&EventRecord { kind, ..EventRecord::default() }, payload)
    }

    /// Gives up an event's bytes.
    pub(super) fn event(&self, id: EventRecordId) -> Option<(EventKindId, &[u8])> {
        self.events.get(id).map(|(record, bytes)| (record.kind, bytes))
    }

    /// Events that there was no room for.
    pub(super) fn lost(&self) -> u64 {
        self.events.lost()
    }

    /// Adds one. Out: its position; none where there was no room for it.
    pub(super) fn push(&mut self, row: &Row) -> Option<usize> {
        let next = ThreadId(self.whose.len() as u32);
        let whose = (row.whose, row.space);
        let thread = *self.numbers.entry(whose).or_insert(next);
        if thread == next {
            self.whose.push(whose);
        }
        let &Row { at: time, stack, cpu, kind, value, attributes, .. } = row;
        let pushed = self.rows.push(&Sample { time, thread, stack, cpu, kind, value, attributes });
        if let (Some(_), Some(event)) = (pushed, row.event) {
            self.rows.set_record(event);
        }
        pushed
    }

    /// The block at a position was given back.
    pub(super) fn free(&mut self, index: usize) {
        let word = index / 64;
        if self.freed.len() <= word {
            self.freed.resize(word + 1, 0);
        }
        if let Some(word) = self.freed.get_mut(word) {
            *word |= 1 << (index % 64);
        }
    }

    /// Whether the block at a position was given back.
    pub(super) fn is_freed(&self, index: usize) -> bool {
        self.freed.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The one at a position below the length.
    pub(super) fn row(&self, index: usize) -> Option<Row> {
        let Sample { time: at, thread, stack, cpu, kind, value, attributes } = self.rows.get(index)?;
        let (whose, space) = *self.whose.get(thread.0 as usize)?;
        Some(Row { at, whose, space, stack, cpu, kind, value, attributes, event: self.rows.record(index) })
    }

    /// Tells why some could not be read back.
    pub(super) fn check(&self) -> io::Result<()> {
        self.rows.check()
    }

    /// What there was no room for.
    pub(super) fn refused(&self) -> u64 {
        self.rows.refused()
    }
}

impl Row {
    /// Of nobody, and no sample.
    pub(super) fn at(at: Nanos) -> Self {
        let (whose, stack, attributes) = (Whose::default(), StackId::EMPTY, AttributeListId::NONE);
        Self { at, whose, space: None, stack, cpu: 0, kind: kinds::NONE, value: 1, attributes, event: None }
    }

    /// Whether it is a sample, and no event alone.
    pub(super) fn is_sample(&self) -> bool {
        self.kind != kinds::NONE
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::Tid;

    use super::*;

    #[test]
    fn what_is_in_a_file_comes_back() {
        const ROWS: u64 = 20_000;
        let mut pending = Pending::new(0);
        spill(&mut pending.rows, 0);
        let row = |at| Row {
            value: at as i64,
            cpu: (at % 7) as u16,
            kind: SampleKindId(3),
            whose: Whose { pid: Some(Pid(at as u32 % 5)), tid: Some(Tid(at as u32 % 50)) },
            space: (at % 3 == 0).then_some(Pid(9)),
            ..Row::at(Nanos(at))
        };
        for at in 0..ROWS {
            assert_eq!(pending.push(&row(at)), Some(at as usize));
        }
        assert!(pending.rows.bytes_in_file() > 0, "it is in no file");
        for at in 0..ROWS {
            assert_eq!(format!("{:?}", pending.row(at as usize)), format!("{:?}", Some(row(at))));
        }
        pending.check().unwrap();
    }
}
