//! What a probe needs of an ELF file: where code lies in it, its functions by name, and its markers.
//!
//! A probe is placed at an offset in the file, while symbols tell addresses as linked: the segments lead from one to the
//! other (ELF gABI, chapter 5). Source of the markers' notes: `UserSpaceProbeImplementation`
//! in the wiki of `SystemTap`.

use std::fs::File;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym, VersionTable};
use object::read::{FileKind, SymbolIndex};
use object::{Endianness, ReadRef};

use super::machine::Machine;
use crate::modules::BoundedFile;

/// `n_type` of a marker's note.
const STAPSDT_TYPE: u32 = 3;

/// The section that every program of Go's compiler has, stripped or not: `cmd/link/internal/ld/elf.go`.
const GO_BUILD_ID: &[u8] = b".note.go.buildid";

/// What a file holds.
#[derive(Debug, Default)]
pub(super) struct Image<'d> {
    /// `None` for a machine whose arguments can't be fetched here.
    pub(super) machine: Option<Machine>,
    /// Whether Go's compiler made it.
    pub(super) is_go: bool,
    segments: Vec<Loaded>,
    pub(super) functions: Vec<Function<'d>>,
    pub(super) markers: Vec<Marker<'d>>,
}

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    address: u64,
    file_offset: u64,
    file_size: u64,
    is_code: bool,
    is_writable: bool,
}

/// A function that the file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function<'d> {
    /// Without its version.
    pub(super) name: &'d str,
    pub(super) version: Option<&'d str>,
    /// Whether it is what a program gets that names no version.
    pub(super) is_default: bool,
    /// As linked.
    pub(super) address: u64,
    pub(super) size: u64,
    /// Its code chooses the implementation, and is not it (`STT_GNU_IFUNC`).
    pub(super) is_resolver: bool,
}

/// A marker that was compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker<'d> {
    pub(super) provider: &'d str,
    pub(super) name: &'d str,
    /// As linked.
    pub(super) address: u64,
    /// Address of the count of those who listen; 0 for a marker that is always on.
    pub(super) semaphore: u64,
    /// Where its arguments are, in the words of the assembler.
    pub(super) arguments: &'d str,
}

impl<'d> Image<'d> {
    /// Whether a file begins as one that can be read.
    pub(super) fn is_meant_by(file: &'d BoundedFile<File>) -> bool {
        file.read_bytes_at(0, elf::ELFMAG.len() as u64).is_ok_and(|bytes| bytes == elf::ELFMAG)
    }

    /// Reads a file. The error says why it is none.
    pub(super) fn read(file: &'d BoundedFile<File>) -> Result<Self, String> {
        let told = |error: object::read::Error| error.to_string();
        match FileKind::parse(file) {
            Ok(FileKind::Elf32) => Self::parse::<FileHeader32<Endianness>, _>(file).map_err(told),
            Ok(FileKind::Elf64) => Self::parse::<FileHeader64<Endianness>, _>(file).map_err(told),
            _ => Err("it is no ELF file".to_owned()),
        }
    }

    fn parse<Elf, R>(data: R) -> object::read::Result<Self>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: ReadRef<'d>,
    {
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        let segments = header.program_headers(endian, data)?.iter();
        let segments = segments.filter(|segment| segment.p_type(endian) == elf::PT_LOAD).map(|segment| {
            let (file_offset, file_size) = segment.file_range(endian);
            let flags = segment.p_flags(endian);
            let (is_code, is_writable) = (flags.contains(elf::PF_X), flags.contains(elf::PF_W));
            Loaded { address: segment.p_vaddr(endian).into(), file_offset, file_size, is_code, is_writable }
        });
        let machine = Machine::of(header.e_machine(endian)).filter(|_| header.is_type_64());
        let mut image = Self { machine, segments: segments.collect(), ..Self::default() };
        let sections = header.sections(endian, data)?;
        image.is_go = sections.section_by_name(endian, GO_BUILD_ID).is_some();
        let versions = sections.versions(endian, data).ok().flatten();
        let base = sections.section_by_name(endian, b".stapsdt.base");
        let base = base.map(|(_, section)| section.sh_addr(endian).into());
        for section in sections.iter() {
            let kind = section.sh_type(endian);
            if [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&kind) {
                let strings = sections.section(section.link(endian))?.data(endian, data)?;
                let symbols = section.data_as_array::<Elf::Sym, R>(endian, data)?;
                let versions = versions.as_ref().filter(|_| kind == elf::SHT_DYNSYM);
                image.add_symbols::<Elf>(endian, symbols, strings, versions);
            } else if let Some(mut notes) = section.notes(endian, data)? {
                while let Ok(Some(note)) = notes.next() {
                    if note.name() == b"stapsdt" && note.n_type(endian).0 == STAPSDT_TYPE {
                        image.markers.extend(marker::<Elf>(endian, note.desc(), base));
                    }
                }
            }
        }
        Ok(image)
    }

    fn add_symbols<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        endian: Endianness,
        symbols: &[Elf::Sym],
        strings: &'d [u8],
        versions: Option<&VersionTable<'d, Elf>>,
    ) {
        for (index, symbol) in symbols.iter().enumerate() {
            let kind = symbol.st_type();
            let is_function = [elf::STT_FUNC, elf::STT_GNU_IFUNC].contains(&kind);
            if !is_function || symbol.is_undefined(endian) {
                continue;
            }
            let Some(name) = string(strings, symbol.st_name(endian) as usize) else { continue };
            let (name, mut version, mut is_default) = match name.split_once('@') {
                Some((name, version)) => match version.strip_prefix('@') {
                    Some(version) => (name, Some(version), true),
                    None => (name, Some(version), false),
                },
                None => (name, None, true),
            };
            if let Some(versions) = versions {
                let told = versions.version_index(endian, SymbolIndex(index));
                let known = versions.version(told.index()).ok().flatten();
                version = known.and_then(|known| std::str::from_utf8(known.name()).ok());
                is_default = !told.is_hidden();
            }
            self.functions.push(Function {
                name,
                version,
                is_default,
                address: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
                is_resolver: kind == elf::STT_GNU_IFUNC,
            });
        }
    }

    /// Where the code at an address is in the file.
    pub(super) fn code_offset(&self, address: u64) -> Option<u64> {
        self.offset(address, |segment| segment.is_code)
    }

    /// Where data at an address are in the file.
    pub(super) fn data_offset(&self, address: u64) -> Option<u64> {
        self.offset(address, |_| true)
    }

    /// Whether several writable segments map the page of the file that an offset is in. The kernel knows a semaphore by its
    /// offset, and would count in the memory of the first.
    pub(super) fn is_mapped_twice(&self, offset: u64) -> bool {
        const PAGE: u64 = 4096;
        let page = offset / PAGE;
        let maps = |segment: &&Loaded| {
            let last = segment.file_offset.saturating_add(segment.file_size).saturating_sub(1);
            segment.file_size > 0 && (segment.file_offset / PAGE..=last / PAGE).contains(&page)
        };
        self.segments.iter().filter(|segment| segment.is_writable).filter(maps).count() > 1
    }

    fn offset(&self, address: u64, is_wanted: impl Fn(&Loaded) -> bool) -> Option<u64> {
        self.segments.iter().filter(|segment| is_wanted(segment)).find_map(|segment| {
            let within = address.checked_sub(segment.address).filter(|within| *within < segment.file_size)?;
            segment.file_offset.checked_add(within)
        })
    }
}

/// Three addresses, of the marker, of `.stapsdt.base` when it was linked, and of the semaphore; then three strings. What
/// moved the file's addresses later (prelink) moved that section, and not the addresses in notes.
fn marker<Elf: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    note: &[u8],
    base: Option<u64>,
) -> Option<Marker<'_>> {
    let size = size_of::<Elf::Word>();
    let word = |index: usize| -> Option<u64> {
        let bytes = note.get(index * size..(index + 1) * size)?;
        let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(if endian == Endianness::Little { number } else { number.swap_bytes() >> (64 - 8 * size) })
    };
    let (address, linked_base, semaphore) = (word(0)?, word(1)?, word(2)?);
    let moved = base.filter(|_| linked_base != 0).map_or(0, |base| base.wrapping_sub(linked_base));
    let mut strings = note.get(3 * size..)?.split(|byte| *byte == 0).map(std::str::from_utf8);
    let mut next = || strings.next()?.ok();
    let (provider, name, arguments) = (next()?, next()?, next()?);
    let semaphore = if semaphore == 0 { 0 } else { semaphore.wrapping_add(moved) };
    Some(Marker { provider, name, address: address.wrapping_add(moved), semaphore, arguments })
}

/// The string that begins at `at`, unless it is too long to be a name: strings may share their bytes, so that a file of few may have as many names
/// that are as long as all of it.
fn string(strings: &[u8], at: usize) -> Option<&str> {
    const LONGEST: usize = 4096;
    let rest = strings.get(at..)?;
    let rest = rest.get(..LONGEST).unwrap_or(rest);
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::*;
    use crate::modules::UNWIND_SECTIONS;

    /// The program of the live tests.
    fn program() -> &'static [u8] {
        static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
        PROGRAM.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/probed.c");
            let program = folder.path().join("probed");
            assert!(
                Command::new("gcc")
                    .arg("-O2")
                    .arg("-o")
                    .args([&program, &source])
                    .status()
                    .unwrap()
                    .success()
            );
            fs::read(program).unwrap()
        })
    }

    fn bounded(bytes: &[u8]) -> BoundedFile<File> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        BoundedFile::new(file.reopen().unwrap(), UNWIND_SECTIONS)
    }

    #[test]
    fn a_file_of_more_than_is_read_is_a_program_all_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), program()).unwrap();
        for (limit, is_exceeded) in [(UNWIND_SECTIONS, false), (2 << 10, true)] {
            let bounded = BoundedFile::new(file.reopen().unwrap(), limit);
            assert_eq!(Image::read(&bounded).is_err(), is_exceeded);
            assert_eq!(bounded.is_exceeded(), is_exceeded);
        }
        let cut = bounded(&program()[..2048]);
        assert!(Image::read(&cut).is_err() && !cut.is_exceeded(), "it is damaged, and not too large");
        assert!(Image::is_meant_by(&cut));
        for script in [&b"#!/bin/sh\n"[..], b"\x7fE"] {
            assert!(!Image::is_meant_by(&bounded(script)));
        }
    }

    #[test]
    fn names_have_an_end_within_reach() {
        let strings = [&b"\0work\0"[..], &[b'x'; 5000], b"\0"].concat();
        assert_eq!(string(&strings, 1), Some("work"));
        assert_eq!(string(&strings, 3), Some("rk"));
        // The last 4,095 bytes and their NUL, and one byte more.
        let end = strings.len() - 1;
        assert_eq!(string(&strings, end - 4095).map(str::len), Some(4095));
        assert_eq!([string(&strings, end - 4096), string(&strings, 6), string(&strings, end + 1)], [None; 3]);
    }

    /// `.stapsdt.base` of a file, and where its header is; little-endian, 64 bits.
    fn base_header(bytes: &[u8]) -> usize {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let half = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
        let (headers, count, names) = (word(0x28), half(0x3c), half(0x3e));
        let names = word(headers + names * 64 + 24);
        let name = |header: usize| {
            let at = names + u32::from_le_bytes(bytes[header..header + 4].try_into().unwrap()) as usize;
            bytes[at..].split(|byte| *byte == 0).next().unwrap()
        };
        (0..count).map(|index| headers + index * 64).find(|header| name(*header) == b".stapsdt.base").unwrap()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_moved_the_file_moved_its_markers() {
        let places = |bytes: &[u8]| -> Vec<(String, u64, u64)> {
            let file = bounded(bytes);
            let image = Image::read(&file).unwrap();
            image.markers.iter().map(|it| (it.name.to_owned(), it.address, it.semaphore)).collect()
        };
        let linked = places(program());
        assert_eq!(linked.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["always", "watched"]);
        assert!(linked[0].2 == 0 && linked[1].2 != 0);
        let mut moved = program().to_vec();
        let at = base_header(&moved) + 16;
        let address = u64::from_le_bytes(moved[at..at + 8].try_into().unwrap());
        moved[at..at + 8].copy_from_slice(&(address + 0x1_0000).to_le_bytes());
        let by = |address: u64| if address == 0 { 0 } else { address + 0x1_0000 };
        let expected: Vec<_> =
            linked.into_iter().map(|(name, at, semaphore)| (name, by(at), by(semaphore))).collect();
        assert_eq!(places(&moved), expected);
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_survived(changes in prop::collection::vec((0_usize..20_000, any::<u8>()), 1..20), cut in 0_usize..20_000) {
            let mut bytes = program().to_vec();
            for (at, byte) in changes {
                if let Some(changed) = bytes.get_mut(at) {
                    *changed = byte;
                }
            }
            bytes.truncate(cut.max(64));
            let file = bounded(&bytes);
            if let Ok(image) = Image::read(&file) {
                for function in &image.functions {
                    let _ = (image.code_offset(function.address), image.data_offset(function.address));
                }
            }
        }

        #[test]
        fn any_text_is_survived(text in "(uprobe:/|uretprobe:/|usdt:/|kprobe:|)[a-z0-9:/()@+*,._ é-]{0,40}") {
            let _ = crate::probe::Probe::parse(&text);
            let _ = crate::probe::usdt::arguments(Machine::X86_64, &text);
            let _ = crate::probe::usdt::arguments(Machine::Aarch64, &text);
        }
    }
}
