//! From an address to the frame description entry (FDE) that may cover it.
//!
//! One sorted array of function starts, and buckets that bound each binary search to a handful of neighbours; the FDEs'
//! offsets, in the same order, go to the store of rows:
//!
//! ```text
//!  buckets  [0, 2, 2, 5, ...]     the first function that starts in (or after) each 2^shift bytes of text
//!            |  \
//!  starts   [s0, s1, s2, ...]     relative to the start of the text
//!  offsets  [f0, f1, f2, ...]     of the FDE in the unwind section
//! ```
//!
//! There are no more buckets than functions, so the index is bounded by the size of what it was made from.

/// A function's start, relative to the text's, and the offset of its FDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexEntry {
    pub(crate) start: u32,
    pub(crate) fde: u32,
}

/// Sorted by start.
#[derive(Debug)]
pub(crate) struct FdeIndex {
    starts: Box<[u32]>,
    buckets: Box<[u32]>,
    shift: u32,
}

impl FdeIndex {
    /// An index over `entries`, which may be in any order, and the offsets of their FDEs in the index' order.
    pub(crate) fn new(mut entries: Vec<IndexEntry>) -> (Self, Box<[u32]>) {
        if !entries.is_sorted() {
            entries.sort_unstable();
        }
        entries.dedup();
        let last = entries.last().map_or(0, |entry| entry.start);
        let mut shift = 6;
        while u64::from(last >> shift) > entries.len() as u64 {
            shift += 1;
        }
        let starts: Box<[u32]> = entries.iter().map(|entry| entry.start).collect();
        let buckets = buckets(&starts, shift);
        (FdeIndex { starts, buckets, shift }, entries.iter().map(|entry| entry.fde).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn bytes_held(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.buckets)
    }

    /// The function that starts last at or before `relative`.
    pub(crate) fn find(&self, relative: u32) -> Option<usize> {
        let bucket = (relative >> self.shift) as usize;
        let from = self.buckets.get(bucket).map_or(self.starts.len(), |&index| index as usize);
        let to = self.buckets.get(bucket + 1).map_or(self.starts.len(), |&index| index as usize);
        let within = self.starts.get(from..to)?.partition_point(|&start| start <= relative);
        (from + within).checked_sub(1)
    }

    pub(crate) fn start(&self, function: usize) -> Option<u32> {
        self.starts.get(function).copied()
    }
}

/// One bucket more than the last start needs, so that every bucket in use has an end.
fn buckets(starts: &[u32], shift: u32) -> Box<[u32]> {
    let Some(last) = starts.last() else { return Box::default() };
    let mut buckets = Vec::with_capacity((last >> shift) as usize + 2);
    for (index, start) in starts.iter().enumerate() {
        while buckets.len() <= (start >> shift) as usize {
            buckets.push(index as u32);
        }
    }
    buckets.push(starts.len() as u32);
    buckets.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::{FdeIndex, IndexEntry};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_linear_scan_finds(
            starts in proptest::collection::vec(prop_oneof![0u32..5000, any::<u32>()], 0..200),
            probes in proptest::collection::vec(prop_oneof![0u32..5000, any::<u32>()], 0..50),
        ) {
            let entries = starts.iter().map(|&start| IndexEntry { start, fde: start ^ 0xff }).collect();
            let (index, fdes) = FdeIndex::new(entries);
            prop_assert!(index.buckets.len() <= starts.len() + 2);
            for probe in probes.iter().chain(&starts) {
                let expected = starts.iter().copied().filter(|start| start <= probe).max();
                let found = index.find(*probe);
                prop_assert_eq!(found.and_then(|function| index.start(function)), expected);
                prop_assert_eq!(found.map(|function| fdes[function]), expected.map(|start| start ^ 0xff));
            }
        }
    }
}
