//! A PE image as it lies in its file: sections by relative virtual address (RVA), the text's range, the exception
//! directory.
//!
//! Source: Microsoft, "PE Format". Section data is found by section headers alone; what an image has no bytes for (a
//! section that is cut off or uninitialized) is empty.

use std::cell::Cell;
use std::ops::Range;

use object::pe::{self, ImageDosHeader, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader};
use object::{LittleEndian as LE, ReadRef};

use crate::TableError;

/// Unwind codes that are read for each byte of an image. Nearly each of a function's codes has an instruction: programs have
/// one for 25 bytes, and the densest that were made to test this crate one for 8. But entries of 8 or 12 bytes that share a
/// record can have all of its hundreds of codes each.
const CODES_PER_BYTE: u64 = 2;

/// What .NET turns of `Machine` in images that it compiled for Linux (`pedecoder.h` of its runtime).
const FOR_LINUX: u16 = 0x7b79;

/// Bytes at an RVA.
#[derive(Debug)]
struct Section<'d> {
    start: u32,
    bytes: &'d [u8],
}

/// What a table is made of.
#[derive(Debug)]
pub(crate) struct Image<'d> {
    /// The address it was linked for.
    pub(crate) base: u64,
    /// From the first executable byte to the last.
    pub(crate) text: Range<u32>,
    /// `.pdata`: what the exception directory names.
    pub(crate) exceptions: &'d [u8],
    /// Sorted by start.
    sections: Vec<Section<'d>>,
    /// How many more codes are read.
    codes_left: Cell<u64>,
}

impl<'d> Image<'d> {
    /// Reads a PE32+ file for `machine` (`IMAGE_FILE_MACHINE_*`), of Windows or of .NET on Linux.
    pub(crate) fn read<R: ReadRef<'d>>(data: R, machine: u16) -> Result<Self, TableError> {
        let dos = ImageDosHeader::parse(data).map_err(TableError::NotPe)?;
        let mut offset = dos.nt_headers_offset().into();
        let (headers, directories) = ImageNtHeaders64::parse(data, &mut offset).map_err(TableError::NotPe)?;
        let found = headers.file_header().machine.get(LE);
        if found.0 != machine && found.0 != machine ^ FOR_LINUX {
            return Err(TableError::OtherPeMachine { machine: found.0 });
        }
        let headers_of_sections = headers.sections(data, offset).map_err(TableError::NotPe)?;
        let mut text: Option<Range<u32>> = None;
        // Sections lie beside each other in a file, so together they have no more bytes.
        let mut budget = data.len().map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let mut sections = Vec::with_capacity(headers_of_sections.len());
        for header in headers_of_sections.iter() {
            let (start, size) = header.pe_address_range();
            let end = start.saturating_add(size);
            if header.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_EXECUTE) && start < end {
                let known = text.get_or_insert(start..end);
                *known = known.start.min(start)..known.end.max(end);
            }
            let bytes = header.pe_data(data).unwrap_or_default();
            let bytes = bytes.get(..bytes.len().min(budget)).unwrap_or_default();
            budget -= bytes.len();
            sections.push(Section { start, bytes });
        }
        sections.sort_by_key(|section| section.start);
        let size: u64 = sections.iter().map(|section| section.bytes.len() as u64).sum();
        let mut image = Image {
            base: headers.optional_header().image_base(),
            text: text.ok_or(TableError::NoText)?,
            exceptions: &[],
            sections,
            codes_left: Cell::new(size.saturating_mul(CODES_PER_BYTE)),
        };
        let directory = directories.get(pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION);
        let (start, size) = directory.ok_or(TableError::NoUnwindSection)?.address_range();
        let bytes = image.bytes_at(start);
        image.exceptions = bytes.get(..size as usize).unwrap_or(bytes);
        Ok(image)
    }

    /// The bytes from an RVA to the end of its section; none where there are none.
    pub(crate) fn bytes_at(&self, rva: u32) -> &'d [u8] {
        let behind = self.sections.partition_point(|section| section.start <= rva);
        let section = behind.checked_sub(1).and_then(|last| self.sections.get(last));
        let bytes = section.and_then(|section| section.bytes.get((rva - section.start) as usize..));
        bytes.unwrap_or_default()
    }

    /// Counts unwind codes that are about to be read; `None` once there are more than an image of this size can have.
    pub(crate) fn count_codes(&self, codes: usize) -> Option<()> {
        let left = self.codes_left.get().checked_sub(codes as u64);
        self.codes_left.set(left.unwrap_or(0));
        left.map(drop)
    }

    /// The code of a function, as far as the image has bytes for it.
    pub(crate) fn code(&self, begin: u32, size: u32) -> &'d [u8] {
        let bytes = self.bytes_at(begin);
        bytes.get(..size as usize).unwrap_or(bytes)
    }
}
