//! Raw event records: what happened, to whom, when and where, with the bytes that the source wrote, in columns and one arena.
//!
//! ```text
//! columns (24 bytes a record)         arena, in chunks of 1 MiB
//! time thread stack cpu kind place ─► [length u32][bytes][to a multiple of 4]
//! ```
//!
//! A record takes 28 bytes and its own, rounded up to 4, and 4 more where records have attributes. What all of them may take is
//! limited: what there is no room for is refused and counted.

use super::{AttributeListId, EventKindId, Sample, ThreadId};
use crate::ids::Nanos;
use crate::intern::StackId;

/// Bytes of the arena that lie side by side. A record's bytes are within one chunk.
const CHUNK: usize = 1 << 20;

/// Bytes by which places in the arena are counted.
const STEP: usize = 4;

/// Bytes of a record in all columns, without attributes.
const IN_COLUMNS: u64 = 24;

/// Names a record of one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRecordId(pub u32);

/// One raw event, without its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRecord {
    /// When it happened, by `CLOCK_MONOTONIC`.
    pub time: Nanos,
    /// The thread, with its process and name.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The CPU.
    pub cpu: u16,
    /// What happened.
    pub kind: EventKindId,
    /// Further facts.
    pub attributes: AttributeListId,
}

/// All raw events of a recording, in the order in which they were added.
#[derive(Debug)]
pub struct EventRecords {
    times: Vec<Nanos>,
    threads: Vec<ThreadId>,
    stacks: Vec<StackId>,
    cpus: Vec<u16>,
    kinds: Vec<EventKindId>,
    /// Where the bytes are, in steps.
    places: Vec<u32>,
    /// Empty while no record has attributes.
    attributes: Vec<AttributeListId>,
    /// Those that were left out again; in order.
    removed: Vec<EventRecordId>,
    chunks: Vec<Vec<u8>>,
    limit: u64,
    lost: u64,
    not_asked_for: u64,
}

impl Default for EventRecords {
    fn default() -> Self {
        Self {
            times: Vec::new(),
            threads: Vec::new(),
            stacks: Vec::new(),
            cpus: Vec::new(),
            kinds: Vec::new(),
            places: Vec::new(),
            attributes: Vec::new(),
            removed: Vec::new(),
            chunks: Vec::new(),
            limit: Self::LIMIT,
            lost: 0,
            not_asked_for: 0,
        }
    }
}

impl EventRecords {
    /// The most bytes of memory that records take, unless [`Self::set_limit`] says otherwise: 256 MiB.
    pub const LIMIT: u64 = 256 << 20;

    /// The most bytes that a record has.
    pub const LARGEST: usize = CHUNK - STEP;

    /// Sets the most bytes of memory that records take. Chunks of the arena are whole, and columns have room to grow: up to twice
    /// their part, and 1 MiB, may be set aside beyond.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// Bytes that the records take.
    pub fn bytes(&self) -> u64 {
        let arena = self.chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        self.times.len() as u64 * IN_COLUMNS + self.attributes.len() as u64 * 4 + arena
    }

    /// Whether there is room for one more with so many bytes. Where there is none, it is counted as lost.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        // Chunks are counted as if all were full, which all but the last nearly are.
        let arena = self.chunks.len().saturating_sub(1) as u64 * CHUNK as u64
            + self.chunks.last().map_or(0, |chunk| chunk.len() as u64);
        let columns = self.times.len() as u64 * IN_COLUMNS + self.attributes.len() as u64 * 4;
        let own = IN_COLUMNS + (bytes + STEP) as u64;
        let is_place = self.chunks.len() < u32::MAX as usize / (CHUNK / STEP);
        let has_room = bytes <= Self::LARGEST
            && columns + arena + own <= self.limit
            && is_place
            && self.times.len() < u32::MAX as usize;
        self.lost += u64::from(!has_room);
        has_room
    }

    /// Counts one that was met, and that nothing was to be kept of.
    pub fn pass_over(&mut self) {
        self.not_asked_for += 1;
    }

    /// How many were met that nothing was to be kept of. Those are no losses: no output has a place for them.
    pub fn not_asked_for(&self) -> u64 {
        self.not_asked_for
    }

    /// Adds a record with its bytes; `None` where there is no room.
    pub fn push(&mut self, record: &EventRecord, bytes: &[u8]) -> Option<EventRecordId> {
        if !self.has_room(bytes.len()) {
            return None;
        }
        if record.attributes != AttributeListId::NONE && self.attributes.is_empty() {
            self.attributes = vec![AttributeListId::NONE; self.times.len()];
        }
        if record.attributes != AttributeListId::NONE || !self.attributes.is_empty() {
            self.attributes.push(record.attributes);
        }
        let id = EventRecordId(self.times.len() as u32);
        let place = self.store(bytes);
        self.places.push(place);
        self.times.push(record.time);
        self.threads.push(record.thread);
        self.stacks.push(record.stack);
        self.cpus.push(record.cpu);
        self.kinds.push(record.kind);
        Some(id)
    }

    /// Puts bytes, which are not too many, into the arena.
    fn store(&mut self, bytes: &[u8]) -> u32 {
        let needed = (STEP + bytes.len()).next_multiple_of(STEP);
        if self.chunks.last().is_none_or(|chunk| chunk.len() + needed > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * (CHUNK / STEP);
        let Some(chunk) = self.chunks.last_mut() else { return 0 };
        let start = chunk.len();
        chunk.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
        chunk.extend_from_slice(bytes);
        chunk.resize(start + needed, 0);
        (before + start / STEP) as u32
    }

    /// Has a record be where its sample is: at its time, of its thread, with its stack, CPU and attributes.
    pub(super) fn follow(&mut self, id: EventRecordId, sample: &Sample) {
        let at = id.0 as usize;
        let (Some(time), Some(thread), Some(stack), Some(cpu)) = (
            self.times.get_mut(at),
            self.threads.get_mut(at),
            self.stacks.get_mut(at),
            self.cpus.get_mut(at),
        ) else {
            return;
        };
        (*time, *thread, *stack, *cpu) = (sample.time, sample.thread, sample.stack, sample.cpu);
        if sample.attributes != AttributeListId::NONE && self.attributes.is_empty() {
            self.attributes = vec![AttributeListId::NONE; self.times.len()];
        }
        if let Some(attributes) = self.attributes.get_mut(at) {
            *attributes = sample.attributes;
        }
    }

    /// Gives each record the stack that `change` has for its time and stack.
    pub fn change_stacks(&mut self, mut change: impl FnMut(Nanos, StackId) -> StackId) {
        for (stack, &time) in self.stacks.iter_mut().zip(&self.times) {
            *stack = change(time, *stack);
        }
    }

    /// Leaves a record out of [`Self::iter`] and of what is replayed.
    pub fn remove(&mut self, id: EventRecordId) {
        if let Err(at) = self.removed.binary_search(&id) {
            self.removed.insert(at, id);
        }
    }

    /// Leaves out the records of some threads, too. Out: what was left out before.
    pub(super) fn hide(&mut self, is_hidden: impl Fn(ThreadId) -> bool) -> Vec<EventRecordId> {
        let removed = std::mem::take(&mut self.removed);
        let ids = (0..).map(EventRecordId).zip(&self.threads);
        let hidden = ids.filter(|(id, thread)| is_hidden(**thread) || removed.binary_search(id).is_ok());
        self.removed = hidden.map(|(id, _)| id).collect();
        removed
    }

    /// Leaves out these, which are in order, and no others.
    pub(super) fn show_all_but(&mut self, removed: Vec<EventRecordId>) {
        self.removed = removed;
    }

    /// Whether a record was left out.
    pub fn is_removed(&self, id: EventRecordId) -> bool {
        self.removed.binary_search(&id).is_ok()
    }

    /// Number of records, with those that were left out again.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Records that there was no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// A record and its bytes.
    pub fn get(&self, id: EventRecordId) -> Option<(EventRecord, &[u8])> {
        let at = id.0 as usize;
        let record = EventRecord {
            time: *self.times.get(at)?,
            thread: *self.threads.get(at)?,
            stack: *self.stacks.get(at)?,
            cpu: *self.cpus.get(at)?,
            kind: *self.kinds.get(at)?,
            attributes: self.attributes.get(at).copied().unwrap_or_default(),
        };
        let place = *self.places.get(at)? as usize;
        let chunk = self.chunks.get(place / (CHUNK / STEP))?;
        let (length, rest) = chunk.get(place % (CHUNK / STEP) * STEP..)?.split_first_chunk()?;
        Some((record, rest.get(..u32::from_ne_bytes(*length) as usize)?))
    }

    /// The times of all records, with those that were left out again.
    pub fn times(&self) -> &[Nanos] {
        &self.times
    }

    /// All records that were not left out, with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (EventRecordId, EventRecord, &[u8])> {
        let ids = (0..self.times.len() as u32).map(EventRecordId).filter(|id| !self.is_removed(*id));
        ids.filter_map(|id| self.get(id).map(|(record, bytes)| (id, record, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(time: u64, attributes: u32) -> EventRecord {
        EventRecord {
            time: Nanos(time),
            thread: ThreadId(time as u32),
            stack: StackId(9),
            cpu: 3,
            kind: EventKindId(time as u16),
            attributes: AttributeListId(attributes),
        }
    }

    proptest! {
        #[test]
        fn records_come_back_as_they_were_added(
            rows in proptest::collection::vec((any::<u64>(), 0_u32..3, proptest::collection::vec(any::<u8>(), 0..9)), 0..40)
        ) {
            let mut records = EventRecords::default();
            for (time, list, bytes) in &rows {
                prop_assert!(records.push(&record(*time, *list), bytes).is_some());
            }
            let read: Vec<_> = records.iter().map(|(_, of, bytes)| (of, bytes.to_vec())).collect();
            let expected: Vec<_> = rows.iter().map(|(time, list, bytes)| (record(*time, *list), bytes.clone())).collect();
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_record_is_where_its_sample_is() {
        let mut records = EventRecords::default();
        let ids: Vec<_> = (0..3).filter_map(|time| records.push(&record(time, 0), b"own")).collect();
        let attributes = AttributeListId(5);
        let (time, thread, stack) = (Nanos(70), ThreadId(71), StackId(72));
        let sample = Sample { time, thread, stack, cpu: 73, attributes, ..Sample::default() };
        records.follow(ids[1], &sample);
        let moved = EventRecord { time, thread, stack, cpu: 73, attributes, ..record(1, 0) };
        let all: Vec<_> = records.iter().map(|(_, of, bytes)| (of, bytes)).collect();
        assert_eq!(all, [(record(0, 0), &b"own"[..]), (moved, b"own"), (record(2, 0), b"own")]);
        records.follow(ids[1], &Sample { attributes: AttributeListId::NONE, ..sample });
        records.follow(EventRecordId(9), &sample);
        records.change_stacks(|time, stack| if time == Nanos(2) { StackId(8) } else { stack });
        let all: Vec<_> = records.iter().map(|(_, of, _)| (of.stack, of.attributes)).collect();
        assert_eq!(all, [9, 72, 8].map(|stack| (StackId(stack), AttributeListId::NONE)));
    }

    #[test]
    fn bytes_do_not_lie_across_chunks() {
        let mut records = EventRecords::default();
        let sizes = [CHUNK / 2, CHUNK / 2, EventRecords::LARGEST, 0, 7];
        for (size, fill) in sizes.into_iter().zip(1..) {
            assert!(records.push(&record(1, 0), &vec![fill; size]).is_some());
        }
        for ((_, _, bytes), (size, fill)) in records.iter().zip(sizes.into_iter().zip(1_u8..)) {
            assert!(bytes.len() == size && bytes.iter().all(|&byte| byte == fill));
        }
        assert_eq!(records.chunks.len(), 4);
        assert!(records.push(&record(1, 0), &vec![0; EventRecords::LARGEST + 1]).is_none());
        assert_eq!((records.len(), records.lost()), (5, 1));
    }

    /// 24 bytes in columns, 4 of length, and 12.
    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut records = EventRecords::default();
        records.set_limit(400);
        let kept = (0..25).filter(|&time| records.push(&record(time, 0), &[7; 10]).is_some()).count();
        assert_eq!((kept, records.lost(), records.bytes()), (10, 15, 400));
    }

    #[test]
    fn a_record_that_is_left_out_is_not_replayed() {
        let mut records = EventRecords::default();
        let ids: Vec<_> = (0..3).filter_map(|time| records.push(&record(time, 0), &[])).collect();
        records.remove(ids[1]);
        records.remove(ids[1]);
        let left: Vec<_> = records.iter().map(|(id, ..)| id).collect();
        assert_eq!(left, [ids[0], ids[2]]);
        assert!(records.is_removed(ids[1]) && records.len() == 3);
    }
}
