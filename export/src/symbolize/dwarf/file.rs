//! A file with debug information: its sections, read in pieces when they are wanted, and held from then on.
//!
//! A piece that nobody asks for costs nothing, so that of a gigabyte a lookup holds what it touches. Compressed sections are
//! unpacked whole, the first time that one is touched.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use gimli::{Endianity as _, RunTimeEndian, SectionId};
use object::Endianness;

use super::LineError;
use super::meter::Meter;
use super::relocate::{Filling, Placed, Relocations};
use super::unpack::{self, Packed};
use crate::symbolize::elf::{DebugSection, Layout};

/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;

/// The largest section: 32-bit DWARF reaches no farther.
const MAX_SECTION: u64 = 4 << 30;

/// The longest text in a `.gnu_debugaltlink`.
const MAX_LINK: u64 = 4 << 10;

/// Which of a file's sections are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Those of a program or of a debug file.
    Main,
    /// Those whose names end in `.dwo`.
    Split,
    /// These and more, of which the index tells.
    Package,
}

/// A file and its sections.
pub(super) struct DebugFile<F> {
    /// None when all is held.
    file: RefCell<Option<F>>,
    endian: RunTimeEndian,
    sections: Vec<(SectionId, Section)>,
    link: Option<Link>,
    meter: Rc<Meter>,
}

/// The file that debug information is shared with (`dwz -m`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) path: Vec<u8>,
    pub(super) build_id: Vec<u8>,
}

struct Section {
    /// Bytes it has when it is unpacked.
    size: usize,
    /// Where it is in the file, and how many bytes it has there.
    place: (u64, u64),
    /// Whether any of it was wanted.
    is_read: Cell<bool>,
    content: Content,
    /// What is to be written into it, of a file that was not linked.
    filling: Filling,
}

enum Content {
    /// The pieces that were read.
    Plain(Box<[OnceCell<Box<[u8]>>]>),
    /// All of it, once it was unpacked.
    Packed(Packed, OnceCell<Vec<u8>>),
}

impl<F: Read + Seek> DebugFile<F> {
    /// Reads the headers.
    pub(super) fn open(file: F, kind: Kind, meter: &Rc<Meter>) -> Result<Self, LineError> {
        Self::open_placed(file, kind, None, meter)
    }

    /// The same of a file that was not linked, whose sections lie at these addresses.
    pub(super) fn open_placed(
        file: F,
        kind: Kind,
        placed: Option<&Placed>,
        meter: &Rc<Meter>,
    ) -> Result<Self, LineError> {
        let (layout, mut file) = Layout::read(file).map_err(|_| LineError::Unreadable)?;
        let length = file.seek(SeekFrom::End(0))?;
        let endian = match layout.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let relocations =
            placed.map(|placed| Relocations::read(&mut file, &layout, placed, meter)).transpose()?;
        let mut sections = Vec::new();
        let mut link = None;
        for found in layout.debug_sections().iter().filter(|found| found.section.has_bytes()) {
            if found.section.offset.checked_add(found.section.size).is_none_or(|end| end > length) {
                return Err(LineError::Read(io::ErrorKind::UnexpectedEof.into()));
            }
            if found.name == b".gnu_debugaltlink" && kind == Kind::Main {
                link = read_link(&mut file, found)?;
            } else if let Some(id) = known(&found.name, kind)
                && (kind == Kind::Split && id == SectionId::DebugInfo
                    || sections.iter().all(|(other, _)| *other != id))
            {
                let mut section = Section::open(&mut file, &layout, found)?;
                if let Some(relocations) = &relocations {
                    section.filling = relocations.of_section(&mut file, &layout, found.position, meter)?;
                }
                sections.push((id, section));
            }
        }
        let file = RefCell::new(Some(file));
        let mut opened = Self { file, endian, sections, link, meter: Rc::clone(meter) };
        opened.drop_types();
        Ok(opened)
    }
}

impl<F> DebugFile<F> {
    pub(super) fn endian(&self) -> RunTimeEndian {
        self.endian
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(super) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Whether there is anything to look up.
    pub(super) fn has_units(&self) -> bool {
        self.size(SectionId::DebugInfo) > 0
    }

    /// Bytes of a section; none if there is none.
    pub(super) fn size(&self, id: SectionId) -> usize {
        self.section(id).map_or(0, |section| section.size)
    }

    fn section(&self, id: SectionId) -> Option<&Section> {
        self.sections.iter().find(|(other, _)| *other == id).map(|(_, section)| section)
    }
}

impl<F: Read + Seek> DebugFile<F> {
    /// Some bytes of a section from `at` on, at least one; none at its end.
    pub(super) fn bytes(&self, id: SectionId, at: usize) -> Result<&[u8], gimli::Error> {
        self.section(id).map_or(Ok(&[]), |section| self.bytes_of(section, at))
    }

    fn bytes_of<'a>(&self, section: &'a Section, at: usize) -> Result<&'a [u8], gimli::Error> {
        if at >= section.size {
            return Ok(&[]);
        }
        if !section.is_read.replace(true) {
            self.meter.add_section(section.place.1, section.size as u64);
        }
        let (offset, size) = section.place;
        match &section.content {
            Content::Plain(pieces) => {
                let Some(piece) = pieces.get(at / PIECE) else { return Ok(&[]) };
                let start = at / PIECE * PIECE;
                let bytes = if let Some(bytes) = piece.get() {
                    bytes
                } else {
                    let length = PIECE.min(section.size - start);
                    let mut bytes = self.read(offset + start as u64, length)?;
                    section.filling.fill(start, &mut bytes);
                    piece.get_or_init(|| bytes.into_boxed_slice())
                };
                Ok(bytes.get(at - start..).unwrap_or_default())
            }
            Content::Packed(packed, unpacked) => {
                let bytes = if let Some(bytes) = unpacked.get() {
                    bytes
                } else {
                    // Both are in memory for a time.
                    self.meter.hold(section.size as u64)?;
                    let bytes = self.read(offset, size as usize)?;
                    let bytes = unpack::unpack(*packed, &bytes, section.size);
                    let mut bytes = bytes.map_err(|error| self.meter.stop(LineError::Packed(error)))?;
                    section.filling.fill(0, &mut bytes);
                    unpacked.get_or_init(|| bytes)
                };
                Ok(bytes.get(at..).unwrap_or_default())
            }
        }
    }

    /// Of the sections of entries leaves the first that has no types: with `-fdebug-types-section` each type of a split file has
    /// one of its own (DWARF 5, 3.1.4 and 7.5.1). What can't be read is left to those who look something up.
    fn drop_types(&mut self) {
        let is_info = |(id, _): &&(SectionId, Section)| *id == SectionId::DebugInfo;
        if self.sections.iter().filter(is_info).count() < 2 {
            return;
        }
        let chosen = self.sections.iter().position(|entry| is_info(&entry) && !self.has_type(&entry.1));
        let mut index = 0;
        self.sections.retain(|(id, _)| {
            index += 1;
            *id != SectionId::DebugInfo || chosen.is_none_or(|chosen| chosen == index - 1)
        });
    }

    /// Whether the first unit of a section is a type. The length in a unit's header has 4 bytes, or 12 if the first 4 are ones;
    /// behind it are two of the version, and one of the kind if that is 5.
    fn has_type(&self, section: &Section) -> bool {
        let start = self.bytes_of(section, 0).unwrap_or_default();
        let rest = start.strip_prefix(&[0xff; 4]).map_or(start.get(4..), |long| long.get(8..));
        let Some(&[low, high, kind, ..]) = rest else { return false };
        let version = self.endian.read_u16(&[low, high]);
        version >= 5 && [gimli::DW_UT_type, gimli::DW_UT_split_type].contains(&gimli::DwUt(kind))
    }

    /// Reads everything, so that the file need not stay open.
    pub(super) fn close(&self) -> Result<(), gimli::Error> {
        for (id, section) in &self.sections {
            let mut at = 0;
            while at < section.size {
                at += self.bytes(*id, at)?.len();
            }
        }
        *self.file.borrow_mut() = None;
        Ok(())
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, gimli::Error> {
        self.meter.hold(length as u64)?;
        let mut file = self.file.borrow_mut();
        let mut bytes = Vec::new();
        let mut read = || {
            let file = file.as_mut().ok_or(io::ErrorKind::NotFound)?;
            file.seek(SeekFrom::Start(offset))?;
            file.take(length as u64).read_to_end(&mut bytes)
        };
        match read() {
            Ok(read) if read == length => Ok(bytes),
            Ok(_) => Err(self.meter.failed(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.meter.failed(error)),
        }
    }
}

impl<F> fmt::Debug for DebugFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugFile").field("link", &self.link).finish_non_exhaustive()
    }
}

impl Section {
    fn open<F: Read + Seek>(file: &mut F, layout: &Layout, found: &DebugSection) -> Result<Self, LineError> {
        let place = (found.section.offset, found.section.size);
        let too_large = |size| (size > MAX_SECTION).then_some(LineError::TooLarge { limit: MAX_SECTION });
        let mut start = [0; unpack::MAX_HEADER];
        file.seek(SeekFrom::Start(place.0))?;
        let known = &mut start[..place.1.min(unpack::MAX_HEADER as u64) as usize];
        file.read_exact(known)?;
        let packed = match (found.is_compressed, found.name.starts_with(b".z")) {
            (true, _) => Some(Packed::of_elf(known, layout.endian, layout.is_64)?),
            (false, true) => Some(Packed::of_gnu(known)?),
            (false, false) => None,
        };
        let size = packed.map_or(place.1, |packed| packed.size);
        if let Some(error) = too_large(size).or(too_large(place.1)) {
            return Err(error);
        }
        let content = if let Some(packed) = packed {
            packed.check(place.1)?;
            Content::Packed(packed, OnceCell::new())
        } else {
            let pieces = (size as usize).div_ceil(PIECE);
            Content::Plain(std::iter::repeat_with(OnceCell::new).take(pieces).collect())
        };
        let (is_read, filling) = (Cell::new(false), Filling::default());
        Ok(Self { size: size as usize, place, is_read, content, filling })
    }
}

/// The section that a name stands for.
fn known(name: &[u8], kind: Kind) -> Option<SectionId> {
    /// What `gimli` asks for in a package beside what is read.
    const IN_PACKAGES: [SectionId; 5] = [
        SectionId::DebugLoc,
        SectionId::DebugLocLists,
        SectionId::DebugMacinfo,
        SectionId::DebugMacro,
        SectionId::DebugTypes,
    ];
    /// What is read of the files.
    const READ: [SectionId; 12] = [
        SectionId::DebugAbbrev,
        SectionId::DebugAddr,
        SectionId::DebugAranges,
        SectionId::DebugCuIndex,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLineStr,
        SectionId::DebugRanges,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
        SectionId::DebugTuIndex,
    ];
    let plain = match name.strip_prefix(b".z") {
        Some(rest) => [b".", rest].concat(),
        None => name.to_owned(),
    };
    let unread = if kind == Kind::Package { &IN_PACKAGES[..] } else { &[] };
    READ.iter().chain(unread).copied().find(|id| {
        let wanted = match kind {
            Kind::Main => Some(id.name()),
            Kind::Split | Kind::Package => id.dwo_name(),
        };
        wanted.is_some_and(|wanted| wanted.as_bytes() == plain)
    })
}

/// A path with a NUL, and a build id.
fn read_link<F: Read + Seek>(file: &mut F, found: &DebugSection) -> Result<Option<Link>, LineError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(found.section.offset))?;
    file.take(found.section.size.min(MAX_LINK)).read_to_end(&mut bytes)?;
    let Some(end) = bytes.iter().position(|&byte| byte == 0) else { return Ok(None) };
    let build_id = bytes.split_off(end + 1);
    bytes.truncate(end);
    Ok(Some(Link { path: bytes, build_id }))
}
