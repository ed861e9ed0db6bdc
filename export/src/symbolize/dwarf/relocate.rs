//! An object file that was not linked, as a module of the kernel is, and where its sections lie in memory, in; its sections of debug
//! information as if it had been linked there, out.
//!
//! Addresses and offsets in these are zero, or any, in the file: a table tells for each which symbol and number belong there (ELF
//! gABI, "Relocation"; processor supplements of x86-64 and aarch64).

use std::io::{Read, Seek};

use object::elf::{EM_AARCH64, EM_X86_64, Rela64, Sym64};
use object::{Endianness, elf};

use super::LineError;
use super::meter::Meter;
use crate::symbolize::elf::{Layout, each_entry};

/// Symbols of a module that are looked at. The largest have some ten thousand.
const MAX_SYMBOLS: usize = 1 << 20;

/// Places of a section that are filled in. The largest modules have some million.
const MAX_PLACES: usize = 1 << 24;

/// What it takes of memory to hold a place.
const PLACE: u64 = size_of::<Place>() as u64;

/// Where sections lie, by their names.
pub(in crate::symbolize) type Placed = [(String, u64)];

/// A number that is to be written into a section.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    value: u64,
    bytes: u8,
}

/// The values of a file's symbols.
#[derive(Debug)]
pub(super) struct Relocations {
    symbols: Vec<u64>,
}

/// What is to be written into one section, in the order of places.
#[derive(Debug, Default)]
pub(super) struct Filling(Vec<Place>);

impl Relocations {
    /// Reads the symbols.
    pub(super) fn read<F: Read + Seek>(
        file: &mut F,
        layout: &Layout,
        placed: &Placed,
        meter: &Meter,
    ) -> Result<Self, LineError> {
        let bases = layout.placed(placed);
        let base = |index: u16| bases.get(usize::from(index)).copied().unwrap_or_default();
        let mut symbols = Vec::new();
        if let Some((_, table)) = layout.tables(elf::SHT_SYMTAB).next() {
            each_entry::<Sym64<Endianness>, F>(file, table, "symbol table", |_, entries| {
                let value = |symbol: &Sym64<Endianness>| {
                    base(symbol.st_shndx.get(layout.endian).0)
                        .wrapping_add(symbol.st_value.get(layout.endian))
                };
                symbols.extend(entries.iter().map(value));
                Ok(symbols.len() < MAX_SYMBOLS)
            })
            .map_err(|_| LineError::Unreadable)?;
        }
        meter.hold(symbols.len() as u64 * 8).map_err(LineError::Malformed)?;
        Ok(Self { symbols })
    }

    /// What is to be written into the section of this position.
    pub(super) fn of_section<F: Read + Seek>(
        &self,
        file: &mut F,
        layout: &Layout,
        position: usize,
        meter: &Meter,
    ) -> Result<Filling, LineError> {
        let mut places = Vec::new();
        for (_, table) in layout.relocations_of(position) {
            let count = table.size / size_of::<Rela64<Endianness>>() as u64;
            meter.hold(count.min(MAX_PLACES as u64) * PLACE).map_err(LineError::Malformed)?;
            each_entry::<Rela64<Endianness>, F>(file, table, "table of relocations", |_, entries| {
                places.extend(entries.iter().filter_map(|entry| self.place(layout, entry)));
                Ok(places.len() < MAX_PLACES)
            })
            .map_err(|_| LineError::Unreadable)?;
        }
        places.sort_by_key(|place| place.offset);
        Ok(Filling(places))
    }

    /// Only numbers that stand for themselves: no others are in debug information.
    fn place(&self, layout: &Layout, entry: &Rela64<Endianness>) -> Option<Place> {
        let endian = layout.endian;
        let kind = entry.r_type(endian, false);
        let bytes = match (layout.machine, kind) {
            (EM_X86_64, elf::R_X86_64_64) | (EM_AARCH64, elf::R_AARCH64_ABS64) => 8,
            (EM_X86_64, elf::R_X86_64_32 | elf::R_X86_64_32S) | (EM_AARCH64, elf::R_AARCH64_ABS32) => 4,
            _ => return None,
        };
        let symbol = self.symbols.get(entry.r_sym(endian, false) as usize)?;
        let value = symbol.wrapping_add_signed(entry.r_addend.get(endian));
        Some(Place { offset: entry.r_offset.get(endian), value, bytes })
    }
}

impl Filling {
    /// Writes what belongs there into bytes that begin at `start` in the section.
    pub(super) fn fill(&self, start: usize, bytes: &mut [u8]) {
        /// The longest number.
        const LONGEST: u64 = 8;
        let start = start as u64;
        let first = self.0.partition_point(|place| place.offset.saturating_add(LONGEST) <= start);
        let end = start.saturating_add(bytes.len() as u64);
        let places = self.0.get(first..).unwrap_or_default();
        for place in places.iter().take_while(|place| place.offset < end) {
            // One may begin in what was read before, and end here.
            for (byte, at) in
                place.value.to_le_bytes().into_iter().zip(place.offset..).take(place.bytes.into())
            {
                let slot = at.checked_sub(start).and_then(|at| bytes.get_mut(at as usize));
                if let Some(slot) = slot {
                    *slot = byte;
                }
            }
        }
    }
}
