//! Blocks of memory: what was allocated, and what of it was not freed, by the stacks that asked for it. That is known when the process ends,
//! and else when the recording does: nothing is kept of processes that have ended.

use collector_common::ids::{Nanos, Pid};
use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ProcessId, SampleKindId, ThreadId};
use collector_common::wire::{Allocation, SampleFlags, SampleHeader};
use rustc_hash::FxHashMap;

use super::dispatch::attributes;
use super::program_records::{Output, ProgramRecords};
use crate::recorder::{Recorder, Taken, context_of};
use crate::scenario::AllocatedBlock;
use crate::source::{LeftBlock, Program, SourceRecord};

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

impl Key {
    fn left(self) -> LeftBlock {
        LeftBlock { pid: self.pid, address: self.address, since: self.since }
    }
}

/// A block that is not freed.
#[derive(Clone, Copy)]
struct Live {
    taken: Taken,
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

/// What is known of a process's blocks.
struct Owner {
    pid: Pid,
    /// One of its threads.
    thread: ThreadId,
    /// When it was seen to allocate first.
    first: Nanos,
    live: FxHashMap<Key, Live>,
    /// No live one was allocated before.
    earliest: Nanos,
    fates: FxHashMap<StackId, Fate>,
}

impl Owner {
    fn new(pid: Pid, taken: &Taken) -> Self {
        Self {
            pid,
            thread: taken.thread,
            first: taken.time,
            live: FxHashMap::default(),
            earliest: taken.time,
            fates: FxHashMap::default(),
        }
    }

    fn add(&mut self, key: Key, taken: Taken, bytes: u64) {
        self.live.insert(key, Live { taken, bytes });
        (self.first, self.earliest) = (self.first.min(taken.time), self.earliest.min(taken.time));
        let new = Fate { first: taken.time, last: taken.time, blocks: 0, freed: 0 };
        let fate = self.fates.entry(taken.stack).or_insert(new);
        fate.blocks += 1;
        (fate.first, fate.last) = (fate.first.min(taken.time), fate.last.max(taken.time));
    }

    /// Says whether it is one of these blocks.
    fn free(&mut self, key: &Key) -> bool {
        let Some(live) = self.live.remove(key) else { return false };
        if let Some(fate) = self.fates.get_mut(&live.taken.stack) {
            fate.freed += 1;
        }
        true
    }

    /// The blocks of programs before the one that it executes now, whose memory is gone: they are forgotten.
    fn take_gone(&mut self, recorder: &Recorder) -> Vec<Key> {
        if !recorder.has_executed_since(self.thread, self.earliest) {
            return Vec::new();
        }
        let is_gone = |live: &Live| recorder.has_executed_since(live.taken.thread, live.taken.time);
        let gone: Vec<Key> = self.live.extract_if(|_, live| is_gone(live)).map(|(key, _)| key).collect();
        self.earliest = self.live.values().map(|live| live.taken.time).min().unwrap_or(Nanos(u64::MAX));
        gone
    }
}

/// What is known of blocks.
pub(super) struct Allocations {
    /// Of so many bytes one is recorded.
    period: u64,
    kinds: Kinds,
    owners: FxHashMap<ProcessId, Owner>,
    /// The processes of a pid: those before the last one have ended, in this round.
    of_pids: FxHashMap<Pid, Vec<ProcessId>>,
    /// What was freed in this round: in the rings of other CPUs there may be when it was allocated.
    freed: Vec<Key>,
    /// Blocks of what is gone, and of what is not to be in the recording.
    left: Vec<LeftBlock>,
}

impl Allocations {
    pub(super) fn new(period: u64, recorder: &mut Recorder) -> Self {
        let [allocated_blocks, live_bytes, live_blocks, leaked_bytes] =
            Program::OF_ALLOCATIONS.map(|(name, unit)| recorder.add_kind(name, unit, 1));
        Self {
            period,
            kinds: Kinds { allocated_blocks, live_bytes, live_blocks, leaked_bytes },
            owners: FxHashMap::default(),
            of_pids: FxHashMap::default(),
            freed: Vec::new(),
            left: Vec::new(),
        }
    }

    /// What some processes have not freed, when they have ended or the recording is at its end.
    fn settle(&mut self, recorder: &mut Recorder, processes: &[ProcessId], stopping: Nanos) {
        let mut live = Vec::new();
        for process in processes {
            let Some(owner) = self.owners.get_mut(process) else { continue };
            // Another program of the same process has another memory.
            let gone = owner.take_gone(recorder);
            self.left.extend(gone.into_iter().map(Key::left));
            live.extend(owner.live.drain().map(|(key, live)| (key, live, *process)));
        }
        live.sort_by_key(|(key, ..)| *key);
        for (key, Live { taken, bytes }, process) in live {
            let Some(owner) = self.owners.get(&process) else { continue };
            let ended = recorder.machine().process(process).end;
            let until = if ended.is_some() { "exit" } else { "end of the recording" };
            let last = ended.unwrap_or(stopping).min(stopping);
            let all = last.0.saturating_sub(owner.first.0);
            let attributes = attributes(recorder, &[("until", until)], &[]);
            let weight = stands_for(bytes, self.period);
            let [all_bytes, all_blocks] = values(bytes, weight, draw(key.since.0, key.address));
            recorder.add_sample(self.kinds.live_bytes, taken, all_bytes, attributes);
            recorder.add_sample(self.kinds.live_blocks, taken, all_blocks, attributes);
            if owner.fates.get(&taken.stack).is_some_and(|fate| fate.is_leak(all)) {
                recorder.add_sample(self.kinds.leaked_bytes, taken, all_bytes, attributes);
            }
            self.left.push(key.left());
        }
        for process in processes {
            let Some(owner) = self.owners.remove(process) else { continue };
            let others = self.of_pids.get_mut(&owner.pid);
            if others.is_some_and(|others| {
                others.retain(|other| other != process);
                others.is_empty()
            }) {
                self.of_pids.remove(&owner.pid);
            }
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
        let passes = output.process(&context_of(record), bytemuck::bytes_of(&data));
        let Some(taken) = passes.then(|| output.recorder.take_stack(record)).flatten() else {
            // Nobody follows it.
            self.left.extend((is_kept != 0).then(|| key.left()));
            return false;
        };
        let [all_bytes, all_blocks] = values(bytes, weight, draw(since, address));
        output.recorder.add_sample(output.kind, taken, all_bytes, AttributeListId::NONE);
        output.recorder.add_sample(self.kinds.allocated_blocks, taken, all_blocks, AttributeListId::NONE);
        output.recorder.deliver(&taken);
        if is_kept != 0 {
            let process = output.recorder.machine().thread(taken.thread).process;
            let owner = self.owners.entry(process).or_insert_with(|| {
                self.of_pids.entry(key.pid).or_default().push(process);
                Owner::new(key.pid, &taken)
            });
            owner.add(key, taken, bytes);
        }
        true
    }

    fn end_round(&mut self, output: &mut Output<'_>, written: Nanos) {
        for key in self.freed.drain(..) {
            let of_pid = self.of_pids.get(&key.pid).into_iter().flatten();
            for process in of_pid {
                if self.owners.get_mut(process).is_some_and(|owner| owner.free(&key)) {
                    break;
                }
            }
        }
        let machine = output.recorder.machine();
        let mut ended = Vec::new();
        for (process, owner) in &mut self.owners {
            if machine.process(*process).end.is_some_and(|end| end <= written) {
                ended.push(*process);
            } else {
                self.left.extend(owner.take_gone(output.recorder).into_iter().map(Key::left));
            }
        }
        if !ended.is_empty() {
            ended.sort_unstable();
            self.settle(output.recorder, &ended, written);
        }
    }

    fn take_left(&mut self) -> Vec<LeftBlock> {
        std::mem::take(&mut self.left)
    }

    fn finish(&mut self, output: &mut Output<'_>, stopping: Nanos) {
        let all: Vec<ProcessId> = self.owners.keys().copied().collect();
        self.settle(output.recorder, &all, stopping);
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
