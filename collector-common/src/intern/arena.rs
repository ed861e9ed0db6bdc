//! Items of differing length, one behind the other in chunks: a new item costs the same in an arena of any size, since a full
//! chunk is never moved. Only the first grows, up to the size of the others.

use std::ops::Range;

/// Units of an item in a chunk. A longer item has a chunk of its own.
const UNITS: usize = 1 << 16;

/// Places in one vector. The first of them grows as it is filled, for arenas that stay small.
const PLACES: usize = 1 << 14;

/// A vector of the units that items are made of.
pub(super) trait Chunk: Default {
    /// Some units.
    type Item: ?Sized;

    /// An empty chunk with room for so many.
    fn with_capacity(units: usize) -> Self;
    /// Units in it.
    fn len(&self) -> usize;
    /// Adds an item.
    fn push(&mut self, item: &Self::Item);
    /// Some of the units.
    fn get(&self, range: Range<usize>) -> Option<&Self::Item>;
    /// Units of an item.
    fn units(item: &Self::Item) -> usize;
    /// What is hashed and compared.
    fn bytes(item: &Self::Item) -> &[u8];
    /// The same of some of the units.
    fn bytes_of(&self, range: Range<usize>) -> Option<&[u8]>;
}

/// Items numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Arena<C> {
    chunks: Vec<C>,
    places: Vec<Vec<Place>>,
    len: usize,
}

/// Where an item is.
#[derive(Clone, Copy, Debug)]
struct Place {
    chunk: u32,
    start: u32,
    units: u32,
}

impl<C: Chunk> Arena<C> {
    /// Adds an item.
    ///
    /// # Panics
    /// When it has more than `u32::MAX` units.
    pub(super) fn push(&mut self, item: &C::Item) {
        let units = C::units(item);
        assert!(u32::try_from(units).is_ok(), "an item of more than 4 billion units");
        if self.chunks.last().is_none_or(|chunk| chunk.len() + units > UNITS) {
            let first = self.chunks.is_empty();
            self.chunks.push(C::with_capacity(if first { units } else { UNITS.max(units) }));
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        let place = Place { chunk: last as u32, start: chunk.len() as u32, units: units as u32 };
        chunk.push(item);
        if self.len.is_multiple_of(PLACES) {
            self.places.push(Vec::with_capacity(if self.len == 0 { 0 } else { PLACES }));
        }
        if let Some(places) = self.places.last_mut() {
            places.push(place);
        }
        self.len += 1;
    }

    /// An item by its number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&C::Item> {
        let (chunk, range) = self.place(number)?;
        chunk.get(range)
    }

    /// Its bytes.
    #[inline]
    pub(super) fn bytes(&self, number: u32) -> Option<&[u8]> {
        let (chunk, range) = self.place(number)?;
        chunk.bytes_of(range)
    }

    #[inline]
    fn place(&self, number: u32) -> Option<(&C, Range<usize>)> {
        let number = number as usize;
        let place = self.places.get(number / PLACES)?.get(number % PLACES)?;
        let start = place.start as usize;
        Some((self.chunks.get(place.chunk as usize)?, start..start + place.units as usize))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}
