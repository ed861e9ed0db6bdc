//! Samples in another order, where there are more of them than are wanted in memory: runs that are sorted each by itself, then all of
//! them together, each read from its start to its end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::ops::Range;

use super::chunk::ROWS;
use super::{Part, Row, Sample, Samples, part_of};

/// Chunks of a run: 20 MB of memory.
const RUN: usize = 128;

impl Samples {
    /// A copy in the order of a key, with the same limit and a file of its own; samples with equal keys are in the order in which they
    /// were. Needs 20 MB of memory and a chunk for each half million of samples.
    #[must_use]
    pub fn sorted_by_key<K: Ord>(&self, key: impl Fn(&Sample) -> K) -> Self {
        self.sorted_in_runs(RUN, key)
    }

    pub(super) fn sorted_in_runs<K: Ord>(&self, chunks: usize, key: impl Fn(&Sample) -> K) -> Self {
        let mut runs = self.none_like();
        let mut rows = Vec::new();
        for part in self.parts() {
            rows.extend(part.rows());
            if rows.len() >= chunks * ROWS {
                runs.push_sorted(&mut rows, &key);
            }
        }
        runs.push_sorted(&mut rows, &key);

        let mut sorted = self.none_like();
        let starts = (0..=runs.chunks.len()).step_by(chunks);
        let mut readers: Vec<_> = starts.map(|start| runs.rows_of(start..start + chunks)).collect();
        let mut heads: Vec<Option<Row>> = readers.iter_mut().map(Iterator::next).collect();
        let keys = heads.iter().zip(0..).filter_map(|(row, run)| Some((key(&row.as_ref()?.sample), run)));
        let mut next: BinaryHeap<Reverse<(K, usize)>> = keys.map(Reverse).collect();
        while let Some(Reverse((_, run))) = next.pop() {
            if let Some(row) = mem::replace(&mut heads[run], readers[run].next()) {
                sorted.push_row(row);
            }
            next.extend(heads[run].as_ref().map(|row| Reverse((key(&row.sample), run))));
        }
        drop(readers);
        sorted.spill.inherit(&self.spill);
        sorted.spill.inherit(&runs.spill);
        sorted
    }

    fn push_sorted<K: Ord>(&mut self, rows: &mut Vec<Row>, key: impl Fn(&Sample) -> K) {
        rows.sort_by_key(|row| key(&row.sample));
        for row in rows.drain(..) {
            self.push_row(row);
        }
    }

    /// The rows of some chunks; the one behind all is that of those which are not packed.
    fn rows_of(&self, chunks: Range<usize>) -> impl Iterator<Item = Row> + '_ {
        let part = |at: usize| match self.chunks.get(at) {
            Some(stored) => part_of(stored, &self.spill),
            None => (at == self.chunks.len()).then_some(Part::Open(&self.open)),
        };
        chunks.filter_map(part).flat_map(|part| (0..part.len()).map(move |row| part.row(row)))
    }
}
