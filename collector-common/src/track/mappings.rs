//! A sorted list of mappings that is cheap to change: programs with tens of thousands of them make each by itself, in any
//! order.
//!
//! ```text
//! chunks   | m m m m | m m m | m m m m m |     sorted, never empty, some 256 mappings at most
//! starts   | s         s       s         |     where the first of each chunk starts
//! ```
//!
//! A copy of it has the same chunks, each until one of the two changes it: a process with many mappings may have many children, each of which
//! changes a few.

use std::sync::Arc;

use super::space::MappedModule;
use crate::ids::Avma;

/// A chunk with more mappings is halved: about so many are moved, at most, when one is added.
const CHUNK: usize = 256;

/// What another mapping was laid over.
#[derive(Clone, Debug)]
pub(super) enum Covered {
    /// All of it or a part.
    One(MappedModule),
    /// Many side by side, all of each, as others may have them, too.
    Many(Arc<Vec<MappedModule>>),
}

impl Covered {
    /// The one at an address.
    pub(super) fn at(&self, address: Avma) -> Option<&MappedModule> {
        match self {
            Self::One(mapping) => Some(mapping).filter(|mapping| mapping.contains(address)),
            Self::Many(chunk) => at(chunk, address),
        }
    }
}

/// That of a sorted chunk which contains an address.
fn at(chunk: &[MappedModule], address: Avma) -> Option<&MappedModule> {
    let after = chunk.partition_point(|mapping| mapping.start <= address);
    chunk.get(after.checked_sub(1)?).filter(|mapping| mapping.contains(address))
}

/// Mappings sorted by address, without overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    starts: Vec<Avma>,
    chunks: Vec<Arc<Vec<MappedModule>>>,
}

impl Mappings {
    /// The mapping that contains `address`.
    pub(super) fn at(&self, address: Avma) -> Option<&MappedModule> {
        let chunk =
            self.chunks.get(self.starts.partition_point(|&start| start <= address).checked_sub(1)?)?;
        at(chunk, address)
    }

    /// The one with the highest addresses.
    pub(super) fn last(&self) -> Option<&MappedModule> {
        self.chunks.last()?.last()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &MappedModule> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Lays a mapping over the others. Those of which it covers a part are handed to `covered`; what is left of them stays.
    pub(super) fn lay(&mut self, mapping: MappedModule, mut covered: impl FnMut(Covered)) {
        // All chunks between these two, inclusive, may have a mapping that is touched.
        let first = self.starts.partition_point(|&start| start <= mapping.start).saturating_sub(1);
        let behind = self.starts.partition_point(|&start| start < mapping.end).max(first);
        let mut chunk = match self.chunks.get_mut(first) {
            Some(chunk) => Arc::unwrap_or_clone(std::mem::take(chunk)),
            None => Vec::new(),
        };
        // Between the first and the last of them all are covered.
        if let Some((last, between)) =
            self.chunks.get(first + 1..behind).and_then(|further| further.split_last())
        {
            for all in between {
                covered(Covered::Many(Arc::clone(all)));
            }
            chunk.extend_from_slice(last);
        }
        let from = chunk.partition_point(|old| old.end <= mapping.start);
        let to = chunk.partition_point(|old| old.start < mapping.end).max(from);
        let mut pieces = Vec::with_capacity(3);
        for old in &chunk[from..to] {
            covered(Covered::One(*old));
            pieces.extend(old.before(mapping.start));
        }
        pieces.push(mapping);
        pieces.extend(chunk[from..to].iter().filter_map(|old| old.from(mapping.end)));
        chunk.splice(from..to, pieces);

        let end = behind.max(first + 1).min(self.chunks.len());
        let halves = if chunk.len() > CHUNK {
            let half = chunk.split_off(chunk.len() / 2);
            vec![chunk, half]
        } else {
            vec![chunk]
        };
        self.starts.splice(first..end, halves.iter().map(|chunk| chunk[0].start));
        self.chunks.splice(first..end, halves.into_iter().map(Arc::new));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ids::{FileOffset, Nanos};
    use crate::record::ModuleId;

    /// Twice what `vm.max_map_count` allows a process by default.
    const MANY: u64 = 128_000;
    /// Of each, and between them.
    const SIZE: u64 = 0x1000;

    fn mapping(place: u64, module: u32) -> MappedModule {
        let start = 0x1_0000 + place * 2 * SIZE;
        MappedModule {
            start: Avma(start),
            end: Avma(start + SIZE),
            file_offset: FileOffset(0),
            bias: start,
            module: ModuleId(module),
            since: Nanos(0),
        }
    }

    /// What one change may move: a chunk, and on a split what leads to chunks.
    fn assert_moves_little(mappings: &Mappings) {
        let longest = mappings.chunks.iter().map(|chunk| chunk.len()).max().unwrap_or(0);
        assert!(longest <= CHUNK, "{longest} mappings in a chunk");
        assert!(mappings.chunks.iter().all(|chunk| !chunk.is_empty()));
        assert_eq!(mappings.starts.len(), mappings.chunks.len());
        let held: usize = mappings.chunks.iter().map(|chunk| chunk.len()).sum();
        assert!(mappings.chunks.len() <= 1 + held / (CHUNK / 2), "{} chunks", mappings.chunks.len());
    }

    #[test]
    fn a_change_among_many_mappings_moves_a_chunk() {
        // Ascending, and scattered by a factor that has no divisor in common with `MANY`.
        let orders: [fn(u64) -> u64; 2] = [|n| n, |n| n * 77_773 % MANY];
        for order in orders {
            let mut mappings = Mappings::default();
            for number in 0..MANY {
                mappings.lay(mapping(order(number), 1), |_| panic!("nothing is covered"));
                if number % 1000 == 0 {
                    assert_moves_little(&mappings);
                }
            }
            // Each is mapped anew, one after the other.
            let before = mappings.chunks.len();
            let mut covered = 0;
            for number in 0..MANY {
                mappings.lay(mapping(order(number), 2), |_| covered += 1);
            }
            assert_eq!((covered, mappings.chunks.len()), (MANY, before));
            assert_moves_little(&mappings);
            let known: BTreeMap<Avma, MappedModule> = mappings.iter().map(|old| (old.start, *old)).collect();
            assert_eq!(known.len() as u64, MANY);
            for number in 0..MANY {
                let expected = mapping(number, 2);
                assert_eq!(mappings.at(Avma(expected.end.0 - 1)), Some(&expected));
                assert_eq!(mappings.at(expected.end), None);
            }
        }
    }
}
