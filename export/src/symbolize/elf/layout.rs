//! An ELF file's headers: what `object` parses of them, copied out so that the file can be read on.

use std::io::{Read, Seek};

use object::elf::{
    EM_386, ET_REL, FileHeader32, FileHeader64, Machine, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR,
    SHT_NOBITS, SHT_PROGBITS, SHT_REL, SHT_RELA, SectionType,
};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

use super::SymbolError;

/// Headers are small: one read of more than this is refused, and with it the memory it would take.
const MAX_HEADER_READ: u64 = 16 << 20;

/// Files compiled with a section for each function have tens of thousands before they are linked, and after it
/// some tens.
const MAX_SECTIONS: u64 = 1 << 16;

/// Tables of one kind that are looked at.
const MAX_TABLES: usize = 8;

/// The longest name of a section of debug information.
const MAX_DEBUG_NAME: usize = 64;

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(in crate::symbolize) struct Section {
    pub(super) kind: SectionType,
    pub(super) executable: bool,
    /// Whether its name says that it holds procedure linkage stubs, or relocations for them.
    pub(super) plt: bool,
    pub(super) address: u64,
    pub(in crate::symbolize) offset: u64,
    pub(in crate::symbolize) size: u64,
    pub(super) entry_size: u64,
    /// The section that this one's entries refer to: strings for symbols, symbols for relocations.
    pub(super) link: u32,
    /// The section that relocations are of.
    pub(super) info: u32,
}

impl Section {
    /// Whether an address lies in it.
    pub(super) fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.size)
    }

    /// Whether the file has its bytes; in a file of debug information code sections have none.
    pub(in crate::symbolize) fn has_bytes(&self) -> bool {
        self.kind != SHT_NOBITS
    }
}

/// A section of debug information.
#[derive(Debug)]
pub(in crate::symbolize) struct DebugSection {
    /// As `.debug_info`, `.zdebug_info` or `.gnu_debugaltlink`.
    pub(in crate::symbolize) name: Vec<u8>,
    /// Which of the file's sections it is.
    pub(in crate::symbolize) position: usize,
    pub(in crate::symbolize) section: Section,
    /// Whether it begins with the header of a compressed section.
    pub(in crate::symbolize) is_compressed: bool,
}

/// What is known of a file.
#[derive(Debug)]
pub(in crate::symbolize) struct Layout {
    pub(in crate::symbolize) endian: Endianness,
    pub(in crate::symbolize) is_64: bool,
    pub(in crate::symbolize) machine: Machine,
    pub(super) sections: Vec<Section>,
    /// Address ranges of code, sorted: start and end.
    code: Vec<(u64, u64)>,
    /// Where stubs find the slots that they jump through, if it is where a register tells them.
    pub(super) offset_table: Option<u64>,
    /// Which section is `.gnu_debugdata`.
    debug_data: Option<usize>,
    debug_sections: Vec<DebugSection>,
    /// Sections of code of a file that was not linked, by their names.
    unlinked: Vec<(usize, Vec<u8>)>,
}

impl Layout {
    /// Reads the headers and gives the file back.
    pub(in crate::symbolize) fn read<R: Read + Seek>(file: R) -> Result<(Self, R), SymbolError> {
        let cache = ReadCache::new(file);
        let parsed = {
            let data = Headers(&cache);
            // The class is the byte after the magic number, in both classes' headers.
            match data.read_bytes_at(0, 5) {
                Ok([.., 1]) => Self::parse::<FileHeader32<Endianness>, _>(data, false),
                _ => Self::parse::<FileHeader64<Endianness>, _>(data, true),
            }
        }?;
        Ok((parsed, cache.into_inner()))
    }

    fn parse<'data, Elf, R>(data: R, is_64: bool) -> Result<Self, SymbolError>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: ReadRef<'data>,
    {
        let header = Elf::parse(data).map_err(SymbolError::Malformed)?;
        let endian = header.endian().map_err(SymbolError::Malformed)?;
        let headers = header.section_headers(endian, data).map_err(SymbolError::Malformed)?;
        if headers.len() as u64 > MAX_SECTIONS {
            let size = headers.len() as u64;
            return Err(SymbolError::TooLarge { what: "section table", size, limit: MAX_SECTIONS });
        }
        let names = header.section_strings(endian, data, headers).unwrap_or_default();
        let machine = header.e_machine(endian);
        let mut offset_table = None;
        let mut debug_data = None;
        let mut debug_sections = Vec::new();
        let mut unlinked = Vec::new();
        let is_unlinked = header.e_type(endian) == ET_REL;
        let sections: Vec<Section> = headers
            .iter()
            .enumerate()
            .map(|(index, section)| {
                let executable = section.sh_flags(endian).0 & SHF_EXECINSTR.0 != 0;
                let kind = section.sh_type(endian);
                let unloaded = kind == SHT_PROGBITS && section.sh_flags(endian).0 & SHF_ALLOC.0 == 0;
                let has_table = machine == EM_386 && kind == SHT_PROGBITS;
                let named = executable || unloaded || has_table || [SHT_RELA, SHT_REL].contains(&kind);
                let name = if named { section.name(endian, names).unwrap_or_default() } else { &[] };
                if unloaded && name == b".gnu_debugdata" {
                    debug_data = Some(index);
                }
                if has_table && (name == b".got.plt" || name == b".got" && offset_table.is_none()) {
                    offset_table = Some(section.sh_addr(endian).into());
                }
                if is_unlinked && executable && name.len() <= MAX_DEBUG_NAME {
                    unlinked.push((index, name.to_owned()));
                }
                let copied = Section {
                    kind,
                    executable,
                    plt: [&b".plt"[..], b".iplt", b".rela.plt", b".rela.iplt", b".rel.plt", b".rel.iplt"]
                        .iter()
                        .any(|start| name.starts_with(start)),
                    address: section.sh_addr(endian).into(),
                    offset: section.sh_offset(endian).into(),
                    size: section.sh_size(endian).into(),
                    entry_size: section.sh_entsize(endian).into(),
                    link: section.sh_link(endian),
                    info: section.sh_info(endian),
                };
                let is_debug = [&b".debug_"[..], b".zdebug_", b".gnu_debugaltlink"]
                    .iter()
                    .any(|start| name.starts_with(start));
                if unloaded && is_debug && name.len() <= MAX_DEBUG_NAME {
                    let is_compressed = section.sh_flags(endian).0 & SHF_COMPRESSED.0 != 0;
                    debug_sections.push(DebugSection {
                        name: name.to_owned(),
                        position: index,
                        section: copied,
                        is_compressed,
                    });
                }
                copied
            })
            .collect();
        let mut code: Vec<(u64, u64)> = sections
            .iter()
            .filter(|section| section.executable)
            .map(|section| (section.address, section.address.saturating_add(section.size)))
            .collect();
        code.sort_unstable();
        Ok(Self {
            endian,
            is_64,
            machine,
            sections,
            code,
            offset_table,
            debug_data,
            debug_sections,
            unlinked,
        })
    }

    /// The addresses of all sections, in their order, of which some are told by their names, and the others count as 0.
    pub(in crate::symbolize) fn placed(&self, placed: &[(String, u64)]) -> Vec<u64> {
        let mut bases = vec![0; self.sections.len()];
        for (index, name) in &self.unlinked {
            let address =
                placed.iter().find(|(other, _)| other.as_bytes() == name).map(|(_, address)| *address);
            if let (Some(address), Some(base)) = (address, bases.get_mut(*index)) {
                *base = address;
            }
        }
        bases
    }

    /// The tables of what is to be written into a section of a file that was not linked.
    pub(in crate::symbolize) fn relocations_of(
        &self,
        position: usize,
    ) -> impl Iterator<Item = (usize, &Section)> {
        let is_of = move |(_, section): &(usize, &Section)| {
            section.kind == SHT_RELA && section.info as usize == position
        };
        self.sections.iter().enumerate().filter(is_of).take(MAX_TABLES)
    }

    /// The code section, as a range, that an address lies in.
    pub(super) fn code_at(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.code.partition_point(|&(start, _)| start <= address);
        let range = *self.code.get(after.checked_sub(1)?)?;
        (address < range.1).then_some(range)
    }

    /// The section that holds a packed file of symbols.
    pub(super) fn debug_data(&self) -> Option<&Section> {
        self.sections.get(self.debug_data?)
    }

    /// The sections of debug information.
    pub(in crate::symbolize) fn debug_sections(&self) -> &[DebugSection] {
        &self.debug_sections
    }

    /// The first few sections of a kind, with their positions: linkers make one or two tables of symbols, and some
    /// of relocations.
    pub(in crate::symbolize) fn tables(&self, kind: SectionType) -> impl Iterator<Item = (usize, &Section)> {
        let of_kind = move |(_, section): &(usize, &Section)| section.kind == kind;
        self.sections.iter().enumerate().filter(of_kind).take(MAX_TABLES)
    }

    /// The sections that hold procedure linkage stubs.
    pub(super) fn stub_sections(&self) -> impl Iterator<Item = &Section> {
        self.sections
            .iter()
            .filter(|section| section.executable && section.plt && section.has_bytes())
            .take(MAX_TABLES)
    }

    /// The section that `section` links to.
    pub(super) fn linked(&self, section: &Section) -> Option<&Section> {
        self.sections.get(section.link as usize)
    }
}

/// Reads of headers through the cache, none of them large.
#[derive(Debug)]
struct Headers<'a, R: Read + Seek>(&'a ReadCache<R>);

impl<R: Read + Seek> Clone for Headers<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Read + Seek> Copy for Headers<'_, R> {}

impl<'a, R: Read + Seek> ReadRef<'a> for Headers<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MAX_HEADER_READ { Err(()) } else { self.0.read_bytes_at(offset, size) }
    }

    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}
