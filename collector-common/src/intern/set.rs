//! A set of items numbered in the order of their first coming: strings and call stacks are two of them.

use std::hash::{BuildHasher, Hasher};

use super::arena::{Arena, Chunk};
use super::index::Index;
use super::seed::Seeded;

/// Each item once. The first is the empty one.
#[derive(Debug)]
pub(super) struct Set<C> {
    items: Arena<C>,
    index: Index,
    hasher: Seeded,
}

impl<C: Chunk> Set<C> {
    /// With the empty item.
    pub(super) fn new(empty: &C::Item) -> Self {
        let mut set = Self { items: Arena::default(), index: Index::default(), hasher: Seeded::default() };
        set.intern(empty);
        set
    }

    /// The number of `item`, which is stored if it is new.
    ///
    /// # Panics
    /// When more than `u32::MAX` are stored, or one has more units than that.
    #[inline]
    pub(super) fn intern(&mut self, item: &C::Item) -> u32 {
        let bytes = C::bytes(item);
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        let hash = (hasher.finish() >> 32) as u32;
        let items = &self.items;
        let is_it = |number| items.bytes(number).is_some_and(|stored| same(stored, bytes));
        match self.index.find(hash, is_it) {
            Some(number) => number,
            None => self.add(item, hash),
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, item: &C::Item, hash: u32) -> u32 {
        assert!(self.items.len() < u32::MAX as usize, "more than 4 billion distinct items");
        let number = self.items.len() as u32;
        self.items.push(item);
        self.index.insert(hash, number);
        number
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&C::Item> {
        self.items.get(number)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// All in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &C::Item> {
        (0..self.items.len() as u32).filter_map(|number| self.items.get(number))
    }
}

/// Equality. The call that compares memory costs more than most items, which are short.
#[inline]
fn same(left: &[u8], right: &[u8]) -> bool {
    let length = left.len();
    if length != right.len() {
        return false;
    }
    match length {
        4..8 => ends::<4>(left) == ends::<4>(right),
        8..=16 => ends::<8>(left) == ends::<8>(right),
        17..=32 => ends::<16>(left) == ends::<16>(right),
        _ => left == right,
    }
}

/// The first and the last bytes, which are all where there are not more than both.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (bytes.first_chunk(), bytes.last_chunk())
}
