//! The bytes a table is made of, copied out of an ELF file: `.eh_frame` with its `.eh_frame_hdr`, and `.debug_frame`.
//! Most files have the first alone; Go's have the second for Go's functions, and both where C is linked to them.
//!
//! Sections are found by name. Where section headers are missing (stripped by `sstrip`, cut off, a memory image),
//! `PT_GNU_EH_FRAME` leads to `.eh_frame_hdr`, and that to `.eh_frame`, which then ends with its segment. Virtual
//! addresses come from `sh_addr` and `p_vaddr`, never from file offsets.

use std::borrow::Cow;

use gimli::{BaseAddresses, LittleEndian};
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::{CompressedData, CompressionFormat, LittleEndian as LE, ReadRef};

use super::rows::MAX_SECTION;
use crate::{Architecture, TableError};

type Elf = FileHeader64<LE>;
type Segment = ProgramHeader64<LE>;

/// A compressed section that says it unpacks to more than this, or to more than [`MAX_RATIO`] times its size, is
/// damaged.
const MAX_UNPACKED: u64 = 1 << 30;
const MAX_RATIO: u64 = 1100;

/// What kind of unwind section an entry is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFormat {
    EhFrame,
    DebugFrame,
}

/// `.eh_frame_hdr`, which is needed only while the index is built.
#[derive(Debug)]
pub(crate) struct EhFrameHdr {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The unwind sections, one behind the other, and what pointers in `.eh_frame` are relative to. An offset in them is less
/// than [`MAX_SECTION`].
///
/// ```text
///  0                debug_start        bytes.len()
///  |   .eh_frame    |   .debug_frame   |
/// ```
#[derive(Debug)]
pub(crate) struct FrameSections {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) debug_start: usize,
    pub(crate) bases: BaseAddresses,
}

impl FrameSections {
    /// What the entry at an offset is of, and where that section ends.
    pub(crate) fn section_at(&self, offset: usize) -> (FrameFormat, usize) {
        if offset < self.debug_start {
            (FrameFormat::EhFrame, self.debug_start)
        } else {
            (FrameFormat::DebugFrame, self.bytes.len())
        }
    }
}

/// All that a table takes from an ELF file.
#[derive(Debug)]
pub(crate) struct Parts {
    /// First address of the executable segments, as linked.
    pub(crate) text_start: u64,
    /// From there to the end of the last executable segment.
    pub(crate) text_size: u32,
    /// The first instruction to be run, as linked; 0 where there is none.
    pub(crate) entry: u64,
    pub(crate) hdr: Option<EhFrameHdr>,
    pub(crate) frame: FrameSections,
}

/// Reads the parts out of an ELF file.
pub(crate) fn read<'d, A: Architecture, R: ReadRef<'d>>(data: R) -> Result<Parts, TableError> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let machine = header.e_machine(endian);
    if machine.0 != A::ELF_MACHINE {
        return Err(TableError::OtherMachine { wanted: A::NAME, machine: machine.0 });
    }
    let segments = header.program_headers(endian, data)?;
    let (text_start, text_size) = text_range(segments)?;
    // A cut-off section header table is no section header table.
    let sections = header.sections(endian, data).unwrap_or_default();
    let (hdr, frame) = Source { data, segments, sections }.unwind_sections()?;
    Ok(Parts { text_start, text_size, entry: header.e_entry(endian), hdr, frame })
}

fn text_range(segments: &[Segment]) -> Result<(u64, u32), TableError> {
    let executable = segments.iter().filter(|segment| {
        segment.p_type(LE) == elf::PT_LOAD
            && segment.p_flags(LE).contains(elf::PF_X)
            && segment.p_memsz(LE) > 0
    });
    let (start, end) = executable.fold((u64::MAX, 0), |(start, end), segment| {
        let address = segment.p_vaddr(LE);
        (start.min(address), end.max(address.saturating_add(segment.p_memsz(LE))))
    });
    let span = end.checked_sub(start).ok_or(TableError::NoText)?;
    let size = u32::try_from(span).map_err(|_| TableError::TextTooLarge { span })?;
    Ok((start, size))
}

/// A section's virtual address and its bytes in the file.
struct Found<'d> {
    address: u64,
    bytes: &'d [u8],
}

struct Source<'d, R: ReadRef<'d>> {
    data: R,
    segments: &'d [Segment],
    sections: SectionTable<'d, Elf, R>,
}

impl<'d, R: ReadRef<'d>> Source<'d, R> {
    fn unwind_sections(&self) -> Result<(Option<EhFrameHdr>, FrameSections), TableError> {
        let hdr = self.section(b".eh_frame_hdr").or_else(|| self.hdr_of_segments());
        let frame = self.section(b".eh_frame").or_else(|| self.frame_of_segments(hdr.as_ref()?));
        let frame = frame.filter(|frame| frame.bytes.len() > 4);
        let debug = self.debug_frame()?;
        let Some(frame) = frame else {
            let bytes = debug.ok_or(TableError::NoUnwindSection)?;
            check_size(".debug_frame", bytes.len())?;
            let sections = FrameSections {
                bytes: bytes.into_owned().into(),
                debug_start: 0,
                bases: BaseAddresses::default(),
            };
            return Ok((None, sections));
        };
        let bases = self.bases(&frame, hdr.as_ref());
        let debug = debug.unwrap_or_default();
        check_size(".eh_frame", frame.bytes.len().saturating_add(debug.len()))?;
        let bytes = [frame.bytes, &debug].concat().into();
        let hdr = hdr.map(|hdr| EhFrameHdr { address: hdr.address, bytes: hdr.bytes.to_vec() });
        Ok((hdr, FrameSections { bytes, debug_start: frame.bytes.len(), bases }))
    }

    fn header(&self, name: &[u8]) -> Option<&'d elf::SectionHeader64<LE>> {
        let (_, header) = self.sections.section_by_name(LE, name)?;
        // In a separate debug file the section has an address and a size, but no bytes.
        (header.sh_type(LE) != elf::SHT_NOBITS).then_some(header)
    }

    fn section(&self, name: &[u8]) -> Option<Found<'d>> {
        let header = self.header(name)?;
        Some(Found { address: header.sh_addr(LE), bytes: header.data(LE, self.data).ok()? })
    }

    fn hdr_of_segments(&self) -> Option<Found<'d>> {
        let segment = self.segments.iter().find(|segment| segment.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
        Some(Found { address: segment.p_vaddr(LE), bytes: segment.data(LE, self.data).ok()? })
    }

    /// From where `.eh_frame_hdr` says that `.eh_frame` starts to the end of its segment; the section's terminator
    /// or the first senseless entry ends it.
    fn frame_of_segments(&self, hdr: &Found<'d>) -> Option<Found<'d>> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(hdr.address);
        let parsed = gimli::EhFrameHdr::new(hdr.bytes, LittleEndian).parse(&bases, 8).ok()?;
        let address = parsed.eh_frame_ptr().direct().ok()?;
        self.segments.iter().filter(|segment| segment.p_type(LE) == elf::PT_LOAD).find_map(|segment| {
            let offset = usize::try_from(address.checked_sub(segment.p_vaddr(LE))?).ok()?;
            let bytes = segment.data(LE, self.data).ok()?.get(offset..)?;
            Some(Found { address, bytes })
        })
    }

    fn bases(&self, frame: &Found<'d>, hdr: Option<&Found<'d>>) -> BaseAddresses {
        let mut bases = BaseAddresses::default().set_eh_frame(frame.address);
        if let Some(hdr) = hdr {
            bases = bases.set_eh_frame_hdr(hdr.address);
        }
        if let Some(text) = self.header(b".text") {
            bases = bases.set_text(text.sh_addr(LE));
        }
        if let Some(got) = self.header(b".got") {
            bases = bases.set_got(got.sh_addr(LE));
        }
        bases
    }

    fn debug_frame(&self) -> Result<Option<Cow<'d, [u8]>>, TableError> {
        const NAME: &str = ".debug_frame";
        let Some(header) = self.header(NAME.as_bytes()) else { return Ok(None) };
        let Some((compression, offset, size)) = header.compression(LE, self.data)? else {
            return Ok(Some(header.data(LE, self.data)?.into()));
        };
        let unpacked = compression.ch_size(LE);
        if unpacked > MAX_UNPACKED || unpacked / MAX_RATIO > size {
            return Err(TableError::SectionTooLarge { section: NAME, size: unpacked });
        }
        let format = match compression.ch_type(LE) {
            elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => CompressionFormat::Unknown,
        };
        let bytes = self.data.read_bytes_at(offset, size);
        let data = bytes.map_err(|()| TableError::SectionTooLarge { section: NAME, size })?;
        Ok(Some(CompressedData { format, data, uncompressed_size: unpacked }.decompress()?))
    }
}

fn check_size(section: &'static str, size: usize) -> Result<(), TableError> {
    if size < MAX_SECTION as usize {
        Ok(())
    } else {
        Err(TableError::SectionTooLarge { section, size: size as u64 })
    }
}
