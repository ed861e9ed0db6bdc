//! One ELF file: where its text is, and the bytes of its unwind sections.
//!
//! Sections are found by name. Where section headers are missing (stripped by `sstrip`, cut off, a memory image),
//! `PT_GNU_EH_FRAME` leads to `.eh_frame_hdr`, and that to `.eh_frame`, which then ends with its segment. Virtual
//! addresses come from `sh_addr` and `p_vaddr`, never from file offsets.

use std::borrow::Cow;

use gimli::{BaseAddresses, LittleEndian};
use object::elf;
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::{LittleEndian as LE, ReadRef};

use super::code_sections::{EhFrame, Section};
use super::debug_data;
use super::unpack::{self, MAX_RATIO, MAX_UNPACKED};
use crate::arch::Machine;
use crate::{Architecture, SectionProblem, TableError, UnreadSection};

type SegmentOf<A> = <<A as Machine>::Elf as FileHeader>::ProgramHeader;
pub(super) type SectionOf<A> = <<A as Machine>::Elf as FileHeader>::SectionHeader;

/// An ELF file of the wanted machine, its headers read.
pub(super) struct ElfFile<'d, A: Architecture, R: ReadRef<'d>> {
    data: R,
    header: &'d A::Elf,
    segments: &'d [SegmentOf<A>],
    sections: SectionTable<'d, A::Elf, R>,
    names: Names<'d>,
    /// What a section may unpack to.
    most_unpacked: u64,
}

/// Compilers name a section after a function, and C++ has functions with long names.
const LONGEST_NAME: usize = 4096;

/// The names of a file's sections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names<'d>(&'d [u8]);

impl<'d> Names<'d> {
    pub(super) fn of<E: FileHeader<Endian = LE>, R: ReadRef<'d>>(
        header: &E,
        sections: &SectionTable<'d, E, R>,
        data: R,
    ) -> Self {
        let section = header.section_strings_index(LE, data).and_then(|index| sections.section(index));
        Names(section.and_then(|section| section.data(LE, data)).unwrap_or_default())
    }

    /// The name at an offset, empty where there is none of [`LONGEST_NAME`] bytes or less.
    pub(super) fn at(self, offset: u32) -> &'d str {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().take(LONGEST_NAME + 1).position(|&byte| byte == 0);
        let name = end.and_then(|end| rest.get(..end)).and_then(|name| str::from_utf8(name).ok());
        name.unwrap_or_default()
    }

    /// Whether the name at an offset is `name`. It is not read to its end, for names may lie within each other: together they
    /// would have more bytes than the file.
    pub(super) fn is(self, offset: u32, name: &[u8]) -> bool {
        let rest = self.0.get(offset as usize..).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }
}

pub(super) fn check_machine<A: Architecture>(header: &A::Elf) -> Result<(), TableError> {
    let machine = header.e_machine(header.endian()?).0;
    if machine == A::ELF_MACHINE {
        Ok(())
    } else {
        Err(TableError::OtherMachine { wanted: A::NAME, machine })
    }
}

/// The bytes of a section that may be packed, and have `most` bytes then.
pub(super) fn content<'d, S: SectionHeader<Endian = LE>, R: ReadRef<'d>>(
    header: &S,
    data: R,
    most: u64,
) -> Result<Cow<'d, [u8]>, SectionProblem> {
    let cut_off = |_| SectionProblem::CutOff;
    let Some((compression, offset, size)) = header.compression(LE, data).map_err(cut_off)? else {
        return Ok(header.data(LE, data).map_err(cut_off)?.into());
    };
    let unpack = match compression.ch_type(LE) {
        elf::ELFCOMPRESS_ZLIB => unpack::zlib,
        elf::ELFCOMPRESS_ZSTD => unpack::zstd,
        method => return Err(SectionProblem::UnknownCompression { method: method.0 }),
    };
    let packed = data.read_bytes_at(offset, size).map_err(|()| SectionProblem::CutOff)?;
    let size = unpack::plausible(packed, compression.ch_size(LE).into(), most)?;
    unpack(packed, size).map(Cow::Owned)
}

impl<'d, A: Architecture, R: ReadRef<'d>> ElfFile<'d, A, R> {
    pub(super) fn parse(data: R) -> Result<Self, TableError> {
        let header = A::Elf::parse(data)?;
        check_machine::<A>(header)?;
        let segments = header.program_headers(LE, data)?;
        // A cut-off section header table is no section header table.
        let sections = header.sections(LE, data).unwrap_or_default();
        let names = Names::of(header, &sections, data);
        Ok(ElfFile { data, header, segments, sections, names, most_unpacked: MAX_UNPACKED })
    }

    /// The same of a file that was itself unpacked, from so many bytes: what they may unpack to is not multiplied.
    pub(super) fn parse_unpacked(data: R, packed: usize) -> Result<Self, TableError> {
        let most_unpacked = MAX_UNPACKED.min((packed as u64).saturating_mul(MAX_RATIO));
        Ok(ElfFile { most_unpacked, ..Self::parse(data)? })
    }

    /// The first instruction to be run, as linked; 0 where there is none.
    pub(super) fn entry(&self) -> u64 {
        self.header.e_entry(LE).into()
    }

    /// The first address of the executable segments, as linked, and the size from there to the end of the last.
    pub(super) fn text(&self) -> Result<(u64, u32), TableError> {
        let executable = self.segments.iter().filter(|segment| {
            segment.p_type(LE) == elf::PT_LOAD
                && segment.p_flags(LE).contains(elf::PF_X)
                && segment.p_memsz(LE).into() > 0
        });
        let (start, end) = executable.fold((u64::MAX, 0), |(start, end), segment| {
            let address = segment.p_vaddr(LE).into();
            (start.min(address), end.max(address.saturating_add(segment.p_memsz(LE).into())))
        });
        let span = end.checked_sub(start).ok_or(TableError::NoText)?;
        let size = u32::try_from(span).map_err(|_| TableError::TextTooLarge { span })?;
        Ok((start, size))
    }

    /// What is added, wrapping, to an address in `debug`, this file's debug file, for it to be one here. Linkers and
    /// `prelink` move all of a file, so what holds for its first code holds for everything.
    pub(super) fn distance_from<'e, D: ReadRef<'e>>(&self, debug: &ElfFile<'e, A, D>) -> u64 {
        let starts = [self.text(), debug.text()];
        let [Ok((here, _)), Ok((there, _))] = starts else { return 0 };
        here.wrapping_sub(there)
    }

    pub(super) fn eh_frame(&self) -> Result<Option<EhFrame<'d>>, UnreadSection> {
        // A debug file has headers of all sections, and segments that may lie where other bytes are.
        let named = self.named(b".eh_frame").is_some();
        let hdr = self.section(".eh_frame_hdr").ok().flatten();
        let hdr = hdr.or_else(|| self.hdr_of_segments().filter(|_| !named));
        let frame = match hdr.as_ref() {
            _ if named => self.section(".eh_frame")?,
            Some(hdr) => self.frame_of_segments(hdr),
            None => None,
        };
        let address = |name| self.header(name).map(|header| header.sh_addr(LE).into());
        let (text, got) = (address(b".text".as_slice()), address(b".got"));
        Ok(frame.map(|frame| EhFrame { frame, hdr, text, got }))
    }

    /// `.debug_frame`, unpacked.
    pub(super) fn debug_frame(&self) -> Result<Option<Cow<'d, [u8]>>, UnreadSection> {
        let section = ".debug_frame";
        let Some(header) = self.header(section.as_bytes()) else { return Ok(None) };
        let bytes = content(header, self.data, self.most_unpacked);
        bytes.map(Some).map_err(|problem| UnreadSection { section, problem })
    }

    /// `.gnu_debugdata`, as it is in the file.
    pub(super) fn debug_data(&self) -> Result<Option<&'d [u8]>, UnreadSection> {
        Ok(self.section(debug_data::NAME)?.map(|section| section.bytes))
    }

    fn named(&self, name: &[u8]) -> Option<&'d SectionOf<A>> {
        self.sections.iter().find(|header| self.names.is(header.sh_name(LE), name))
    }

    fn header(&self, name: &[u8]) -> Option<&'d SectionOf<A>> {
        let header = self.named(name)?;
        // In a separate debug file the section has an address and a size, but no bytes.
        (header.sh_type(LE) != elf::SHT_NOBITS).then_some(header)
    }

    fn section(&self, section: &'static str) -> Result<Option<Section<'d>>, UnreadSection> {
        let Some(header) = self.header(section.as_bytes()) else { return Ok(None) };
        let bytes = header.data(LE, self.data);
        let bytes = bytes.map_err(|_| UnreadSection { section, problem: SectionProblem::CutOff })?;
        Ok(Some(Section { address: header.sh_addr(LE).into(), bytes }))
    }

    fn hdr_of_segments(&self) -> Option<Section<'d>> {
        let segment = self.segments.iter().find(|segment| segment.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
        Some(Section { address: segment.p_vaddr(LE).into(), bytes: segment.data(LE, self.data).ok()? })
    }

    /// From where `.eh_frame_hdr` says that `.eh_frame` starts to the end of its segment; the section's terminator
    /// or the first senseless entry ends it.
    fn frame_of_segments(&self, hdr: &Section<'d>) -> Option<Section<'d>> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(hdr.address);
        let parsed =
            gimli::EhFrameHdr::new(hdr.bytes, LittleEndian).parse(&bases, A::WORD.bytes() as u8).ok()?;
        let address = parsed.eh_frame_ptr().direct().ok()?;
        self.segments.iter().filter(|segment| segment.p_type(LE) == elf::PT_LOAD).find_map(|segment| {
            let offset = usize::try_from(address.checked_sub(segment.p_vaddr(LE).into())?).ok()?;
            let bytes = segment.data(LE, self.data).ok()?.get(offset..)?;
            Some(Section { address, bytes })
        })
    }
}
