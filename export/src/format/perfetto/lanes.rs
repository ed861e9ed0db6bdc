//! Slices in the order of their beginnings in, lanes on which none crosses another out: each slice is on the first lane that has room.
//!
//! A tree over the lanes tells of each part of them how far a slice may last there, so that the first lane with room is found by
//! going down it; a heap tells which slices are over. So a slice costs the logarithm of the number of lanes, however many overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Whether slices may lie in each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    /// A lane has one slice at a time.
    None,
    /// A slice may lie in one that is open.
    Inside,
}

/// Lanes, by position.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By lane: when the slices on it end that are not known to be over, of which each lies in the one before.
    open: Vec<Vec<u64>>,
    /// When open slices end, and on which lane.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// A tree whose leaves are the second half: until when a slice may last there, of a node the most of the two below it.
    room: Vec<u64>,
}

/// A lane on which nothing is open has room for any slice.
const FREE: u64 = u64::MAX;

impl Lanes {
    /// The lane of a slice from `start` to `end`, which does not begin before the last one, and whether the lane is new.
    pub(super) fn place(&mut self, (start, end): (u64, u64), nesting: Nesting) -> (usize, bool) {
        while let Some(&Reverse((over, lane))) = self.ends.peek()
            && over <= start
        {
            self.ends.pop();
            let open = &mut self.open[lane];
            while open.pop_if(|end| *end <= start).is_some() {}
            let room = open.last().map_or(FREE, |end| Self::room_in(*end, nesting));
            self.set(lane, room);
        }
        let needed = match nesting {
            Nesting::None => FREE,
            Nesting::Inside => end,
        };
        let found = self.first(needed);
        let lane = found.unwrap_or(self.open.len());
        if found.is_none() {
            self.open.push(Vec::new());
        }
        self.open[lane].push(end);
        self.ends.push(Reverse((end, lane)));
        self.set(lane, Self::room_in(end, nesting));
        (lane, found.is_none())
    }

    /// Until when a slice may last in one that ends at a time.
    const fn room_in(end: u64, nesting: Nesting) -> u64 {
        match nesting {
            Nesting::None => 0,
            Nesting::Inside => end,
        }
    }

    /// The first lane with so much room.
    fn first(&self, needed: u64) -> Option<usize> {
        let leaves = self.room.len() / 2;
        let mut node = 1;
        if self.room.get(node).is_none_or(|&room| room < needed) {
            return None;
        }
        while node < leaves {
            node *= 2;
            if self.room[node] < needed {
                node += 1;
            }
        }
        // Leaves that are not lanes yet have no room, unless none is needed, which the first lane has.
        Some(node - leaves).filter(|&lane| lane < self.open.len())
    }

    fn set(&mut self, lane: usize, room: u64) {
        let mut leaves = self.room.len() / 2;
        if lane >= leaves {
            let old = self.room.split_off(leaves);
            leaves = (leaves * 2).max(1);
            self.room = vec![0; leaves * 2];
            self.room[leaves..][..old.len()].copy_from_slice(&old);
            for node in (1..leaves).rev() {
                self.room[node] = self.room[node * 2].max(self.room[node * 2 + 1]);
            }
        }
        let mut node = leaves + lane;
        self.room[node] = room;
        while node > 1 {
            node /= 2;
            self.room[node] = self.room[node * 2].max(self.room[node * 2 + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// Looks at each lane.
    #[derive(Default)]
    struct Slow(Vec<Vec<u64>>);

    impl Slow {
        fn place(&mut self, (start, end): (u64, u64), nesting: Nesting) -> (usize, bool) {
            for (lane, open) in self.0.iter_mut().enumerate() {
                open.retain(|end| *end > start);
                let has_room = match nesting {
                    Nesting::None => open.is_empty(),
                    Nesting::Inside => open.last().is_none_or(|outer| end <= *outer),
                };
                if has_room {
                    open.push(end);
                    return (lane, false);
                }
            }
            self.0.push(vec![end]);
            (self.0.len() - 1, true)
        }
    }

    proptest! {
        #[test]
        fn lanes_are_those_of_looking_at_each(
            slices in proptest::collection::vec((0_u64..4, 0_u64..12, any::<bool>()), 0..60),
            nests in any::<bool>(),
        ) {
            let nesting = if nests { Nesting::Inside } else { Nesting::None };
            let (mut lanes, mut slow, mut start) = (Lanes::default(), Slow::default(), 0);
            for (later, lasts, is_endless) in slices {
                start += later;
                let end = if is_endless && lasts == 11 { u64::MAX } else { start + lasts };
                prop_assert_eq!(lanes.place((start, end), nesting), slow.place((start, end), nesting));
            }
        }
    }

    /// Looking at each lane would be twenty thousand millions of looks for either.
    #[test]
    fn many_that_overlap_end() {
        const COUNT: u64 = 200_000;
        let begun = Instant::now();
        for nesting in [Nesting::None, Nesting::Inside] {
            let mut lanes = Lanes::default();
            for at in 0..COUNT {
                // Each crosses all before it.
                assert_eq!(lanes.place((at, COUNT + at), nesting), (at as usize, true));
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
