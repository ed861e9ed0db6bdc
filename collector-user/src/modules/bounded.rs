//! Reads of files that anybody may have made: one whose headers tell of much more than there is on the disk must cost
//! neither memory nor time.

use std::borrow::Borrow;
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek};
use std::ops::Range;

use object::{ReadCache, ReadRef};

use crate::this_machine::occupied;

/// The most that is read of headers and notes. 100,000 sections have 6 MiB of headers.
pub(super) const HEADERS: u64 = 8 << 20;

/// The most that is read for an unwind table: the unwinder takes no larger sections.
pub(crate) const UNWIND_SECTIONS: u64 = 256 << 20;

/// How many times what a file occupies may be read of it. File systems that compress make a third of a program.
const MAX_RATIO: u64 = 8;

/// What may be read of every file: small ones may occupy nothing but their inode.
const ALWAYS: u64 = 1 << 20;

/// A file of which a number of bytes can be read, and then no more. What was read is held until it is dropped.
#[derive(Debug)]
pub(crate) struct BoundedFile<F: Read + Seek> {
    cache: ReadCache<F>,
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl<F: Read + Seek + Borrow<File>> BoundedFile<F> {
    /// A file that gives `limit` bytes, or less if it is mostly holes.
    pub(crate) fn new(file: F, limit: u64) -> Self {
        let left = limit.min(plausible_size(file.borrow()));
        Self { cache: ReadCache::new(file), left: Cell::new(left), is_exceeded: Cell::new(false) }
    }
}

impl<F: Read + Seek> BoundedFile<F> {
    /// Whether more was asked for than is read.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}

impl<'a, F: Read + Seek> ReadRef<'a> for &'a BoundedFile<F> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        let left = self.left.get().checked_sub(size);
        self.is_exceeded.set(self.is_exceeded.get() || left.is_none());
        self.left.set(left.ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        /// As far as the cache looks for the delimiter.
        const FARTHEST: u64 = 4 << 10;
        let left = Some(self.left.get()).filter(|&left| left > 0).ok_or(())?;
        let bytes = self.cache.read_bytes_at_until(range, delimiter);
        let read = bytes.map_or(FARTHEST, |bytes| bytes.len() as u64);
        self.left.set(left.saturating_sub(read));
        bytes
    }
}

/// The most that a file can be said to contain by what it occupies.
pub(super) fn plausible_size(file: &File) -> u64 {
    occupied(file).map_or(u64::MAX, |bytes| bytes.saturating_mul(MAX_RATIO).max(ALWAYS))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn of_holes_little_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 3 << 20]).unwrap();
        let dense = BoundedFile::new(File::open(&path).unwrap(), UNWIND_SECTIONS);
        assert!((&dense).read_bytes_at(0, 3 << 20).unwrap().iter().all(|&byte| byte == 1));

        fs::write(&path, [1; 1000]).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
        let sparse = BoundedFile::new(File::open(&path).unwrap(), UNWIND_SECTIONS);
        assert_eq!((&sparse).read_bytes_at(0, 1 << 30), Err(()));
        // What was read is held, so together it is not more either.
        let pieces = (0..1 << 14).map(|piece| (&sparse).read_bytes_at(piece << 16, 1 << 16));
        assert_eq!(pieces.flatten().count() << 16, 1 << 20);
    }

    #[test]
    fn no_more_is_read_than_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0123456789").unwrap();
        let file = BoundedFile::new(File::open(&path).unwrap(), 8);
        assert_eq!((&file).read_bytes_at_until(0..10, b'2'), Ok(&b"01"[..]));
        assert_eq!((&file).read_bytes_at(4, 6), Ok(&b"456789"[..]));
        assert_eq!((&file).read_bytes_at(0, 1), Err(()));
        assert_eq!((&file).read_bytes_at_until(0..10, b'2'), Err(()));
    }
}
