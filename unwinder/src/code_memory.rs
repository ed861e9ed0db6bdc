//! What guesses have learnt from code, remembered from one walk to the next: three direct-mapped caches, one of each per
//! [`crate::Unwinder`].
//!
//! What is remembered are facts about code, never a guess: each follows from the mappings and the code of the address space
//! alone, so a walk that finds it here goes on as one that reads the code would. The key has the address space's generation, and where
//! there is none nothing is remembered.

use std::num::NonZeroU64;

use crate::code::{Site, WayOut};
use crate::epilogue::Departure;
use crate::prologue::Prologue;

/// Entries of each cache.
const ENTRIES: usize = 2048;
const SHIFT: u32 = 64 - ENTRIES.trailing_zeros();

/// Where in which address space, and what else the answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    /// No address space's generation is 0: that is an empty entry's.
    generation: u64,
    address: u64,
    detail: u8,
}

impl Key {
    const EMPTY: Key = Key { generation: 0, address: 0, detail: 0 };

    /// By Fibonacci hashing, as in the cache of rules.
    #[inline]
    fn slot(self) -> usize {
        let mixed = self.address ^ self.generation.rotate_left(32) ^ u64::from(self.detail) << 56;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> SHIFT) as usize
    }
}

/// One of the caches; its memory is taken when there is something to remember.
#[derive(Debug, Default)]
struct Cache<T> {
    entries: Box<[(Key, T)]>,
}

impl<T: Copy + Default> Cache<T> {
    #[inline]
    fn get(&self, key: Key) -> Option<T> {
        let (known, value) = self.entries.get(key.slot())?;
        (*known == key).then_some(*value)
    }

    fn set(&mut self, key: Key, value: T) {
        if self.entries.is_empty() {
            self.entries = vec![(Key::EMPTY, T::default()); ENTRIES].into_boxed_slice();
        }
        if let Some(entry) = self.entries.get_mut(key.slot()) {
            *entry = (key, value);
        }
    }

    fn clear(&mut self) {
        self.entries.fill((Key::EMPTY, T::default()));
    }
}

/// What is asked about the function of a frame.
#[derive(Clone, Copy, Debug)]
enum OfFunction {
    WayOut(WayOut),
    Beginning(Option<u64>),
}

impl Default for OfFunction {
    fn default() -> Self {
        OfFunction::WayOut(WayOut::default())
    }
}

/// What code told earlier walks.
#[derive(Debug, Default)]
pub(crate) struct CodeMemory {
    functions: Cache<OfFunction>,
    sites: Cache<Site>,
    prologues: Cache<Prologue>,
}

impl CodeMemory {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.functions.clear();
        self.sites.clear();
        self.prologues.clear();
    }

    /// How the function of a frame goes on to its return, after `number` ways that led nowhere. What is known of that is of a frame
    /// in code that can be read, which is neither a signal handler's way back nor where a stack begins.
    #[inline]
    pub(crate) fn way_out(
        &self,
        generation: Option<NonZeroU64>,
        from: Departure,
        number: usize,
    ) -> Option<WayOut> {
        match self.functions.get(way_key(generation?, from, number))? {
            OfFunction::WayOut(way) => Some(way),
            OfFunction::Beginning(_) => None,
        }
    }

    pub(crate) fn set_way_out(
        &mut self,
        generation: Option<NonZeroU64>,
        from: Departure,
        number: usize,
        way: WayOut,
    ) {
        if let Some(generation) = generation {
            self.functions.set(way_key(generation, from, number), OfFunction::WayOut(way));
        }
    }

    /// Where the function of a frame seems to begin, or else what `look` says, and whether all of the code could be read. That is
    /// remembered where a way out is, for the code is one of which answers may be.
    pub(crate) fn beginning(
        &mut self,
        generation: Option<NonZeroU64>,
        from: Departure,
        look: impl FnOnce() -> (Option<u64>, bool),
    ) -> Option<u64> {
        let Some(key) = generation.map(|generation| way_key(generation, from, BEGINNING)) else {
            return look().0;
        };
        if let Some(OfFunction::Beginning(known)) = self.functions.get(key) {
            return known;
        }
        let (beginning, is_whole) = look();
        if is_whole && self.way_out(generation, from, 0).is_some() {
            self.functions.set(key, OfFunction::Beginning(beginning));
        }
        beginning
    }

    /// What there is before an address.
    #[inline]
    pub(crate) fn site(&self, generation: Option<NonZeroU64>, address: u64) -> Option<Site> {
        self.sites.get(Key { generation: generation?.get(), address, detail: 0 })
    }

    pub(crate) fn set_site(&mut self, generation: Option<NonZeroU64>, address: u64, site: Site) {
        if let Some(generation) = generation.map(NonZeroU64::get) {
            self.sites.set(Key { generation, address, detail: 0 }, site);
        }
    }

    /// What the first `length` bytes of a function do, or else what `compute` says, and whether all of them could be read.
    pub(crate) fn prologue(
        &mut self,
        generation: Option<NonZeroU64>,
        entry: u64,
        length: u8,
        compute: impl FnOnce() -> (Prologue, bool),
    ) -> Prologue {
        let Some(generation) = generation.map(NonZeroU64::get) else { return compute().0 };
        let key = Key { generation, address: entry, detail: length };
        self.prologues.get(key).unwrap_or_else(|| {
            let (prologue, is_whole) = compute();
            if is_whole {
                self.prologues.set(key, prologue);
            }
            prologue
        })
    }
}

/// In place of a way's number, where the function's beginning is asked about.
const BEGINNING: usize = 7;

/// The stack pointer's lowest bits take four of the detail's bits, and `number` has three.
fn way_key(generation: NonZeroU64, from: Departure, number: usize) -> Key {
    let detail = u8::from(from.has_called) | from.misaligned << 1 | (number as u8) << 5;
    Key { generation: generation.get(), address: from.address, detail }
}
