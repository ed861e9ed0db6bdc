//! The part of a mapping in which a walk last looked something up. Calls stay within a file more often than not, so the
//! caller's binary search is asked again only when an address leaves the region; and where the address space names its
//! state, regions are remembered from one walk to the next.

use std::num::NonZeroU64;

use crate::cache::{CacheKey, SpaceNumber};
use crate::{AddressSpace, Architecture, UnwindTable};

/// A range of addresses of which one thing can be said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    start: u64,
    length: u64,
    /// That of the region's start.
    key: CacheKey,
}

/// What the address space says of an address now.
pub(crate) struct Found<'a, A: Architecture> {
    pub(crate) region: Region,
    /// The table, and the bias of its file.
    pub(crate) table: Option<(&'a UnwindTable<A>, u64)>,
}

impl Region {
    /// Contains no address.
    pub(crate) const NOWHERE: Region = Region::unmapped(0, 0);

    const fn unmapped(start: u64, length: u64) -> Self {
        Region { start, length, key: CacheKey::UNMAPPED }
    }

    const fn mapped(start: u64, length: u64, key: CacheKey) -> Self {
        Region { start, length, key }
    }

    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.length
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.key != CacheKey::UNMAPPED
    }

    /// With a key, if it is code without rules; `number` is that of its address space.
    fn with_key_of_code(mut self, number: impl FnOnce() -> Option<SpaceNumber>) -> Self {
        if self.key == CacheKey::NONE
            && let Some(last) = self.start.checked_add(self.length.saturating_sub(1))
            && CacheKey::has_code(last)
        {
            self.key = number().map_or(CacheKey::NONE, |number| CacheKey::of_code(number, self.start));
        }
        self
    }

    /// Whether its addresses have keys.
    #[inline]
    pub(crate) fn has_keys(&self) -> bool {
        self.key.is_one()
    }

    /// This region, or, if its addresses have no keys, one that is as much mapped and contains nothing: whoever asks what
    /// contains an address need not ask for its key, too.
    #[inline]
    pub(crate) fn emptied_without_keys(self) -> Self {
        if self.has_keys() { self } else { Region { length: 0, ..self } }
    }

    /// The cache's key of an address in this region, which has keys.
    #[inline]
    pub(crate) fn key(&self, address: u64) -> CacheKey {
        self.key.advanced(address.wrapping_sub(self.start))
    }
}

/// Asks `space` for the region around `address`: the mapping without what lies outside of its file's text.
#[inline(never)]
pub(crate) fn find<A: Architecture, S: AddressSpace<A>>(space: &S, address: u64) -> Found<'_, A> {
    // A mapping that does not contain the address asked for would be an answer to another question.
    let Some(mapping) = space.lookup(address).filter(|mapping| mapping.contains(address)) else {
        return Found { region: Region::unmapped(address, 1), table: None };
    };
    let Some(table) = mapping.table else {
        let region = Region::mapped(mapping.start, mapping.end - mapping.start, CacheKey::NONE);
        return Found { region, table: None };
    };
    let (text_start, text_size, text_key) = table.text();
    let text_start = text_start.wrapping_add(mapping.bias);
    let start = mapping.start.max(text_start);
    let end = mapping.end.min(text_start.saturating_add(text_size.into()));
    if !(start..end).contains(&address) {
        return Found { region: Region::mapped(address, 1, CacheKey::NONE), table: None };
    }
    let region = Region::mapped(start, end - start, text_key.advanced(start - text_start));
    Found { region, table: Some((table, mapping.bias)) }
}

const MEMORY: usize = 512;
const SPACES: usize = 64;

/// Regions of earlier walks, by address space and 64 KiB of code.
#[derive(Debug)]
pub(crate) struct RegionMemory {
    entries: Box<[(u64, Region); MEMORY]>,
    spaces: Spaces,
}

/// The numbers of address spaces whose code is remembered, by their generation: no number stands for two, but one may come
/// to have several.
#[derive(Debug)]
struct Spaces {
    entries: Box<[(u64, Option<SpaceNumber>); SPACES]>,
    /// The next one; `None` if there are no more.
    next: Option<SpaceNumber>,
}

impl Spaces {
    fn new() -> Self {
        // No address space has the generation 0.
        Spaces { entries: Box::new([(0, None); SPACES]), next: Some(SpaceNumber::FIRST) }
    }

    fn number(&mut self, generation: u64) -> Option<SpaceNumber> {
        let entry = &mut self.entries[(generation.wrapping_mul(MIXER) >> 58) as usize % SPACES];
        if entry.0 != generation || entry.1.is_none() {
            *entry = (generation, self.next);
            self.next = self.next.and_then(SpaceNumber::following);
        }
        entry.1
    }
}

/// 2^64 / phi, for Fibonacci hashing.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

impl RegionMemory {
    pub(crate) fn new() -> Self {
        // No address space has the generation 0.
        RegionMemory { entries: Box::new([(0, Region::NOWHERE); MEMORY]), spaces: Spaces::new() }
    }

    /// Forgets all regions and numbers. Keys of code that come after this are those of other code.
    pub(crate) fn clear(&mut self) {
        *self = RegionMemory::new();
    }

    #[inline]
    pub(crate) fn region<A: Architecture, S: AddressSpace<A>>(
        &mut self,
        space: &S,
        generation: Option<NonZeroU64>,
        address: u64,
    ) -> Region {
        let Some(generation) = generation.map(NonZeroU64::get) else { return find(space, address).region };
        let entry = self.entry(generation, address);
        if entry.0 == generation && entry.1.contains(address) {
            return entry.1;
        }
        self.found(space, generation, address)
    }

    #[cold]
    #[inline(never)]
    fn found<A: Architecture, S: AddressSpace<A>>(
        &mut self,
        space: &S,
        generation: u64,
        address: u64,
    ) -> Region {
        let region = find(space, address).region.with_key_of_code(|| self.spaces.number(generation));
        *self.entry(generation, address) = (generation, region);
        region
    }

    /// Whether `address` is mapped. Nothing is forgotten for one that is not: most words on a stack are none.
    #[inline]
    pub(crate) fn is_mapped<A: Architecture, S: AddressSpace<A>>(
        &mut self,
        space: &S,
        generation: Option<NonZeroU64>,
        address: u64,
    ) -> bool {
        let Some(generation) = generation.map(NonZeroU64::get) else {
            return find(space, address).region.is_mapped();
        };
        let entry = self.entry(generation, address);
        if entry.0 == generation && entry.1.contains(address) {
            return entry.1.is_mapped();
        }
        let region = find(space, address).region.with_key_of_code(|| self.spaces.number(generation));
        if region.is_mapped() {
            *self.entry(generation, address) = (generation, region);
        }
        region.is_mapped()
    }

    #[inline]
    fn entry(&mut self, generation: u64, address: u64) -> &mut (u64, Region) {
        let mixed = (address >> 16 ^ generation.rotate_left(32)).wrapping_mul(MIXER);
        &mut self.entries[(mixed >> 55) as usize % MEMORY]
    }
}
