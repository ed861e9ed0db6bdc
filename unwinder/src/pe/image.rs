//! A PE image as it lies in its file: sections by relative virtual address (RVA), the text's range, the exception
//! directory.
//!
//! Source: Microsoft, "PE Format". Section data is found by section headers alone; what an image has no bytes for (the rest of a
//! section that is cut off, or all of one that is uninitialized) can't be read.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use object::LittleEndian as LE;
use object::pe::{self, ImageDosHeader, ImageNtHeaders64};
use object::read::ReadCache;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader};

use super::image_bytes::{Headers, ImageBytes};
use crate::table::MAX_SECTION;
use crate::{SectionProblem, TableError, UnreadSection};

/// Unwind codes that are read for each byte of an image. Nearly each of a function's codes has an instruction: programs have
/// one for 25 bytes, and the densest that were made to test this crate one for 8. But entries of 8 or 12 bytes that share a
/// record can have all of its hundreds of codes each.
const CODES_PER_BYTE: u64 = 2;

/// What it costs to read a record, in codes.
const CODES_PER_RECORD: usize = 8;

/// Functions have less code. Of one that has more nothing is looked at.
const MAX_CODE: u32 = 1 << 20;

/// Entries of the exception directory that are read at once.
const ENTRIES_AT_ONCE: usize = 4096;

/// What .NET turns of `Machine` in images that it compiled for Linux (`pedecoder.h` of its runtime).
const FOR_LINUX: u16 = 0x7b79;

/// Bytes at an RVA, as far as the file has them.
#[derive(Debug)]
struct Section {
    start: u32,
    size: u32,
    file_offset: u32,
}

/// What a table is made of.
pub(crate) struct Image {
    /// The address it was linked for.
    pub(crate) base: u64,
    /// From the first executable byte to the last.
    pub(crate) text: Range<u32>,
    /// Where `.pdata` lies, which the exception directory names, and its size.
    exceptions: (u32, u32),
    bytes: Box<dyn ImageBytes>,
    /// Sorted by start.
    sections: Vec<Section>,
    /// How many more codes are read. Functions are compiled one after the other.
    codes_left: AtomicU64,
}

impl Image {
    /// Reads the headers of a PE32+ file for `machine` (`IMAGE_FILE_MACHINE_*`), of Windows or of .NET on Linux.
    pub(crate) fn read(bytes: Box<dyn ImageBytes>, machine: u16) -> Result<Self, TableError> {
        let file = &ReadCache::new(Headers { bytes: &*bytes, at: 0 });
        let dos = ImageDosHeader::parse(file).map_err(TableError::NotPe)?;
        let mut offset = dos.nt_headers_offset().into();
        let (headers, directories) = ImageNtHeaders64::parse(file, &mut offset).map_err(TableError::NotPe)?;
        let found = headers.file_header().machine.get(LE);
        if found.0 != machine && found.0 != machine ^ FOR_LINUX {
            return Err(TableError::OtherPeMachine { machine: found.0 });
        }
        let headers_of_sections = headers.sections(file, offset).map_err(TableError::NotPe)?;
        let file_size = bytes.size();
        let mut text: Option<Range<u32>> = None;
        // Sections lie beside each other in a file, so together they have no more bytes.
        let mut budget = file_size;
        let mut sections = Vec::with_capacity(headers_of_sections.len());
        for header in headers_of_sections.iter() {
            let (start, size) = header.pe_address_range();
            let end = start.saturating_add(size);
            if header.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_EXECUTE) && start < end {
                let known = text.get_or_insert(start..end);
                *known = known.start.min(start)..known.end.max(end);
            }
            let (file_offset, size) = header.pe_file_range();
            let room = file_size.saturating_sub(file_offset.into()).min(budget);
            let size = size.min(u32::try_from(room).unwrap_or(u32::MAX));
            budget -= u64::from(size);
            sections.push(Section { start, size, file_offset });
        }
        sections.sort_by_key(|section| section.start);
        let directory = directories.get(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION);
        let exceptions = directory.ok_or(TableError::NoUnwindSection)?.address_range();
        let (base, text) = (headers.optional_header().image_base(), text.ok_or(TableError::NoText)?);
        let codes_left = AtomicU64::new((file_size - budget).saturating_mul(CODES_PER_BYTE));
        Ok(Image { base, text, exceptions, bytes, sections, codes_left })
    }

    /// Where the file has the bytes from an RVA on, and how many its section has from there.
    fn place(&self, rva: u32) -> Option<(u64, u32)> {
        let behind = self.sections.partition_point(|section| section.start <= rva);
        let section = self.sections.get(behind.checked_sub(1)?)?;
        let within = rva - section.start;
        let size = section.size.checked_sub(within)?;
        Some((u64::from(section.file_offset) + u64::from(within), size))
    }

    /// Of `size` bytes from an RVA on, how many the image has.
    pub(crate) fn size_at(&self, rva: u32, size: u32) -> u32 {
        self.place(rva).map_or(0, |(_, room)| room.min(size))
    }

    /// Reads the bytes from an RVA on, as many as `buffer` and the RVA's section have.
    pub(crate) fn read_at<'b>(&self, rva: u32, buffer: &'b mut [u8]) -> &'b [u8] {
        let (offset, room) = self.place(rva).unwrap_or_default();
        let length = buffer.len().min(room as usize);
        let wanted = buffer.get_mut(..length).unwrap_or_default();
        let read = if wanted.is_empty() { 0 } else { self.bytes.read_at(offset, wanted) };
        buffer.get(..read.min(length)).unwrap_or_default()
    }

    /// Reads just so many bytes; `None` where the image has fewer.
    pub(crate) fn array<const N: usize>(&self, rva: u32) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.read_at(rva, &mut bytes).len() == N).then_some(bytes)
    }

    /// The same for a size that is only known now. Nothing is reserved for what the image does not have.
    pub(crate) fn vector(&self, rva: u32, size: u32) -> Option<Vec<u8>> {
        if self.size_at(rva, size) < size {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        (self.read_at(rva, &mut bytes).len() == bytes.len()).then_some(bytes)
    }

    /// The code of a function; `None` where it can't be read, or is more than any function has.
    pub(crate) fn code(&self, begin: u32, size: u32) -> Option<Vec<u8>> {
        (size <= MAX_CODE).then(|| self.vector(begin, size))?
    }

    /// Hands each entry of the exception directory to `add`, which are of `size` bytes. An error where the file does not have or
    /// give all of it: functions behind would count as code without entries.
    pub(crate) fn entries(&self, size: usize, mut add: impl FnMut(&[u8])) -> Result<(), UnreadSection> {
        let (start, length) = self.exceptions;
        if length > MAX_SECTION {
            return Err(unread(SectionProblem::TooLarge { size: length.into() }));
        }
        if self.size_at(start, length) < length {
            return Err(unread(SectionProblem::CutOff));
        }
        let mut rest = start..start.saturating_add(length);
        let mut buffer = vec![0; size * ENTRIES_AT_ONCE];
        while !rest.is_empty() {
            let wanted = buffer.len().min(rest.len());
            let read = self.read_at(rest.start, buffer.get_mut(..wanted).unwrap_or_default());
            read.chunks_exact(size).for_each(&mut add);
            if read.len() < wanted {
                return Err(unread(SectionProblem::CutOff));
            }
            rest.start += wanted as u32;
        }
        Ok(())
    }

    /// Counts unwind codes that are about to be read; `None` once there are more than an image of this size can have.
    pub(crate) fn count_codes(&self, codes: usize) -> Option<()> {
        let left = self.codes_left.load(Ordering::Relaxed).checked_sub(codes as u64);
        self.codes_left.store(left.unwrap_or(0), Ordering::Relaxed);
        left.map(drop)
    }

    /// The same for a record that is about to be read.
    pub(crate) fn count_record(&self) -> Option<()> {
        self.count_codes(CODES_PER_RECORD)
    }
}

/// Why the exception directory is not read.
fn unread(problem: SectionProblem) -> UnreadSection {
    UnreadSection { section: ".pdata", problem }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Image { base, text, exceptions, sections, codes_left, bytes: _ } = self;
        let mut image = f.debug_struct("Image");
        image.field("base", base).field("text", text).field("exceptions", exceptions);
        image.field("sections", sections).field("codes_left", codes_left).finish_non_exhaustive()
    }
}
