//! What a PDB tells of the whole image (streams 1 and 3, "The PDB DBI Stream" of LLVM's documentation): which image is
//! meant, its sections, and which of the object files that it was linked from is where.

use std::io::{Read, Seek};

use super::PdbError;
use super::container::Container;
use crate::symbolize::pe::PdbId;
use crate::symbolize::words::{text_at, u16_at, u32_at};

const PDB_STREAM: u32 = 1;
const DBI_STREAM: u32 = 3;
/// What stands for a stream that is not there.
const NO_STREAM: u16 = u16::MAX;

/// More sections than any image has: Windows loads none with more than 96.
const MOST_SECTIONS: usize = 256;

/// A place in an image: the number of a section, from 1, and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) section: u16,
    pub(super) offset: u32,
}

/// What an object file brought to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Contribution {
    start: Place,
    size: u32,
    object: u16,
}

/// Where the symbols of an object file are, and its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) stream: u16,
    pub(super) symbols: u32,
    pub(super) old_lines: u32,
    pub(super) lines: u32,
}

/// What is told of the whole.
pub(super) struct Information {
    /// Addresses and sizes, by section.
    sections: Vec<(u32, u32)>,
    /// Sorted.
    contributions: Vec<Contribution>,
    pub(super) objects: Vec<Object>,
    /// Names by place, of all that may be linked to.
    pub(super) publics: u32,
    /// The stream of all paths.
    pub(super) paths: Option<u32>,
}

impl Information {
    pub(super) fn read<R: Read + Seek>(pdb: &mut Container<'_, R>, id: &PdbId) -> Result<Self, PdbError> {
        let own = pdb.stream(PDB_STREAM)?;
        if own.get(12..28) != Some(&id.guid[..]) {
            return Err(PdbError::Other);
        }
        let paths = named_stream(&own, b"/names\0");
        let all = pdb.stream(DBI_STREAM)?;
        let damaged = |at: usize| PdbError::damaged("list of object files", Some(DBI_STREAM), at as u64);
        let word = |at| u32_at(&all, at).ok_or_else(|| damaged(at));
        if word(8)? != id.age {
            return Err(PdbError::Other);
        }
        let [objects, contributions, section_map, sources, servers, edit_and_continue, streams] =
            [word(24)?, word(28)?, word(32)?, word(36)?, word(40)?, word(52)?, word(48)?];
        let mut at = 64;
        let mut part = |size: u32| -> Result<(&[u8], usize), PdbError> {
            let part = all.get(at..).and_then(|rest| rest.get(..size as usize)).ok_or_else(|| damaged(at))?;
            let start = at;
            at += part.len();
            Ok((part, start))
        };
        let (objects, start) = part(objects)?;
        let objects = read_objects(objects).ok_or_else(|| damaged(start))?;
        let (contributions, start) = part(contributions)?;
        let contributions = read_contributions(contributions).ok_or_else(|| damaged(start))?;
        for skipped in [section_map, sources, servers, edit_and_continue] {
            part(skipped)?;
        }
        // The sixth of further streams has the headers of the image's sections.
        let (streams, start) = part(streams)?;
        let headers = u16_at(streams, 10).filter(|it| *it != NO_STREAM).ok_or_else(|| damaged(start + 10))?;
        let headers = pdb.stream(headers.into())?;
        let section = |entry: &[u8]| (u32_at(entry, 12).unwrap_or(0), u32_at(entry, 8).unwrap_or(0));
        let sections = headers.chunks_exact(40).take(MOST_SECTIONS).map(section).collect();
        let publics = u16_at(&all, 20).unwrap_or(NO_STREAM).into();
        Ok(Self { sections, contributions, objects, publics, paths })
    }

    /// Where an address is.
    pub(super) fn place(&self, address: u64) -> Option<Place> {
        let address = u32::try_from(address).ok()?;
        let within = |&(start, size): &(u32, u32)| address.checked_sub(start).is_some_and(|at| at < size);
        let section = self.sections.iter().position(within)?;
        Some(Place { section: section as u16 + 1, offset: address - self.sections.get(section)?.0 })
    }

    /// The object file that brought what is at a place, and where what it brought begins.
    pub(super) fn object_at(&self, place: Place) -> Option<(u16, Place)> {
        let after = self.contributions.partition_point(|it| it.start <= place);
        let found = self.contributions.get(after.checked_sub(1)?)?;
        let is_in = found.start.section == place.section && place.offset - found.start.offset < found.size;
        is_in.then_some((found.object, found.start))
    }
}

/// The number of a stream that has a name, which ends with a NUL. The names are a table of hashes: the text of all, then how many there are, two sets of
/// bits that say which places of the table are taken, and for each taken place the offset of a name and a number.
fn named_stream(own: &[u8], name: &[u8]) -> Option<u32> {
    let size = u32_at(own, 28)? as usize;
    let texts = own.get(32..32_usize.checked_add(size)?)?;
    let mut at = 32 + size + 8;
    for _ in 0..2 {
        at = at.checked_add(4 + (u32_at(own, at)? as usize).checked_mul(4)?)?;
    }
    let entries = own.get(at..)?.chunks_exact(8);
    let begins = |text: u32| texts.get(text as usize..).is_some_and(|text| text.starts_with(name));
    let named = |entry: &&[u8]| u32_at(entry, 0).is_some_and(begins);
    entries.take(u32_at(own, 32 + size)? as usize).find(named).and_then(|entry| u32_at(entry, 4))
}

fn read_objects(mut bytes: &[u8]) -> Option<Vec<Object>> {
    let mut objects = Vec::new();
    while !bytes.is_empty() {
        let [symbols, old_lines, lines] = [36, 40, 44].map(|at| u32_at(bytes, at));
        objects.push(Object {
            stream: u16_at(bytes, 34)?,
            symbols: symbols?,
            old_lines: old_lines?,
            lines: lines?,
        });
        let name = text_at(bytes, 64)?.len();
        let file = text_at(bytes, 64 + name + 1)?.len();
        bytes = bytes.get((64 + name + 1 + file + 1).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(objects)
}

fn read_contributions(bytes: &[u8]) -> Option<Vec<Contribution>> {
    /// Of the format that has 4 bytes more for each.
    const SECOND: u32 = 0xeffe_0000 + 20_140_516;
    let size = match u32_at(bytes, 0) {
        None => return Some(Vec::new()),
        Some(SECOND) => 32,
        Some(_) => 28,
    };
    let contribution = |entry: &[u8]| {
        let start = Place { section: u16_at(entry, 0)?, offset: u32_at(entry, 4)? };
        Some(Contribution { start, size: u32_at(entry, 8)?, object: u16_at(entry, 16)? })
    };
    let mut all = bytes.get(4..)?.chunks_exact(size).map(contribution).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    Some(all)
}
