//! The bytes a table is made of, copied out of ELF files or of what a caller has: `.eh_frame` with its `.eh_frame_hdr`,
//! and `.debug_frame`. Most files have the first alone; Go's have the second for Go's functions, and both where C is linked
//! to them. What a file does not have is looked for in a debug file: one that the caller has, or the one in
//! `.gnu_debugdata`.
//!
//! A debug file was made when its file was linked. Where the file was moved since (prelinked), addresses in the two
//! differ by as much as their text does; offsets in the two have nothing to do with each other.

use std::borrow::Cow;

use gimli::BaseAddresses;
use object::ReadRef;

use super::code_sections::{EhFrame, UnwindSections};
use super::debug_data;
use super::elf_file::ElfFile;
use super::rows::MAX_SECTION;
use crate::{Architecture, SectionProblem, TableError, UnreadSection};

/// Compilers write a byte of `.eh_frame` for some ten bytes of code. A file with less than one for this many has it for
/// its start files alone.
const SPARSE: usize = 64;

/// Bytes that `.eh_frame_hdr` has for itself and a function or two.
const SMALLEST_HDR: usize = 32;

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
#[derive(Debug, Default)]
pub(crate) struct FrameSections {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) debug_start: usize,
    /// As in the file whose text is described.
    pub(crate) bases: BaseAddresses,
    /// What is added, wrapping, to an absolute address in `.eh_frame` for it to be one of that file, and to one in
    /// `.debug_frame`.
    pub(crate) shifts: [u64; 2],
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

    /// What is added, wrapping, to the absolute address at an offset.
    pub(crate) fn shift_at(&self, offset: usize) -> u64 {
        let [frame, debug] = self.shifts;
        if offset < self.debug_start { frame } else { debug }
    }
}

/// All that a table is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    /// First address of the code, as linked.
    pub(crate) text_start: u64,
    /// From there to the end of the last code.
    pub(crate) text_size: u32,
    /// The first instruction to be run, as linked; 0 where there is none.
    pub(crate) entry: u64,
    pub(crate) hdr: Option<EhFrameHdr>,
    pub(crate) frame: FrameSections,
    /// What they lack.
    pub(crate) unread: Option<UnreadSection>,
}

/// Reads the parts out of an ELF file. What it does not have is taken out of its `.gnu_debugdata`, and then out of what
/// `debug` gives, as long as most of the text has no rules; neither needs to be a readable file.
pub(crate) fn read<'d, 'e, A, R, D>(data: R, debug: impl FnOnce() -> Option<D>) -> Result<Parts, TableError>
where
    A: Architecture,
    R: ReadRef<'d>,
    D: ReadRef<'e>,
{
    let file = ElfFile::<A, _>::parse(data)?;
    let (text_start, text_size) = file.text()?;
    let mut sections = Sections::default();
    sections.add(&file, 0);
    if sections.are_sparse(text_size) {
        sections.add_debug_data(&file);
    }
    if sections.are_sparse(text_size)
        && let Some(debug) = debug()
        && let Ok(debug) = ElfFile::<A, _>::parse(debug)
    {
        sections.add(&debug, file.distance_from(&debug));
    }
    sections.into_parts((text_start, text_size), file.entry())
}

/// Copies the parts out of a caller's sections, of which one may be missing that could not be read.
pub(crate) fn copy(code: &UnwindSections<'_>, unread: Option<UnreadSection>) -> Result<Parts, TableError> {
    let text = &code.text;
    let span = text.end.checked_sub(text.start).filter(|&span| span > 0).ok_or(TableError::NoText)?;
    let text_size = u32::try_from(span).map_err(|_| TableError::TextTooLarge { span })?;
    let mut sections = Sections { unread, ..Sections::default() };
    if let Some(frame) = code.eh_frame {
        let found = EhFrame { frame, hdr: code.eh_frame_hdr, text: Some(text.start), got: None };
        sections.add_eh_frame(&found, 0);
    }
    if let Some(debug) = code.debug_frame {
        sections.add_debug_frame(debug.into(), 0);
    }
    sections.into_parts((text.start, text_size), 0)
}

/// What was found so far.
#[derive(Debug, Default)]
struct Sections {
    frame: Vec<u8>,
    bases: BaseAddresses,
    hdr: Option<EhFrameHdr>,
    debug: Vec<u8>,
    shifts: [u64; 2],
    /// The first that is there and can't be read. What else there is may do without it.
    unread: Option<UnreadSection>,
}

impl Sections {
    /// Takes from `file`, to whose addresses `shift` is added, what is missing.
    fn add<'d, A: Architecture, R: ReadRef<'d>>(&mut self, file: &ElfFile<'d, A, R>, shift: u64) {
        if self.frame.is_empty()
            && let Some(frame) = self.readable(file.eh_frame())
        {
            self.add_eh_frame(&frame, shift);
        }
        if self.debug.is_empty()
            && let Some(debug) = self.readable(file.debug_frame())
        {
            self.add_debug_frame(debug, shift);
        }
    }

    /// Takes what is missing from the file in the `.gnu_debugdata` of `file`.
    fn add_debug_data<'d, A: Architecture, R: ReadRef<'d>>(&mut self, file: &ElfFile<'d, A, R>) {
        let Some(packed) = self.readable(file.debug_data()) else { return };
        let of_data = |problem| UnreadSection { section: debug_data::NAME, problem };
        let inner = debug_data::unpack(packed).map_err(of_data);
        let Some(inner) = self.readable(inner.map(Some)) else { return };
        let inner = ElfFile::<A, _>::parse_unpacked(inner.as_slice(), packed.len());
        let inner = inner.map_err(|_| of_data(SectionProblem::NoElf));
        if let Some(inner) = self.readable(inner.map(Some)) {
            self.add(&inner, file.distance_from(&inner));
        }
    }

    /// What was read, if there was anything to read and it could be.
    fn readable<T>(&mut self, section: Result<Option<T>, UnreadSection>) -> Option<T> {
        section.unwrap_or_else(|unread| {
            self.unread.get_or_insert(unread);
            None
        })
    }

    fn add_eh_frame(&mut self, found: &EhFrame<'_>, shift: u64) {
        let bytes = found.frame.bytes;
        // Less than that is a terminator alone.
        if bytes.len() > 4 && self.has_room(".eh_frame", bytes.len()) {
            // A header has half of what an FDE has for a function.
            let hdr = found.hdr.filter(|hdr| hdr.bytes.len() <= bytes.len().saturating_add(SMALLEST_HDR));
            self.frame = bytes.to_vec();
            self.shifts[0] = shift;
            self.bases = found.bases(shift);
            self.hdr = hdr.map(|hdr| EhFrameHdr {
                address: hdr.address.wrapping_add(shift),
                bytes: hdr.bytes.to_vec(),
            });
        }
    }

    fn add_debug_frame(&mut self, debug: Cow<'_, [u8]>, shift: u64) {
        if self.has_room(".debug_frame", debug.len()) {
            self.debug = debug.into_owned();
            self.shifts[1] = shift;
        }
    }

    /// Whether a section of this size can be added.
    fn has_room(&mut self, section: &'static str, size: usize) -> bool {
        let size = size.saturating_add(self.frame.len()) as u64;
        let has_room = size < MAX_SECTION.into();
        if !has_room {
            self.unread.get_or_insert(UnreadSection { section, problem: SectionProblem::TooLarge { size } });
        }
        has_room
    }

    /// Whether most of the text has no rules.
    fn are_sparse(&self, text_size: u32) -> bool {
        self.debug.is_empty() && self.frame.len() <= text_size as usize / SPARSE
    }

    fn into_parts(self, (text_start, text_size): (u64, u32), entry: u64) -> Result<Parts, TableError> {
        let Sections { mut frame, bases, hdr, debug, shifts, unread } = self;
        let debug_start = frame.len();
        if frame.is_empty() {
            frame = debug;
        } else {
            frame.extend(debug);
        }
        if frame.is_empty() {
            return Err(unread.map_or(TableError::NoUnwindSection, TableError::Unread));
        }
        let frame = FrameSections { bytes: frame.into(), debug_start, bases, shifts };
        Ok(Parts { text_start, text_size, entry, hdr, frame, unread })
    }
}

#[cfg(test)]
mod tests {
    use super::super::code_sections::Section;
    use super::*;

    #[test]
    fn sections_of_an_implausible_size_are_refused() {
        let large = vec![0_u8; MAX_SECTION as usize];
        let copied = |bytes| {
            let eh_frame = Some(Section { address: 0, bytes });
            let (eh_frame_hdr, debug_frame) = (None, None);
            copy(&UnwindSections { text: 0..1, eh_frame, eh_frame_hdr, debug_frame }, None)
        };
        let problem = SectionProblem::TooLarge { size: MAX_SECTION.into() };
        let refused = UnreadSection { section: ".eh_frame", problem };
        assert!(matches!(copied(&large), Err(TableError::Unread(unread)) if unread == refused));
        assert!(copied(&large[..1 << 20]).is_ok());
    }
}
