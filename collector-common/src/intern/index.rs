//! A table of ids by hash that grows a piece at a time (extendible hashing: Fagin and others, 1979).
//!
//! ```text
//! first bits of the hash:   00   01   10   11
//! directory:                 0    0    1    2      piece 0 still has one bit to tell, 1 and 2 have both
//! pieces:                  [....] [....] [....]    a table each
//! ```
//!
//! A piece that is full becomes two by the next bit of its hashes, and the directory doubles when that bit is one more
//! than it tells. Thus an insert moves the ids of one piece at most, and the directory, which has some bytes for a
//! thousand ids.

use std::mem;

use hashbrown::HashTable;

/// Ids in a piece: what a table of 2048 places takes before it grows.
const MOST: usize = 1792;

/// Bits that the directory tells at most.
const MOST_DEPTH: u32 = 20;

/// Places in the directory for each piece: hashes that are alike do not make it large, but their piece.
const MOST_PLACES: usize = 8;

/// Ids by the hashes of what they stand for.
#[derive(Debug)]
pub(super) struct Index {
    /// The piece of each hash by its first `depth` bits.
    directory: Vec<u32>,
    depth: u32,
    pieces: Vec<Piece>,
}

#[derive(Debug, Default)]
struct Piece {
    ids: HashTable<Slot>,
    /// First bits that all its hashes have in common.
    depth: u32,
}

/// With its hash, an id is moved without a look at what it stands for.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    id: u32,
}

impl Slot {
    /// What hashbrown takes: it looks at the lowest and at the highest bits, and pieces have the highest in common.
    #[inline]
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl Default for Index {
    fn default() -> Self {
        Self { directory: vec![0], depth: 0, pieces: vec![Piece::default()] }
    }
}

impl Index {
    /// The id with this hash for which `is_it` is true.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let piece = &self.pieces[self.directory[self.place(hash)] as usize];
        let found = piece.ids.find(Slot::spread(hash), |slot| slot.hash == hash && is_it(slot.id));
        found.map(|slot| slot.id)
    }

    /// Adds an id that is not in it.
    pub(super) fn insert(&mut self, hash: u32, id: u32) {
        let mut at = self.directory[self.place(hash)] as usize;
        while self.pieces[at].ids.len() >= MOST && self.can_split(self.pieces[at].depth) {
            self.split(at, hash);
            at = self.directory[self.place(hash)] as usize;
        }
        let add = |slot: &Slot| Slot::spread(slot.hash);
        self.pieces[at].ids.insert_unique(Slot::spread(hash), Slot { hash, id }, add);
    }

    #[inline]
    fn place(&self, hash: u32) -> usize {
        (u64::from(hash) >> (32 - self.depth)) as usize
    }

    fn can_split(&self, depth: u32) -> bool {
        let can_double =
            self.depth < MOST_DEPTH && 2 * self.directory.len() <= MOST_PLACES * self.pieces.len();
        depth < self.depth || can_double
    }

    /// Makes two of the piece `at`, which `hash` belongs to.
    fn split(&mut self, at: usize, hash: u32) {
        let Piece { ids, depth } = mem::take(&mut self.pieces[at]);
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|piece| [*piece; 2]).collect();
            self.depth += 1;
        }
        let mut halves = [0; 2].map(|_| Piece { ids: HashTable::with_capacity(MOST), depth: depth + 1 });
        for slot in ids {
            let half = &mut halves[(slot.hash >> (31 - depth) & 1) as usize];
            half.ids.insert_unique(Slot::spread(slot.hash), slot, |slot| Slot::spread(slot.hash));
        }
        let [lower, upper] = halves;
        self.pieces[at] = lower;
        // The places of the piece are side by side, and the further half of them is the new one's.
        let places = 1_usize << (self.depth - depth);
        let first = self.place(hash) / places * places;
        self.directory[first + places / 2..first + places].fill(self.pieces.len() as u32);
        self.pieces.push(upper);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Numbers that look like hashes: the odd factor makes each another.
    fn hashes(count: u32) -> impl Iterator<Item = u32> {
        (0..count).map(|number| number.wrapping_mul(0x9e37_79b1))
    }

    #[test]
    fn all_are_found_while_pieces_split() {
        let mut index = Index::default();
        for (id, hash) in hashes(100_000).enumerate() {
            assert_eq!(index.find(hash, |_| true), None, "hash {hash}");
            index.insert(hash, id as u32);
        }
        for (id, hash) in hashes(100_000).enumerate() {
            assert_eq!(index.find(hash, |_| true), Some(id as u32));
        }
        assert!(index.pieces.iter().all(|piece| piece.ids.len() <= MOST));
        let mut places: HashMap<u32, usize> = HashMap::new();
        index.directory.iter().for_each(|piece| *places.entry(*piece).or_default() += 1);
        for (at, piece) in index.pieces.iter().enumerate() {
            assert_eq!(places[&(at as u32)], 1 << (index.depth - piece.depth), "piece {at}");
        }
    }

    #[test]
    fn hashes_that_are_all_alike_make_no_large_directory() {
        for alike in [0, u32::MAX, 0x8000_0000] {
            let mut index = Index::default();
            (0..3000).for_each(|id| index.insert(alike, id));
            assert!((0..3000).all(|id| index.find(alike, |found| found == id) == Some(id)));
            assert!(index.directory.len() <= MOST_PLACES * index.pieces.len());
            assert!(index.pieces.len() <= 1 + MOST_DEPTH as usize);
        }
    }
}
