//! An image as it lies in the memory of a dump in, a temporary file of it out that reads as an image's file does.
//!
//! A section's bytes lie at its address there, so the headers of the copy say that they do in the file, too ("PE Format" of Microsoft's
//! documentation). Its table of symbols is in no memory.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

use object::pe;

use super::memory::Memory;
use super::source::{u16_at, u32_at};
use crate::spill::temporary_file;

/// Bytes of headers that are looked at: they begin an image, and sections begin behind them at a page.
const HEADERS: usize = 4096;

/// The largest image that is copied.
const LARGEST: u64 = 1 << 30;

/// Bytes of a section's header, and of an entry of the debug directory.
const SECTION: usize = 40;
const DEBUG_ENTRY: usize = 28;

/// The most entries of a debug directory that are looked at.
const MOST_ENTRIES: u32 = 64;

/// The number of the debug directory.
const DEBUG_DIRECTORY: usize = 6;

/// Copies an image of so many bytes that begins at `base`, if what is needed of it is there, and `budget` has as many bytes left. An error
/// where the file can't be made.
pub(super) fn copy(memory: &Memory<'_>, base: u64, size: u64, budget: &mut u64) -> Option<io::Result<File>> {
    let left = budget.checked_sub(size).filter(|_| size <= LARGEST)?;
    let mut headers = vec![0; HEADERS];
    let read = memory.read(base, &mut headers);
    headers.truncate(read.min(size as usize));
    let layout = Layout::read(&headers)?;
    let end = base.checked_add(size)?;
    let is_there = |&(address, size): &(u32, u32)| {
        let start = base.checked_add(address.into())?;
        let part = start..start.checked_add(size.into())?;
        (part.end <= end && memory.has(&part)).then_some(())
    };
    layout.needed.iter().try_for_each(is_there)?;
    layout.patch(&mut headers)?;
    *budget = left;
    Some(write(memory, base, size, &headers, &layout))
}

fn write(memory: &Memory<'_>, base: u64, size: u64, headers: &[u8], layout: &Layout) -> io::Result<File> {
    let mut file = temporary_file()?;
    file.set_len(size)?;
    let mut page = vec![0; HEADERS];
    for at in (0..size).step_by(HEADERS) {
        let count = HEADERS.min((size - at) as usize);
        let buffer = page.get_mut(..count).unwrap_or_default();
        let filled = memory.read(base + at, buffer);
        // What is not there stays a hole.
        file.seek(SeekFrom::Start(at))?;
        file.write_all(buffer.get(..filled).unwrap_or_default())?;
    }
    file.seek(SeekFrom::Start(0))?;
    file.write_all(headers)?;
    layout.patch_debug_directory(memory, base, size, &mut file)?;
    Ok(file)
}

/// Where an image's headers are.
struct Layout {
    /// The signature `PE`.
    nt: usize,
    sections: usize,
    count: usize,
    /// Address and size of what has to be there.
    needed: Vec<(u32, u32)>,
    /// Address and size.
    debug: Option<(u32, u32)>,
}

impl Layout {
    fn read(headers: &[u8]) -> Option<Self> {
        const OPTIONAL: usize = 24;
        let nt = usize::try_from(u32_at(headers, 0x3c)?).ok().filter(|_| headers.starts_with(b"MZ"))?;
        headers.get(nt..)?.starts_with(b"PE\0\0").then_some(())?;
        let count = usize::from(u16_at(headers, nt + 6)?);
        let optional = nt + OPTIONAL;
        let sections = optional + usize::from(u16_at(headers, nt + 20)?);
        // PE32+ has its directories 16 bytes further on.
        let directories = optional + if u16_at(headers, optional)? == 0x20b { 112 } else { 96 };
        let entry = directories + 8 * DEBUG_DIRECTORY;
        let debug = Some((u32_at(headers, entry)?, u32_at(headers, entry + 4)?));
        let debug = debug.filter(|_| entry + 8 <= sections);
        let mut needed = Vec::new();
        for index in 0..count {
            let at = sections + index * SECTION;
            let flags = u32_at(headers, at + 36)?;
            let of_file = pe::IMAGE_SCN_MEM_DISCARDABLE.0 | pe::IMAGE_SCN_MEM_WRITE.0;
            if flags & of_file == 0 {
                needed.push((u32_at(headers, at + 12)?, u32_at(headers, at + 8)?));
            }
        }
        Some(Self { nt, sections, count, needed, debug })
    }

    /// Says of each section that its bytes are at its address, and that there are no symbols.
    fn patch(&self, headers: &mut [u8]) -> Option<()> {
        headers.get_mut(self.nt + 12..self.nt + 20)?.fill(0);
        for index in 0..self.count {
            let section = headers.get_mut(self.sections + index * SECTION..)?;
            let (size, address) = (u32_at(section, 8)?, u32_at(section, 12)?);
            section.get_mut(16..20)?.copy_from_slice(&size.to_le_bytes());
            section.get_mut(20..24)?.copy_from_slice(&address.to_le_bytes());
        }
        Some(())
    }

    /// The same of what the debug directory names.
    fn patch_debug_directory(
        &self,
        memory: &Memory<'_>,
        base: u64,
        size: u64,
        file: &mut File,
    ) -> io::Result<()> {
        let Some((start, bytes)) = self.debug else { return Ok(()) };
        for index in 0..(bytes / DEBUG_ENTRY as u32).min(MOST_ENTRIES) {
            let at = u64::from(start) + u64::from(index) * DEBUG_ENTRY as u64;
            let mut entry = [0; DEBUG_ENTRY];
            if at + DEBUG_ENTRY as u64 > size || memory.read(base + at, &mut entry) < DEBUG_ENTRY {
                break;
            }
            let Some(address) = u32_at(&entry, 20) else { break };
            file.seek(SeekFrom::Start(at + 24))?;
            file.write_all(&address.to_le_bytes())?;
        }
        Ok(())
    }
}
