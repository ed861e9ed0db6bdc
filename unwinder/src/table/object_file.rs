//! One relocatable object (`ET_REL`): the parts of its code lie where a loader put each of them, and its unwind sections
//! name code by relocations. Those that name other things (personality routines) matter to no walk.
//!
//! Source: the ELF gABI, "Relocation"; the supplements of x86-64 and of `AArch64` for what each type computes.

use object::elf;
use object::read::elf::{ElfFile, FileHeader, SectionHeader};
use object::{LittleEndian as LE, Object, ObjectSection, ObjectSymbol, ReadRef};
use object::{Relocation, RelocationKind, RelocationTarget, SectionFlags};

use super::code_sections::{Section, UnwindSections};
use super::elf_file::{Names, SectionOf, check_machine, content};
use super::sections::{self, Parts};
use super::unpack::MAX_UNPACKED;
use crate::arch::Machine;
use crate::{Architecture, TableError, UnreadSection};

type File<'d, A, R> = ElfFile<'d, <A as Machine>::Elf, R>;

/// Reads the parts out of an object. `place` gives the address of an executable section, by number and name (empty if it
/// has none, or a very long one), if it was loaded.
pub(crate) fn read<'d, A, R>(
    data: R,
    mut place: impl FnMut(usize, &str) -> Option<u64>,
) -> Result<Parts, TableError>
where
    A: Architecture,
    R: ReadRef<'d>,
{
    let header = A::Elf::parse(data)?;
    check_machine::<A>(header)?;
    let kind = header.e_type(LE);
    if kind != elf::ET_REL {
        return Err(TableError::NotRelocatable { kind: kind.0 });
    }
    let file = File::<A, R>::parse(data)?;
    let names = Names::of(header, file.elf_section_table(), data);
    let mut places = Places::default();
    for section in file.sections().filter(is_code) {
        let (index, name) = (section.index().0, names.at(section.elf_section_header().sh_name(LE)));
        if let Some(address) = place(index, name) {
            places.add(index, address, section.size());
        }
    }
    let Some(start) = places.start else { return Err(TableError::NoText) };
    // Relocations that lead nowhere leave a pointer at itself, which must be no code.
    let address = places.end.wrapping_add(7) & !7;
    let eh_frame = relocated::<A, R>(&file, ".eh_frame", address, &places);
    let debug_frame = relocated::<A, R>(&file, ".debug_frame", 0, &places);
    let unread = eh_frame.as_ref().err().or(debug_frame.as_ref().err()).cloned();
    let (eh_frame, debug_frame) = (eh_frame.ok().flatten(), debug_frame.ok().flatten());
    let found = UnwindSections {
        text: start..places.end,
        eh_frame: eh_frame.as_deref().map(|bytes| Section { address, bytes }),
        eh_frame_hdr: None,
        debug_frame: debug_frame.as_deref(),
    };
    sections::copy(&found, unread)
}

fn is_code<'d, S: ObjectSection<'d>>(section: &S) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    sh_flags.contains(elf::SHF_ALLOC) && sh_flags.contains(elf::SHF_EXECINSTR) && section.size() > 0
}

/// Where the sections are.
#[derive(Debug, Default)]
struct Places {
    /// Sorted by section.
    addresses: Vec<(usize, u64)>,
    /// The first address of all.
    start: Option<u64>,
    /// Behind the last.
    end: u64,
}

impl Places {
    /// Takes sections in the order of their numbers.
    fn add(&mut self, index: usize, address: u64, size: u64) {
        self.addresses.push((index, address));
        self.start = Some(self.start.map_or(address, |start| start.min(address)));
        self.end = self.end.max(address.saturating_add(size));
    }

    fn of(&self, index: usize) -> Option<u64> {
        let found = self.addresses.binary_search_by_key(&index, |&(index, _)| index);
        found.ok().and_then(|found| self.addresses.get(found)).map(|&(_, address)| address)
    }
}

/// A section's bytes, as if loaded at `address`.
fn relocated<'d, A: Architecture, R: ReadRef<'d>>(
    file: &File<'d, A, R>,
    name: &'static str,
    address: u64,
    places: &Places,
) -> Result<Option<Vec<u8>>, UnreadSection> {
    let names = Names::of(file.elf_header(), file.elf_section_table(), file.data());
    let is_asked = |header: &SectionOf<A>| names.is(header.sh_name(LE), name.as_bytes());
    let Some(section) = file.sections().find(|section| is_asked(section.elf_section_header())) else {
        return Ok(None);
    };
    let bytes = content(section.elf_section_header(), file.data(), MAX_UNPACKED);
    let mut bytes = bytes.map_err(|problem| UnreadSection { section: name, problem })?.into_owned();
    // No byte has more than one; but a file can have any number of tables of them that are the same bytes.
    for (offset, relocation) in section.relocations().take(bytes.len()) {
        let implicit = if relocation.has_implicit_addend() { addend_at(&bytes, offset) } else { 0 };
        let target = target::<A, R>(file, &relocation, (section.index().0, address), places);
        let target = target.map(|target| A::WORD.offset(target, implicit));
        let value = match relocation.kind() {
            RelocationKind::Absolute => target.unwrap_or(u64::MAX),
            RelocationKind::Relative => {
                let distance = target.map(|target| target.wrapping_sub(address.wrapping_add(offset)));
                let fits = |distance: &u64| i32::try_from(A::WORD.signed(*distance)).is_ok();
                distance.filter(|distance| relocation.size() == 64 || fits(distance)).unwrap_or(0)
            }
            _ => continue,
        };
        put(&mut bytes, offset, relocation.size(), value);
    }
    Ok(Some(bytes))
}

/// The address that a relocation of the section `own` (number and address) names.
fn target<'d, A: Architecture, R: ReadRef<'d>>(
    file: &File<'d, A, R>,
    relocation: &Relocation,
    own: (usize, u64),
    places: &Places,
) -> Option<u64> {
    let RelocationTarget::Symbol(index) = relocation.target() else { return None };
    let symbol = file.symbol_by_index(index).ok()?;
    let section = symbol.section_index()?.0;
    let base = if section == own.0 { own.1 } else { places.of(section)? };
    Some(base.wrapping_add(symbol.address()).wrapping_add_signed(relocation.addend()))
}

/// What the place of a relocation of 32 bits holds to be added (`Elf32_Rel`); no other size has it there.
fn addend_at(bytes: &[u8], offset: u64) -> i64 {
    let place = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)?.first_chunk());
    place.map_or(0, |place| i32::from_le_bytes(*place).into())
}

/// Writes the low `bits` of a value; a place outside of the section is none.
fn put(bytes: &mut [u8], offset: u64, bits: u8, value: u64) {
    let value = value.to_le_bytes();
    let size = usize::from(bits / 8);
    let place = usize::try_from(offset).ok().and_then(|offset| bytes.get_mut(offset..)?.get_mut(..size));
    if let (Some(place), Some(value)) = (place, value.get(..size)) {
        place.copy_from_slice(value);
    }
}
