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
        let [all_bytes, all_blocks] = values(bytes, weight, draw(since, address));
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
        for (key, Live { taken, process, bytes }) in live {
            // Another program of the same process has another memory.
            if recorder.has_executed_since(taken.thread, taken.time) {
                continue;
            }
            let ended = recorder.machine().process(process).end;
            let until = if ended.is_some() { "exit" } else { "end of the recording" };
            let last = ended.unwrap_or(stopping).min(stopping);
            let all = last.0.saturating_sub(self.first.get(&process).map_or(0, |first| first.0));
            let attributes = attributes(recorder, &[("until", until)], &[]);
            let weight = stands_for(bytes, self.period);
            let [all_bytes, all_blocks] = values(bytes, weight, draw(key.since.0, key.address));
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

/// Bytes and blocks that a recorded block stands for, as whole numbers. Each is the next lower or higher one by a draw from 0 up to 1,
/// so that sums of many have no bias: blocks of about the distance stand for less than two each.
pub(super) fn values(bytes: u64, weight: f64, draw: f64) -> [i64; 2] {
    let whole = |value: f64| value.floor() as i64 + i64::from(draw < value.fract());
    [whole(bytes as f64 * weight), whole(weight)]
}

/// A block's draw: the same whenever it is asked for, so that what was allocated of it is what is in use of it.
///
/// Source: the last steps of `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub(super) fn draw(since: u64, address: u64) -> f64 {
    let mut bits = since ^ address.rotate_left(32);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// What a record has in the first words of its data.
pub(super) fn data_of(header: &SampleHeader) -> Allocation {
    let [address, bytes, since, is_kept, ..] = header.data;
    Allocation { address, bytes, since, is_kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks at addresses and times as programs have them: next to one another.
    #[test]
    fn whole_numbers_add_up_to_what_blocks_stand_for() {
        const BLOCKS: u64 = 100_000;
        for (bytes, period) in [(256, 512), (512, 512), (700, 512), (1024, 512), (1, 2), (3, 1), (5000, 512)]
        {
            let weight = stands_for(bytes, period);
            let draws =
                (0..BLOCKS).map(|block| draw(1_000_000_000 + block * 350, 0x5555_0000 + block % 64 * 48));
            let of_all = draws.map(|draw| values(bytes, weight, draw));
            let sums = of_all.fold([0, 0], |sums, values| [sums[0] + values[0], sums[1] + values[1]]);
            for (sum, each) in sums.into_iter().zip([bytes as f64 * weight, weight]) {
                let error = (sum as f64 - each * BLOCKS as f64).abs();
                // Of one at a time it is at most a half.
                let bound = 5.0 * (each.fract() * (1.0 - each.fract()) * BLOCKS as f64).sqrt();
                assert!(error <= bound + 0.5, "{bytes} by {period}: {sum} for {each} each");
            }
        }
    }

    #[test]
    fn what_is_whole_stays_so() {
        for draw in [0.0, 0.5, 1.0 - f64::EPSILON] {
            assert_eq!(values(1 << 52, 1.0, draw), [1 << 52, 1]);
        }
        assert_eq!([0.0, 0.49, 0.5, 0.99].map(|draw| values(1, 2.5, draw)), [[3, 3], [3, 3], [2, 2], [2, 2]]);
    }
}
