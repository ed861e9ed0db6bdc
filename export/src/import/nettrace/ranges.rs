//! Ranges of addresses in, what lies at an address out. Where two overlap, the one that was told last counts.

use std::collections::BTreeMap;

/// Ranges that don't overlap, by their first address, with their last.
#[derive(Debug)]
pub(super) struct Ranges<T> {
    by_first: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { by_first: BTreeMap::new() }
    }
}

impl<T: Copy> Ranges<T> {
    /// Adds a range, from its first address to its last. Out: whether something was at some of its addresses.
    pub(super) fn insert(&mut self, first: u64, last: u64, value: T) -> bool {
        let mut is_over = false;
        while let Some((&begin, &(end, before))) = self.by_first.range(..=last).next_back() {
            if end < first {
                break;
            }
            is_over = true;
            self.by_first.remove(&begin);
            if end > last {
                self.by_first.insert(last + 1, (end, before));
            }
            if begin < first {
                self.by_first.insert(begin, (first - 1, before));
            }
        }
        self.by_first.insert(first, (last, value));
        is_over
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_first.len()
    }

    /// All of them, with their first addresses and their last.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64, T)> {
        self.by_first.iter().map(|(&first, &(last, value))| (first, last, value))
    }

    /// What lies at any of these addresses, from the last one on.
    pub(super) fn within(&self, first: u64, last: u64) -> impl Iterator<Item = T> {
        let before = self.by_first.range(..=last).rev();
        before.take_while(move |(_, (end, _))| *end >= first).map(|(_, &(_, value))| value)
    }

    /// What lies at an address.
    pub(super) fn at(&self, address: u64) -> Option<T> {
        self.range_at(address).map(|(.., value)| value)
    }

    /// The same, with its first address and its last.
    pub(super) fn range_at(&self, address: u64) -> Option<(u64, u64, T)> {
        let (&first, &(last, value)) = self.by_first.range(..=address).next_back()?;
        (address <= last).then_some((first, last, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_last_counts() {
        let mut ranges = Ranges::default();
        ranges.insert(10, 19, 'a');
        ranges.insert(30, 39, 'b');
        ranges.insert(20, 29, 'c');
        ranges.insert(15, 34, 'd');
        ranges.insert(17, 17, 'e');
        ranges.insert(u64::MAX, u64::MAX, 'f');
        let at = |address| ranges.at(address).unwrap_or('-');
        let found = [9, 10, 14, 15, 16, 17, 18, 34, 35, 39, 40, u64::MAX].map(at);
        assert_eq!(ranges.range_at(33), Some((18, 34, 'd')));
        assert!(ranges.within(15, 17).eq(['e', 'd']) && ranges.within(36, 50).eq(['b']));
        assert!(ranges.within(40, 50).eq([]) && !ranges.insert(40, 50, 'h') && ranges.insert(50, 51, 'h'));
        assert_eq!(found, ['-', 'a', 'a', 'd', 'd', 'e', 'd', 'd', 'b', 'b', '-', 'f']);
        ranges.insert(0, u64::MAX, 'g');
        assert_eq!(ranges.by_first.len(), 1);
    }
}
