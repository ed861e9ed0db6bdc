//! Tables and strings of a file, read piece by piece: memory is bounded whatever the file claims.

use std::io::{self, Read, Seek, SeekFrom};

use object::pod::{Pod, bytes_of_slice, bytes_of_slice_mut, from_bytes};

use super::SymbolError;
use super::layout::Section;

/// Bytes of a table read at a time.
const PIECE: usize = 192 << 10;

/// Entries of a table that are looked at. The largest programs have some million symbols.
const MAX_ENTRIES: u64 = 1 << 24;

/// Bytes of strings read at a time.
const WINDOW: usize = 4 << 10;

/// The longest name; longer ones are cut. C++ names of tens of kilobytes are seen.
const MAX_NAME: usize = 64 << 10;

/// Calls `f` with the entries of a table in order, some at a time, and the file, whose position is free to use.
/// It ends early when `f` says so by `Ok(false)`.
pub(in crate::symbolize) fn each_entry<T, R>(
    file: &mut R,
    table: &Section,
    what: &'static str,
    mut f: impl FnMut(&mut R, &[T]) -> Result<bool, SymbolError>,
) -> Result<(), SymbolError>
where
    T: Pod,
    R: Read + Seek,
{
    let entry = size_of::<T>();
    // Zero is seen from old linkers, and means what everybody writes.
    if table.entry_size != entry as u64 && table.entry_size != 0 {
        return Ok(());
    }
    let count = table.size / entry as u64;
    if count > MAX_ENTRIES {
        return Err(SymbolError::TooLarge { what, size: count, limit: MAX_ENTRIES });
    }
    let per_piece = (PIECE / entry).min(count as usize);
    // No entry of any table is longer than this.
    let zeros = [0_u64; 8];
    let Ok((&zero, _)) = from_bytes::<T>(bytes_of_slice(&zeros)) else { return Ok(()) };
    let mut piece = vec![zero; per_piece];
    let mut done = 0;
    while done < count {
        let entries = &mut piece[..per_piece.min((count - done) as usize)];
        file.seek(SeekFrom::Start(table.offset.saturating_add(done * entry as u64)))?;
        file.read_exact(bytes_of_slice_mut(entries))?;
        if !f(file, entries)? {
            break;
        }
        done += entries.len() as u64;
    }
    Ok(())
}

/// The strings of a string table, at best asked for in ascending order.
#[derive(Debug)]
pub(super) struct Strings {
    offset: u64,
    size: u64,
    /// Bytes of the table from `start` on.
    window: Vec<u8>,
    start: u64,
}

impl Strings {
    pub(super) fn new(table: &Section) -> Self {
        let size = if table.has_bytes() { table.size } else { 0 };
        Self { offset: table.offset, size, window: Vec::new(), start: 0 }
    }

    /// The string at an offset, without its NUL; empty outside of the table.
    pub(super) fn get<R: Read + Seek>(&mut self, file: &mut R, at: u32) -> io::Result<&[u8]> {
        let at = u64::from(at);
        if at >= self.size {
            return Ok(&[]);
        }
        let mut want = WINDOW;
        loop {
            let cached = at.checked_sub(self.start).filter(|&skip| skip < self.window.len() as u64);
            if let Some(skip) = cached.map(|skip| skip as usize) {
                let end = self.window[skip..].iter().position(|&byte| byte == 0);
                let at_end = at + (self.window.len() - skip) as u64 >= self.size;
                if end.is_some() || at_end || self.window.len() - skip >= MAX_NAME {
                    let end = end.map_or(self.window.len(), |end| skip + end);
                    return Ok(&self.window[skip..end]);
                }
                want = (self.window.len() - skip).saturating_mul(4).clamp(WINDOW, MAX_NAME);
            }
            let want = (self.size - at).min(want as u64);
            self.window.clear();
            self.start = at;
            file.seek(SeekFrom::Start(self.offset.saturating_add(at)))?;
            let read = file.take(want).read_to_end(&mut self.window)?;
            if (read as u64) < want {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
