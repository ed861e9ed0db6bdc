//! Samples that differ in nothing but their time and their value: a row each, as the format wants them to be combined.
//!
//! The samples of a row are found through their positions, 4 bytes for each sample.

use std::cmp::Reverse;
use std::ops::Range;

use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ExportMachine, ProcessId, SampleKindId, ThreadId};
use rustc_hash::FxHashMap;

/// The most samples of a row: what is written at once.
const MOST: usize = 1 << 16;

/// What samples of a row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) kind: SampleKindId,
    pub(super) thread: ThreadId,
    pub(super) stack: StackId,
    pub(super) cpu: u16,
    pub(super) attributes: AttributeListId,
}

/// Rows of samples.
#[derive(Debug)]
pub(super) struct Rows {
    keys: Vec<Key>,
    /// Where in `positions` a row begins; and the end of the last one.
    starts: Vec<u32>,
    /// Of samples, by row, and in a row by time.
    positions: Vec<u32>,
}

/// Rows of one kind in one process: a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) process: ProcessId,
    pub(super) kind: SampleKindId,
    /// Rows.
    pub(super) rows: Vec<u32>,
}

impl Rows {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let samples = machine.samples();
        let (mut keys, mut counts) = (Vec::new(), Vec::<u32>::new());
        let mut index: FxHashMap<Key, u32> = FxHashMap::default();
        let of_samples: Vec<u32> = samples
            .iter()
            .map(|sample| {
                let key = Key {
                    kind: sample.kind,
                    thread: sample.thread,
                    stack: sample.stack,
                    cpu: sample.cpu,
                    attributes: sample.attributes,
                };
                let row = *index.entry(key).or_insert_with(|| {
                    keys.push(key);
                    counts.push(0);
                    keys.len() as u32 - 1
                });
                counts[row as usize] += 1;
                row
            })
            .collect();
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        let mut next = starts.clone();
        let mut positions = vec![0; samples.len()];
        for (row, position) in of_samples.iter().zip(0..) {
            let place = &mut next[*row as usize];
            positions[*place as usize] = position;
            *place += 1;
        }
        let times = samples.times();
        for range in starts.windows(2) {
            let row = &mut positions[range[0] as usize..range[1] as usize];
            row.sort_unstable_by_key(|&position| (times[position as usize], position));
        }
        Self { keys, starts, positions }
    }

    /// What the samples of a row have in common.
    pub(super) fn key(&self, row: u32) -> Key {
        self.keys[row as usize]
    }

    /// Positions of the samples of a row, in pieces that are not too large.
    pub(super) fn pieces(&self, row: u32) -> impl Iterator<Item = &[u32]> {
        self.positions[self.range(row)].chunks(MOST)
    }

    fn range(&self, row: u32) -> Range<usize> {
        let row = row as usize;
        self.starts[row] as usize..self.starts[row + 1] as usize
    }

    /// All rows by process and kind: the process with most samples first, since readers show the first profile first.
    pub(super) fn groups(&self, machine: &ExportMachine) -> Vec<Group> {
        let process = |row: u32| machine.thread(self.key(row).thread).process;
        let mut counts = vec![0_usize; machine.processes().len()];
        for row in 0..self.keys.len() as u32 {
            counts[process(row).0 as usize] += self.range(row).len();
        }
        let mut rows: Vec<u32> = (0..self.keys.len() as u32).collect();
        rows.sort_by_key(|&row| (Reverse(counts[process(row).0 as usize]), process(row), self.key(row).kind));
        let of = |row: u32| (process(row), self.key(row).kind);
        rows.chunk_by(|&a, &b| of(a) == of(b))
            .map(|rows| {
                let (process, kind) = of(rows[0]);
                Group { process, kind, rows: rows.to_vec() }
            })
            .collect()
    }
}
