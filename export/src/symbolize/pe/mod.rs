//! A PE image in; the names of its table of symbols and those that it exports, and which PDB and which map of what .NET compiled ahead are its, out ("PE Format" of
//! Microsoft, and type 21 of `docs/design/specs/PE-COFF.md` of dotnet/runtime).
//!
//! Addresses are relative to where the image is loaded (RVA), in its frames as here. Headers and tables are read in pieces, and a
//! table is read only as far as any real file has one.

pub(super) mod ahead;
mod coff;

use std::io::{Read, Seek, SeekFrom};

use super::answer::Answer;
use super::choice::reads_better;
use super::elf::SymbolError;
use super::words::{text_at, u16_at, u32_at};
pub use ahead::{AheadMapError, AheadMapId};

/// Headers are in the first pages.
const MOST_HEADERS: u64 = 64 << 10;
/// Sections: at most 96 are loaded by Windows.
const MOST_SECTIONS: usize = 256;
/// Exports: an ordinal has 16 bits.
const MOST_EXPORTS: usize = 1 << 16;
/// The longest name that is read.
const MOST_NAME: u64 = 4 << 10;
/// Entries of the debug directory.
const MOST_DEBUG: usize = 32;

/// Which PDB is an image's: the same two are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbId {
    /// In the order of the file's bytes.
    pub guid: [u8; 16],
    /// How often it was written since it was made.
    pub age: u32,
    /// Where the linker put it, with the folders of the machine that it ran on.
    pub path: Vec<u8>,
}

impl PdbId {
    /// The folder of a symbol server's layout: the GUID's digits, and those of the age.
    pub fn key(&self) -> String {
        use std::fmt::Write as _;
        let g = &self.guid;
        let mut key = String::new();
        for at in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15] {
            let _ = write!(key, "{:02X}", g[at]);
        }
        let _ = write!(key, "{:X}", self.age);
        key
    }

    /// The file's name: the last part of its path.
    pub fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| matches!(byte, b'\\' | b'/')).next().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug)]
struct Section {
    address: u32,
    size: u32,
    offset: u32,
    in_file: u32,
    flags: u32,
}

impl Section {
    /// `IMAGE_SCN_MEM_EXECUTE`.
    const EXECUTABLE: u32 = 0x2000_0000;
}

/// The headers of an image.
pub(super) struct Image<'a, R> {
    file: &'a mut R,
    sections: Vec<Section>,
    /// Where the exports are, and where the debug directory is, with their sizes.
    exports: (u32, u32),
    debug: (u32, u32),
    /// Where in the file symbols are, and how many.
    symbols: (u32, u32),
}

/// Whether a file begins as images do.
pub(super) fn is_image<R: Read + Seek>(file: &mut R) -> bool {
    let mut start = [0; 2];
    file.rewind().is_ok() && file.read_exact(&mut start).is_ok() && &start == b"MZ" && file.rewind().is_ok()
}

/// Finds symbols, and else exports, for the addresses of `answer` that have no name: the nearest one below, in the same section.
pub(super) fn look_up<R: Read + Seek>(file: &mut R, answer: &mut Answer<'_>) -> Result<(), SymbolError> {
    let mut image = Image::read(file)?;
    let named = image.name_symbols(answer);
    named.and(image.name_exports(answer))
}

/// A section of an image that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// Where it is in the file.
    pub file_offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Where it is loaded, relative to the image.
    pub address: u64,
}

/// The code of a PE image; `None` for what is none.
pub fn code_of_image<R: Read + Seek>(file: &mut R) -> Option<Vec<CodeSection>> {
    if !is_image(file) {
        return None;
    }
    let sections = Image::read(file).ok()?.sections;
    let code = sections.iter().filter(|section| section.flags & Section::EXECUTABLE != 0);
    let code = code.map(|&Section { address, offset, in_file, .. }| CodeSection {
        file_offset: offset.into(),
        file_size: in_file.into(),
        address: address.into(),
    });
    Some(code.collect())
}

/// Which PDB is an image's.
pub(super) fn pdb_of<R: Read + Seek>(file: &mut R) -> Result<Option<PdbId>, SymbolError> {
    Image::read(file)?.pdb()
}

/// Which map of what .NET compiled ahead is an image's.
pub(super) fn ahead_map_of<R: Read + Seek>(file: &mut R) -> Result<Option<AheadMapId>, SymbolError> {
    const PERF_MAP: u32 = 21;
    let of_record = |record: &[u8]| {
        let (signature, rest) = record.strip_prefix(b"R2RM")?.split_first_chunk()?;
        let (version, path) = (u32_at(rest, 0)?, text_at(rest, 4)?.to_vec());
        Some(AheadMapId { signature: *signature, version, path })
    };
    Image::read(file)?.debug_record(|entry| u32_at(entry, 12) == Some(PERF_MAP), of_record)
}

const DAMAGED: SymbolError = SymbolError::Image;

impl<'a, R: Read + Seek> Image<'a, R> {
    fn read(file: &'a mut R) -> Result<Self, SymbolError> {
        file.rewind()?;
        let mut headers = Vec::new();
        file.take(MOST_HEADERS).read_to_end(&mut headers)?;
        Self::parse(file, &headers).ok_or(DAMAGED)
    }

    fn parse(file: &'a mut R, headers: &[u8]) -> Option<Self> {
        let start = u32_at(headers, 0x3c)? as usize;
        let headers = headers.get(start..)?;
        headers.strip_prefix(b"PE\0\0")?;
        let (count, optional_size) = (usize::from(u16_at(headers, 6)?), usize::from(u16_at(headers, 20)?));
        let optional = headers.get(24..24 + optional_size)?;
        // Of 64-bit images, and of others.
        let directories = match u16_at(optional, 0)? {
            0x20b => 112,
            0x10b => 96,
            _ => return None,
        };
        let directory = |index: usize| {
            let is_there = u32_at(optional, directories - 4).is_some_and(|count| count as usize > index);
            let at = directories + 8 * index;
            u32_at(optional, at).zip(u32_at(optional, at + 4)).filter(|_| is_there).unwrap_or_default()
        };
        let table = headers.get(24 + optional_size..)?;
        let section = |entry: &[u8]| {
            let [size, address, in_file, offset, flags] =
                [8, 12, 16, 20, 36].map(|at| u32_at(entry, at).unwrap_or(0));
            Section { address, size, offset, in_file, flags }
        };
        let sections = table.chunks_exact(40).take(count.min(MOST_SECTIONS)).map(section).collect();
        let symbols = (u32_at(headers, 12)?, u32_at(headers, 16)?);
        Some(Self { file, sections, exports: directory(0), debug: directory(6), symbols })
    }

    fn section_of(&self, address: u32) -> Option<&Section> {
        let size = |section: &Section| section.size.max(section.in_file);
        self.sections.iter().find(|it| address.checked_sub(it.address).is_some_and(|at| at < size(it)))
    }

    /// At most `most` of the bytes from an address on.
    fn bytes(&mut self, address: u32, most: u64) -> Result<Vec<u8>, SymbolError> {
        let section = *self.section_of(address).ok_or(DAMAGED)?;
        let at = address - section.address;
        let left = u64::from(section.in_file.saturating_sub(at)).min(most);
        self.file.seek(SeekFrom::Start(u64::from(section.offset) + u64::from(at)))?;
        let mut bytes = Vec::new();
        Read::take(&mut *self.file, left).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn name_exports(&mut self, answer: &mut Answer<'_>) -> Result<(), SymbolError> {
        let (start, size) = self.exports;
        if size == 0 {
            return Ok(());
        }
        let table = self.bytes(start, 40)?;
        let word = |at| u32_at(&table, at).ok_or(DAMAGED);
        let [functions, names, of_functions, of_names, of_ordinals] =
            [word(20)?, word(24)?, word(28)?, word(32)?, word(36)?];
        if names == 0 {
            return Ok(());
        }
        if functions.max(names) as usize > MOST_EXPORTS {
            let size = u64::from(functions.max(names));
            return Err(SymbolError::TooLarge { what: "table of exports", size, limit: MOST_EXPORTS as u64 });
        }
        let addresses = self.bytes(of_functions, u64::from(functions) * 4)?;
        let places = self.bytes(of_names, u64::from(names) * 4)?;
        let ordinals = self.bytes(of_ordinals, u64::from(names) * 2)?;
        let mut exports = Vec::new();
        for index in 0..names as usize {
            let ordinal = u16_at(&ordinals, 2 * index).ok_or(DAMAGED)?;
            let address = u32_at(&addresses, 4 * usize::from(ordinal)).ok_or(DAMAGED)?;
            // Within the table it is the name of another image's export.
            if address.checked_sub(start).is_none_or(|at| at >= size) {
                exports.push((address, u32_at(&places, 4 * index).ok_or(DAMAGED)?));
            }
        }
        exports.sort_unstable();
        let mut last: Option<(u32, Option<u32>)> = None;
        for (position, &wanted) in answer.wanted().iter().enumerate() {
            let Ok(wanted) = u32::try_from(wanted) else { continue };
            let after = exports.partition_point(|(address, _)| *address <= wanted);
            let Some(&(address, _)) = after.checked_sub(1).and_then(|at| exports.get(at)) else { continue };
            let section = self.section_of(wanted).map(|section| section.address);
            if section.is_none() || section != self.section_of(address).map(|section| section.address) {
                continue;
            }
            if !answer.lacks(position) {
                continue;
            }
            let name = match last {
                Some((known, name)) if known == address => name,
                _ => {
                    let same = exports.iter().take(after).rev().take_while(|(it, _)| *it == address);
                    let name = self.best_name(same.map(|(_, place)| *place).take(16))?;
                    answer.add_name(String::from_utf8_lossy(&name).into_owned())
                }
            };
            last = Some((address, name));
            answer.set(position, name);
        }
        Ok(())
    }

    fn best_name(&mut self, places: impl Iterator<Item = u32>) -> Result<Vec<u8>, SymbolError> {
        let mut best = Vec::new();
        for place in places {
            let bytes = self.bytes(place, MOST_NAME)?;
            let name = text_at(&bytes, 0).ok_or(DAMAGED)?;
            if best.is_empty() || reads_better(name, &best) {
                best = name.to_vec();
            }
        }
        Ok(best)
    }

    fn pdb(&mut self) -> Result<Option<PdbId>, SymbolError> {
        const CODE_VIEW: u32 = 2;
        /// Of .NET's own format (ECMA-335 metadata, "Portable PDB"), which has no addresses.
        const PORTABLE: u16 = 0x504d;
        let is_pdb =
            |entry: &[u8]| u32_at(entry, 12) == Some(CODE_VIEW) && u16_at(entry, 10) != Some(PORTABLE);
        // Ready-to-run images of .NET have two, the first of their native code.
        self.debug_record(is_pdb, |record| {
            let rest = record.strip_prefix(b"RSDS")?;
            let path = text_at(rest, 20)?.to_vec();
            Some(PdbId { guid: *rest.first_chunk()?, age: u32_at(rest, 16)?, path })
        })
    }

    /// What is made of the first record of the debug directory that something can be made of.
    fn debug_record<T>(
        &mut self,
        is_meant: impl Fn(&[u8]) -> bool,
        make: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, SymbolError> {
        let (start, size) = self.debug;
        if size == 0 {
            return Ok(None);
        }
        let directory = self.bytes(start, u64::from(size).min(28 * MOST_DEBUG as u64))?;
        for entry in directory.chunks_exact(28).filter(|entry| is_meant(entry)) {
            let (Some(size), Some(offset)) = (u32_at(entry, 16), u32_at(entry, 24)) else { continue };
            self.file.seek(SeekFrom::Start(offset.into()))?;
            let mut record = Vec::new();
            Read::take(&mut *self.file, u64::from(size).min(MOST_NAME)).read_to_end(&mut record)?;
            let made = make(&record);
            if made.is_some() {
                return Ok(made);
            }
        }
        Ok(None)
    }
}
