//! What the headers of an ELF file say (ELF gABI, chapters 4 and 5). Nothing but headers, notes and names is read.

use std::fs::File;

use collector_common::ids::BuildId;
use collector_common::record;
use export::symbolize::{CodeSection, code_of_image};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::FileKind;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endian as _, Endianness, ReadRef};

use super::bounded::{BoundedFile, HEADERS};

/// The type of notes that tell of packages, by the name `FDO`.
const PACKAGE_NOTE: u32 = 0xcafe_1a7e;

/// Bytes of such a note; longer ones are not kept. They have some hundred.
const MOST_OF_PACKAGE: usize = 4096;

/// An executable part of a file that is loaded (`PT_LOAD` with `PF_X`). Others may share its first page in the
/// file and lie elsewhere in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it is in the file.
    pub file_offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Its address as linked.
    pub address: u64,
}

/// Segments are mapped from the page they begin on.
pub(super) const PAGE_MASK: u64 = !0xfff;

/// The file that has what was stripped from another.
#[derive(Debug)]
pub(super) struct DebugLink {
    pub(super) name: Vec<u8>,
    /// CRC-32 of all of it.
    pub(super) checksum: u32,
}

/// What the headers of a file say.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// What executes it (`e_machine`).
    pub(super) machine: elf::Machine,
    /// The address as linked of the first page that is loaded, executable or not.
    pub(super) start: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) build_id: Option<BuildId>,
    /// Whether there is a table of symbols beside that of the dynamic linker.
    pub(super) has_symbols: bool,
    pub(super) debug_link: Option<DebugLink>,
    /// The package that it came with, as JSON.
    pub(super) package: Option<String>,
}

impl From<&DebugLink> for record::DebugLink {
    fn from(link: &DebugLink) -> Self {
        Self { name: String::from_utf8_lossy(&link.name).into_owned(), checksum: link.checksum }
    }
}

impl Layout {
    /// Reads the headers; `None` for what is neither an ELF file nor a PE image, as .NET's and Wine's are.
    pub(super) fn read(file: &File) -> Option<Self> {
        Self::of_elf(&BoundedFile::new(file, HEADERS)).or_else(|| Self::of_image_file(file))
    }

    fn of_image_file(mut file: &File) -> Option<Self> {
        let code = code_of_image(&mut file)?;
        let segment =
            |CodeSection { file_offset, file_size, address }| Segment { file_offset, file_size, address };
        Some(Self { segments: code.into_iter().map(segment).collect(), ..Self::default() })
    }

    /// Whether the file is a PE image with code.
    pub(super) fn is_of_image(&self) -> bool {
        is_of_image(self.machine, &self.segments)
    }

    /// Those of an image in memory.
    pub(super) fn of_image(image: &[u8]) -> Option<Self> {
        Self::of_elf(image)
    }

    fn of_elf<'d, R: ReadRef<'d>>(data: R) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Elf32 => Self::parse::<FileHeader32<Endianness>, _>(data),
            FileKind::Elf64 => Self::parse::<FileHeader64<Endianness>, _>(data),
            _ => None,
        }
    }

    fn parse<'d, Elf, R>(data: R) -> Option<Self>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: ReadRef<'d>,
    {
        let header = Elf::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let program_headers = header.program_headers(endian, data).ok()?;
        // Programs run without section headers, and with damaged ones.
        let sections = header.sections(endian, data).unwrap_or_default();

        let loaded = || program_headers.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
        let start =
            loaded().map(|segment| segment.p_vaddr(endian).into()).min().unwrap_or_default() & PAGE_MASK;
        let code = loaded().filter(|segment| segment.p_flags(endian).contains(elf::PF_X));
        let segments = code.map(|segment| {
            let (file_offset, file_size) = segment.file_range(endian);
            Segment { file_offset, file_size, address: segment.p_vaddr(endian).into() }
        });
        let in_sections = || sections.iter().filter_map(|it| it.notes(endian, data).ok().flatten());
        let in_segments = || program_headers.iter().filter_map(|it| it.notes(endian, data).ok().flatten());
        let build_id = || in_sections().chain(in_segments()).find_map(|notes| build_id(notes, endian));
        let package = in_segments().find_map(|notes| package(notes, endian));
        // The first of a table is no symbol.
        let symbols = 2 * size_of::<Elf::Sym>() as u64;
        let has_symbols = sections.iter().any(|section| {
            section.sh_type(endian) == elf::SHT_SYMTAB && section.sh_size(endian).into() >= symbols
        });
        let debug_link = sections
            .section_by_name(endian, b".gnu_debuglink")
            .and_then(|(_, section)| debug_link(section.data(endian, data).ok()?, endian));
        let machine = header.e_machine(endian);
        Some(Self {
            machine,
            start,
            segments: segments.collect(),
            build_id: build_id(),
            has_symbols,
            debug_link,
            package,
        })
    }
}

/// Whether a file that has this machine and code is a PE image: those have a machine only in their own headers.
pub(super) fn is_of_image(machine: elf::Machine, segments: &[Segment]) -> bool {
    machine == elf::EM_NONE && !segments.is_empty()
}

fn build_id<Elf: FileHeader>(mut notes: NoteIterator<'_, Elf>, endian: Elf::Endian) -> Option<BuildId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

/// JSON with NULs behind it: "Package Metadata for Executable Files" of systemd.
fn package<Elf: FileHeader>(mut notes: NoteIterator<'_, Elf>, endian: Elf::Endian) -> Option<String> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"FDO" && note.n_type(endian).0 == PACKAGE_NOTE {
            let text = note.desc().split(|byte| *byte == 0).next()?;
            return String::from_utf8(text.to_owned()).ok().filter(|text| text.len() <= MOST_OF_PACKAGE);
        }
    }
    None
}

/// A name with a NUL, filled up to a multiple of four bytes, and the checksum.
fn debug_link(section: &[u8], endian: Endianness) -> Option<DebugLink> {
    let length = section.iter().position(|&byte| byte == 0)?;
    let checksum = section.get((length + 1).next_multiple_of(4)..)?.first_chunk()?;
    Some(DebugLink { name: section.get(..length)?.to_owned(), checksum: endian.read_u32(*checksum) })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// What the linker wrote of a build id, as `readelf` tells it.
    fn told_by_readelf(file: &Path) -> String {
        let output = Command::new("readelf").arg("-n").arg(file).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap().to_owned()
    }

    #[test]
    fn a_build_id_is_found_without_section_headers() {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("source.c"), folder.path().join("main"));
        fs::write(&source, "int main(void) { return 0; }").unwrap();
        let gcc = Command::new("gcc").args(["-Wl,--build-id", "-o"]).args([&path, &source]).status();
        assert!(gcc.unwrap().success());
        let told = told_by_readelf(&path);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let read = || Layout::read(&file).unwrap();
        assert!(read().has_symbols && read().segments.len() == 1);
        assert_eq!(read().build_id.unwrap().to_string(), told);
        // `e_shoff`: the headers of the sections lie nowhere.
        file.write_all_at(&u64::MAX.to_le_bytes(), 0x28).unwrap();
        assert!(!read().has_symbols && read().segments.len() == 1);
        assert_eq!(read().build_id.unwrap().to_string(), told);
    }
}
