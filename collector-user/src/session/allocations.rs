//! Blocks of memory: what was allocated, and in the end what of it was not freed, by the stacks that asked for it.

use collector_common::ids::{Nanos, Pid};
use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ProcessId, SampleKindId, Unit};
use collector_common::wire::{Allocation, SampleFlags, SampleHeader};
use rustc_hash::FxHashMap;

use super::dispatch::attributes;
use super::program_records::{Output, ProgramRecords};
use crate::recorder::{Recorder, Taken, context_of};
use crate::scenario::AllocatedBlock;
use crate::source::SourceRecord;

/// Kinds of sample beside the event's own, in which blocks have the bytes that they stand for.
#[derive(Clone, Copy)]
struct Kinds {
    allocated_blocks: SampleKindId,
    /// Of these, what was not freed.
    live_bytes: SampleKindId,
    live_blocks: SampleKindId,
    /// Of those, what is likely never to be.
    leaked_bytes: SampleKindId,
}

/// What tells a block from others, before and after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    since: Nanos,
    pid: Pid,
    address: u64,
}

/// A block that is not freed.
#[derive(Clone, Copy)]
struct Live {
    taken: Taken,
    process: ProcessId,
    bytes: u64,
}

/// What blocks that one process asked for with one stack have come to.
#[derive(Clone, Copy)]
struct Fate {
    first: Nanos,
    last: Nanos,
    blocks: u64,
    freed: u64,
}

impl Fate {
    /// Whether a process goes on allocating there for half of its time, in nanoseconds, and frees next to nothing of it.
    fn is_leak(&self, all: u64) -> bool {
        const FEWEST: u64 = 8;
        const MOST_FREED: u64 = 10;
        self.blocks >= FEWEST
            && self.freed * MOST_FREED <= self.blocks
            && self.last.0 - self.first.0 >= all / 2
    }
}

/// What is known of blocks.
pub(super) struct Allocations {
    /// Of so many bytes one is recorded.
    period: u64,
    kinds: Kinds,
    live: FxHashMap<Key, Live>,
    /// What was freed in this round: in the rings of other CPUs there may be when it was allocated.
    freed: Vec<Key>,
    fates: FxHashMap<(ProcessId, StackId), Fate>,
    /// When each process was seen to allocate first.
    first: FxHashMap<ProcessId, Nanos>,
}

impl Allocations {
    pub(super) fn new(period: u64, recorder: &mut Recorder) -> Self {
        let mut kind = |name, unit| recorder.add_kind(name, unit, 1);
        let kinds = Kinds {
            allocated_blocks: kind("alloc_objects", Unit::Count),
            live_bytes: kind("inuse_space", Unit::Bytes),
            live_blocks: kind("inuse_objects", Unit::Count),
            leaked_bytes: kind("likely_leaks", Unit::Bytes),
        };
        Self {
            period,
            kinds,
            live: FxHashMap::default(),
            freed: Vec::new(),
            fates: FxHashMap::default(),
            first: FxHashMap::default(),
        }
    }
}

impl ProgramRecords for Allocations {
    fn take(&mut self, output: &mut Output<'_>, record: &SourceRecord<'_>) -> bool {
        let header = record.header;
        let Allocation { address, bytes, since, is_kept } = data_of(header);
        let key = Key { since: Nanos(since), pid: Pid(header.pid), address };
        if header.flags().has(SampleFlags::BACK) {
            self.freed.push(key);
            return false;
        }
        let weight = stands_for(bytes, self.period);
        let data = AllocatedBlock { bytes, address, weight };
        if !output.process(&context_of(record), bytemuck::bytes_of(&data)) {
            return false;
        }
        let Some(taken) = output.recorder.take_stack(record) else { return false };
        let [all_bytes, all_blocks] = values(bytes, weight);
        output.recorder.add_sample(output.kind, taken, all_bytes, AttributeListId::NONE);
        output.recorder.add_sample(self.kinds.allocated_blocks, taken, all_blocks, AttributeListId::NONE);
        output.recorder.deliver(&taken);
        if is_kept != 0 {
            let process = output.recorder.machine().thread(taken.thread).process;
            self.live.insert(key, Live { taken, process, bytes });
            let new = Fate { first: taken.time, last: taken.time, blocks: 0, freed: 0 };
            let fate = self.fates.entry((process, taken.stack)).or_insert(new);
            let first = self.first.entry(process).or_insert(taken.time);
            *first = taken.time.min(*first);
            fate.blocks += 1;
            (fate.first, fate.last) = (fate.first.min(taken.time), fate.last.max(taken.time));
        }
        true
    }

    fn end_round(&mut self, _: &mut Output<'_>) {
        for key in self.freed.drain(..) {
            let live = self.live.remove(&key);
            let freed = live.and_then(|live| self.fates.get_mut(&(live.process, live.taken.stack)));
            if let Some(fate) = freed {
                fate.freed += 1;
            }
        }
    }

    fn finish(&mut self, output: &mut Output<'_>, stopping: Nanos) {
        let recorder = &mut *output.recorder;
        let mut live: Vec<_> = self.live.drain().collect();
        live.sort_by_key(|(key, _)| *key);
        for (_, Live { taken, process, bytes }) in live {
            // Another program of the same process has another memory.
            if recorder.has_executed_since(taken.thread, taken.time) {
                continue;
            }
            let ended = recorder.machine().process(process).end;
            let until = if ended.is_some() { "exit" } else { "end of the recording" };
            let last = ended.unwrap_or(stopping).min(stopping);
            let all = last.0.saturating_sub(self.first.get(&process).map_or(0, |first| first.0));
            let attributes = attributes(recorder, &[("until", until)], &[]);
            let [all_bytes, all_blocks] = values(bytes, stands_for(bytes, self.period));
            recorder.add_sample(self.kinds.live_bytes, taken, all_bytes, attributes);
            recorder.add_sample(self.kinds.live_blocks, taken, all_blocks, attributes);
            if self.fates.get(&(process, taken.stack)).is_some_and(|fate| fate.is_leak(all)) {
                recorder.add_sample(self.kinds.leaked_bytes, taken, all_bytes, attributes);
            }
        }
    }
}

/// How many a recorded one of these bytes stands for, where one is recorded of so many bytes: the reciprocal of the probability
/// that it is.
pub(super) fn stands_for(bytes: u64, period: u64) -> f64 {
    if period <= 1 {
        return 1.0;
    }
    let chance = -(-(bytes.max(1) as f64) / period as f64).exp_m1();
    chance.recip()
}

/// Bytes and blocks that a recorded block stands for.
pub(super) fn values(bytes: u64, weight: f64) -> [i64; 2] {
    [(bytes as f64 * weight).round() as i64, weight.round() as i64]
}

/// What a record has in the first words of its data.
pub(super) fn data_of(header: &SampleHeader) -> Allocation {
    let [address, bytes, since, is_kept, ..] = header.data;
    Allocation { address, bytes, since, is_kept }
}
