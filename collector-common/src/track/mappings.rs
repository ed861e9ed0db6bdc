//! A sorted list of mappings that is cheap to change: programs with tens of thousands of them make each by itself, in any
//! order.
//!
//! ```text
//! chunks   | m m m m | m m m | m m m m m |     sorted, never empty, some 256 mappings at most
//! starts   | s         s       s         |     where the first of each chunk starts
//! ```

use super::space::MappedModule;
use crate::ids::Avma;

/// A chunk with more mappings is halved: about so many are moved, at most, when one is added.
const CHUNK: usize = 256;

/// Mappings sorted by address, without overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    starts: Vec<Avma>,
    chunks: Vec<Vec<MappedModule>>,
}

impl Mappings {
    /// The mapping that contains `address`.
    pub(super) fn at(&self, address: Avma) -> Option<&MappedModule> {
        let chunk =
            self.chunks.get(self.starts.partition_point(|&start| start <= address).checked_sub(1)?)?;
        let after = chunk.partition_point(|mapping| mapping.start <= address);
        chunk.get(after.checked_sub(1)?).filter(|mapping| mapping.contains(address))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &MappedModule> {
        self.chunks.iter().flatten()
    }

    /// Lays a mapping over the others. Those of which it covers a part are handed to `covered`; what is left of them stays.
    pub(super) fn lay(&mut self, mapping: MappedModule, mut covered: impl FnMut(&MappedModule)) {
        // All chunks between these two, inclusive, may have a mapping that is touched.
        let first = self.starts.partition_point(|&start| start <= mapping.start).saturating_sub(1);
        let behind = self.starts.partition_point(|&start| start < mapping.end).max(first);
        let mut chunk = match self.chunks.get_mut(first) {
            Some(chunk) => std::mem::take(chunk),
            None => Vec::new(),
        };
        for further in self.chunks.get_mut(first + 1..behind).unwrap_or_default() {
            chunk.append(further);
        }
        let from = chunk.partition_point(|old| old.end <= mapping.start);
        let to = chunk.partition_point(|old| old.start < mapping.end).max(from);
        let mut pieces = Vec::with_capacity(3);
        for old in &chunk[from..to] {
            covered(old);
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
        self.chunks.splice(first..end, halves);
    }
}
