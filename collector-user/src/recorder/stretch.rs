//! Where a stack may end whose mapping ended before it: the memory that can be read without a gap is not one mapping where
//! a page of a stack has another protection, and a mapping that is remembered may have been replaced by a larger one.

use std::ops::Range;

use collector_common::ids::{Nanos, Tid};
use collector_common::wire::SampleHeader;
use rustc_hash::FxHashMap;

use super::outside::{Outside, Question, Subject};
use super::reread::Rereads;
use crate::procfs;

/// The memory that can be read of processes of which some stack went beyond its mapping, by pid.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Sorted, with gaps in between.
    processes: FxHashMap<u32, Vec<Range<u64>>>,
    rereads: Rereads<u32>,
}

impl Stretches {
    /// The end of the memory that can be read where a sample has its stack end, which is that end where nothing follows.
    pub(super) fn end(&mut self, sample: &SampleHeader, outside: &mut Outside) -> u64 {
        let known = self.known_end(sample);
        if known > sample.stack_end || !self.rereads.begin(sample.pid, Nanos(sample.time)) {
            return known;
        }
        let question = Question::new(Subject::Stretches, sample.tid);
        let found = outside.ask(question, || Some(readable_memory(Tid(sample.tid))));
        self.processes.insert(sample.pid, found.unwrap_or_default());
        let end = self.known_end(sample);
        if end > sample.stack_end {
            self.rereads.helped(sample.pid);
        }
        end
    }

    fn known_end(&self, sample: &SampleHeader) -> u64 {
        let stretches = self.processes.get(&sample.pid).map(Vec::as_slice).unwrap_or_default();
        let after = stretches.partition_point(|stretch| stretch.end < sample.stack_end);
        let found = stretches.get(after).filter(|stretch| stretch.start < sample.stack_end);
        found.map_or(sample.stack_end, |stretch| stretch.end)
    }

    /// The round up to `watermark` is over.
    pub(super) fn end_round(&mut self, watermark: Nanos) {
        self.rereads.end_round(watermark);
        self.processes.retain(|pid, _| self.rereads.is_recent(*pid, watermark));
    }
}

/// Empty where the process can't be read any more.
fn readable_memory(thread: Tid) -> Vec<Range<u64>> {
    let mut stretches: Vec<Range<u64>> = Vec::new();
    let _ = procfs::mappings(thread, |entry| match stretches.last_mut() {
        _ if !entry.readable => {}
        Some(last) if last.end == entry.start.0 => last.end = entry.end.0,
        _ => stretches.push(entry.start.0..entry.end.0),
    });
    stretches
}
