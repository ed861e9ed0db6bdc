//! The part of a mapping in which a walk last looked something up. Calls stay within a file more often than not, so the
//! caller's binary search is asked again only when an address leaves the region; and where the address space names its
//! state, regions are remembered from one walk to the next.

use std::num::NonZeroU64;

use crate::cache::CacheKey;
use crate::{AddressSpace, Architecture, UnwindTable};

/// A range of addresses of which one thing can be said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    start: u64,
    length: u64,
    content: Content,
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Unmapped,
    /// Executable memory without rules.
    NoTable,
    /// Text of a file that has a table; the key is that of the region's start.
    Text(CacheKey),
}

/// What the address space says of an address now.
pub(crate) struct Found<'a, A: Architecture> {
    pub(crate) region: Region,
    /// The table, and the bias of its file.
    pub(crate) table: Option<(&'a UnwindTable<A>, u64)>,
}

impl Region {
    /// Contains no address.
    pub(crate) const NOWHERE: Region = Region { start: 0, length: 0, content: Content::Unmapped };

    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.length
    }

    pub(crate) fn is_mapped(&self) -> bool {
        !matches!(self.content, Content::Unmapped)
    }

    /// The cache's key of an address in this region.
    #[inline]
    pub(crate) fn key(&self, address: u64) -> Option<CacheKey> {
        match self.content {
            Content::Text(key) => Some(key.advanced(address.wrapping_sub(self.start))),
            Content::NoTable | Content::Unmapped => None,
        }
    }
}

/// Asks `space` for the region around `address`: the mapping without what lies outside of its file's text.
#[inline(never)]
pub(crate) fn find<A: Architecture, S: AddressSpace<A>>(space: &S, address: u64) -> Found<'_, A> {
    let nothing = Region { start: address, length: 1, content: Content::Unmapped };
    // A mapping that does not contain the address asked for would be an answer to another question.
    let Some(mapping) = space.lookup(address).filter(|mapping| mapping.contains(address)) else {
        return Found { region: nothing, table: None };
    };
    let Some(table) = mapping.table else {
        let length = mapping.end - mapping.start;
        return Found {
            region: Region { start: mapping.start, length, content: Content::NoTable },
            table: None,
        };
    };
    let (text_start, text_size, text_key) = table.text();
    let text_start = text_start.wrapping_add(mapping.bias);
    let start = mapping.start.max(text_start);
    let end = mapping.end.min(text_start.saturating_add(text_size.into()));
    if !(start..end).contains(&address) {
        return Found { region: Region { content: Content::NoTable, ..nothing }, table: None };
    }
    let content = Content::Text(text_key.advanced(start - text_start));
    Found { region: Region { start, length: end - start, content }, table: Some((table, mapping.bias)) }
}

const MEMORY: usize = 128;

/// Regions of earlier walks, by address space and 64 KiB of code.
#[derive(Debug)]
pub(crate) struct RegionMemory {
    entries: Box<[(u64, Region); MEMORY]>,
}

impl RegionMemory {
    pub(crate) fn new() -> Self {
        // No address space has the generation 0.
        RegionMemory { entries: Box::new([(0, Region::NOWHERE); MEMORY]) }
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
        let found = find(space, address).region;
        *entry = (generation, found);
        found
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
        let region = find(space, address).region;
        if region.is_mapped() {
            *entry = (generation, region);
        }
        region.is_mapped()
    }

    #[inline]
    fn entry(&mut self, generation: u64, address: u64) -> &mut (u64, Region) {
        let mixed = (address >> 16 ^ generation.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.entries[(mixed >> 57) as usize % MEMORY]
    }
}
