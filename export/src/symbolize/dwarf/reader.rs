//! How `gimli` reads a section of a [`DebugFile`].

use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Seek};

use gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian, SectionId};

use super::file::DebugFile;

/// The longest header of a unit's lines. `gimli` reserves memory for as many files as its header has bytes if it says so;
/// those of large programs have some tens of kilobytes.
const MAX_LINE_HEADER: usize = 4 << 20;

/// A part of a section.
pub(super) struct Bytes<'a, F> {
    file: &'a DebugFile<F>,
    section: SectionId,
    at: usize,
    length: usize,
    /// What is known of it, and perhaps of what is behind it.
    window: &'a [u8],
}

impl<F> Clone for Bytes<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Bytes<'_, F> {}

impl<F> fmt::Debug for Bytes<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:#x}+{:#x}", self.section.name(), self.at, self.length)
    }
}

impl<'a, F: Read + Seek> Bytes<'a, F> {
    /// A whole section.
    pub(super) fn of(file: &'a DebugFile<F>, section: SectionId) -> Self {
        Self { file, section, at: 0, length: file.size(section), window: &[] }
    }

    /// What it is a part of, and which.
    pub(super) fn identity(&self) -> (usize, SectionId, usize, usize) {
        (std::ptr::from_ref(self.file).addr(), self.section, self.at, self.length)
    }

    fn end<T>(&self) -> Result<T> {
        Err(Error::UnexpectedEof(self.offset_id()))
    }

    #[inline]
    fn charge(&self, bytes: usize) -> Result<()> {
        self.file.meter().charge(self.section, bytes)
    }

    /// Goes on by so many bytes, of which there are as many.
    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.length -= bytes;
        self.window = self.window.get(bytes..).unwrap_or_default();
    }

    /// The next bytes, at least one if there is one.
    fn next_bytes(&mut self) -> Result<&'a [u8]> {
        if self.window.is_empty() && self.length > 0 {
            self.window = self.file.bytes(self.section, self.at)?;
            if self.window.is_empty() {
                return self.end();
            }
        }
        Ok(self.window.get(..self.length).unwrap_or(self.window))
    }

    #[cold]
    fn read_across_pieces(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let next = self.next_bytes()?;
            let count = next.len().min(rest.len());
            rest[..count].copy_from_slice(&next[..count]);
            self.advance(count);
            done += count;
        }
        Ok(())
    }
}

impl<F: Read + Seek> Reader for Bytes<'_, F> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.file.endian()
    }

    /// `gimli` asks before each entry, for this tells its offset.
    fn len(&self) -> usize {
        if self.section == SectionId::DebugInfo {
            self.file.meter().next_entry();
        }
        self.length
    }

    fn empty(&mut self) {
        self.length = 0;
    }

    fn truncate(&mut self, length: usize) -> Result<()> {
        if length > self.length {
            return self.end();
        }
        if self.section == SectionId::DebugLine {
            // A header of lines, or less.
            if length > MAX_LINE_HEADER {
                return self.end();
            }
            self.charge(length)?;
        }
        self.length = length;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.at.wrapping_sub(base.at)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.at as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        (id.0 as usize).checked_sub(self.at).filter(|offset| *offset <= self.length)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let mut rest = *self;
        while rest.length > 0 {
            let next = rest.next_bytes()?;
            let found = next.iter().position(|&other| other == byte);
            self.charge(found.unwrap_or(next.len()))?;
            if let Some(found) = found {
                return Ok(rest.at + found - self.at);
            }
            rest.advance(next.len());
        }
        self.end()
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        self.charge(0)?;
        if length > self.length {
            return self.end();
        }
        // What ends a string is skipped as well.
        if length > 1 && self.section == SectionId::DebugInfo {
            self.file.meter().pass_entry();
        }
        self.advance(length);
        Ok(())
    }

    fn split(&mut self, length: usize) -> Result<Self> {
        self.charge(0)?;
        if length > self.length {
            return self.end();
        }
        let first = Self { length, ..*self };
        self.advance(length);
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.charge(self.length)?;
        let mut rest = *self;
        let next = rest.next_bytes()?;
        if next.len() == self.length {
            return Ok(Cow::Borrowed(next));
        }
        let mut bytes = vec![0; self.length];
        rest.read_across_pieces(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        match self.to_slice()? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Error::BadUtf8),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::BadUtf8),
        }
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(match self.to_slice()? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.charge(buffer.len())?;
        if buffer.len() > self.length {
            return self.end();
        }
        if self.section == SectionId::DebugInfo {
            self.file.meter().read_entry();
        }
        match self.window.split_at_checked(buffer.len()) {
            Some((next, rest)) => {
                buffer.copy_from_slice(next);
                self.at += buffer.len();
                self.length -= buffer.len();
                self.window = rest;
                Ok(())
            }
            None => self.read_across_pieces(buffer),
        }
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        if let (Some((&byte, rest)), Some(length)) = (self.window.split_first(), self.length.checked_sub(1)) {
            self.charge(1)?;
            // 0 ends the children of an entry, and is none.
            if byte != 0 && self.section == SectionId::DebugInfo {
                self.file.meter().read_entry();
            }
            self.at += 1;
            self.length = length;
            self.window = rest;
            return Ok(byte);
        }
        let mut byte = [0];
        self.read_slice(&mut byte)?;
        Ok(byte[0])
    }
}
