//! Parts of a file that say where they are; never more is read than there is.

use std::io::{Read, Seek, SeekFrom};

use super::{FileError, FilePart};
use crate::perf::Bytes;
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};

/// Where a part of the file is: `struct perf_file_section`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Section {
    /// Bytes in the file.
    pub(super) const SIZE: u64 = 16;

    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { offset: fields.u64()?, size: fields.u64()? })
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) {
        writer.u64(self.offset);
        writer.u64(self.size);
    }

    pub(super) fn bytes(self, part: FilePart, reader: &mut (impl Read + Seek)) -> Result<Vec<u8>, FileError> {
        reader.seek(SeekFrom::Start(self.offset))?;
        exactly(part, self, reader)
    }
}

/// Reads parts that lie apart, so that together they are no larger than the file: many of them might else name the same
/// large one.
pub(super) struct Apart {
    left: u64,
}

impl Apart {
    pub(super) fn of(reader: &mut impl Seek) -> Result<Self, FileError> {
        Ok(Self { left: reader.seek(SeekFrom::End(0))? })
    }

    pub(super) fn bytes(
        &mut self,
        section: Section,
        part: FilePart,
        reader: &mut (impl Read + Seek),
    ) -> Result<Vec<u8>, FileError> {
        let Section { offset: at, size } = section;
        let cut_off = FileError::CutOff { part, at, size, len: self.left };
        self.left = self.left.checked_sub(section.size).ok_or(cut_off)?;
        section.bytes(part, reader)
    }
}

/// The bytes of a section at which `reader` is. Memory is taken for what there is, whatever the size says.
pub(super) fn exactly(
    part: FilePart,
    section: Section,
    reader: &mut impl Read,
) -> Result<Vec<u8>, FileError> {
    let Section { offset: at, size } = section;
    let mut bytes = Vec::new();
    reader.take(size).read_to_end(&mut bytes)?;
    let len = bytes.len() as u64;
    if len == size { Ok(bytes) } else { Err(FileError::CutOff { part, at, size, len }) }
}

/// Text with its length before it, filled up with NULs: `struct perf_header_string`.
pub(super) fn string(fields: &mut Fields<'_>) -> Option<String> {
    let len = fields.u32()?;
    let text = fields.bytes_of(u64::from(len))?.until_nul();
    Some(String::from_utf8_lossy(&text.to_cow()).into_owned())
}

/// Writes a length or a number of things.
pub(super) fn write_count(writer: &mut Writer<'_>, count: usize) -> Result<(), WriteError> {
    writer.u32(u32::try_from(count).map_err(|_| WriteError::TooLong(count))?);
    Ok(())
}

/// Writes what [`string`] reads, filled up to a multiple of 64 bytes (`NAME_ALIGN`) with at least one NUL.
pub(super) fn write_string(writer: &mut Writer<'_>, text: &str) -> Result<(), WriteError> {
    let filled_up = (text.len() + 1).next_multiple_of(64);
    write_count(writer, filled_up)?;
    writer.bytes(Bytes::from(text.as_bytes()));
    writer.zeros(filled_up - text.len());
    Ok(())
}

/// As many things as are said to follow, until there is no more; each takes bytes, so there can't be more than those.
pub(super) fn list<'a, T>(
    fields: &mut Fields<'a>,
    count: u64,
    mut read: impl FnMut(&mut Fields<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    (0..count).map(|_| read(fields)).collect()
}
