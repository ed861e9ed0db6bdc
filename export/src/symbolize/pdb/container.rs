//! The container that a PDB is (MSF 7.00): blocks of one size, of which each stream has some, listed in a directory
//! ("The MSF File Format" of LLVM's documentation).

use std::io::{Read, Seek, SeekFrom};

use super::PdbError;
use crate::symbolize::words::u32_at;

const MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";
/// The largest directory: that of a browser's PDB has 3 MB.
const MOST_DIRECTORY: u32 = 64 << 20;
/// The largest stream that is held in memory: the symbols of one object file, or of all of them.
const MOST_STREAM: u32 = 512 << 20;
/// What a stream that is not there has as its size.
const ABSENT: u32 = u32::MAX;

/// The streams of a PDB.
pub(super) struct Container<'a, R> {
    file: &'a mut R,
    /// Bytes of the file.
    length: u64,
    block: u32,
    directory: Vec<u8>,
    /// By stream: its size, and where its blocks are listed in the directory.
    streams: Vec<(u32, usize)>,
    /// Bytes that may be read still: a damaged file can name the same ones again and again.
    budget: u64,
}

impl<'a, R: Read + Seek> Container<'a, R> {
    pub(super) fn open(file: &'a mut R) -> Result<Self, PdbError> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut header = [0; 56];
        file.read_exact(&mut header)?;
        let word = |at| u32_at(&header, at).unwrap_or(0);
        let (block, size, map) = (word(32), word(44), word(52));
        if !header.starts_with(MAGIC) || !(512..=1 << 16).contains(&block) || !block.is_power_of_two() {
            return Err(PdbError::NoPdb);
        }
        if size > MOST_DIRECTORY || u64::from(size) > length {
            return Err(PdbError::damaged("directory", None, 44));
        }
        // The blocks of the directory are listed in blocks that follow each other.
        let budget = length.saturating_mul(4);
        let mut container = Self { file, length, block, directory: Vec::new(), streams: Vec::new(), budget };
        let blocks = size.div_ceil(block) as usize;
        let list = container.at(u64::from(map) * u64::from(block), blocks * 4)?;
        let mut directory = Vec::new();
        for number in list.chunks_exact(4).filter_map(|entry| u32_at(entry, 0)) {
            let left = (size as usize).saturating_sub(directory.len()).min(block as usize);
            directory.extend(container.at(u64::from(number) * u64::from(block), left)?);
        }
        let damaged = || PdbError::damaged("directory", None, u64::from(map) * u64::from(block));
        container.streams = streams(&directory, block).ok_or_else(damaged)?;
        container.directory = directory;
        Ok(container)
    }

    /// Bytes of the file.
    fn at(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, PdbError> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.length);
        let damaged = || PdbError::damaged("list of blocks", None, offset);
        self.budget = self.budget.checked_sub(length as u64).ok_or_else(damaged)?;
        end.ok_or_else(damaged)?;
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of a stream; 0 for one that is not there.
    pub(super) fn size(&self, stream: u32) -> u32 {
        self.streams.get(stream as usize).map_or(0, |(size, _)| *size)
    }

    /// A whole stream.
    pub(super) fn stream(&mut self, stream: u32) -> Result<Vec<u8>, PdbError> {
        self.part(stream, 0, self.size(stream))
    }

    /// Bytes of a stream, fewer where it ends before.
    pub(super) fn part(&mut self, stream: u32, start: u32, length: u32) -> Result<Vec<u8>, PdbError> {
        let Some(&(size, list)) = self.streams.get(stream as usize) else { return Ok(Vec::new()) };
        let end = start.saturating_add(length).min(size);
        let length = end.saturating_sub(start);
        if length > MOST_STREAM || u64::from(length) > self.length {
            return Err(PdbError::TooLarge { size: length.into(), limit: MOST_STREAM.into() });
        }
        let mut bytes = Vec::with_capacity(length as usize);
        let mut at = start;
        while at < end {
            let entry = list + 4 * (at / self.block) as usize;
            let damaged = || PdbError::damaged("list of blocks", Some(stream), at.into());
            let number = u32_at(&self.directory, entry).ok_or_else(damaged)?;
            let within = at % self.block;
            let taken = (self.block - within).min(end - at);
            let offset = u64::from(number) * u64::from(self.block) + u64::from(within);
            bytes.extend(self.at(offset, taken as usize)?);
            at += taken;
        }
        Ok(bytes)
    }

    /// Goes through records of a stream from `start` to `end`, each of which begins with the length of what follows: 2 bytes,
    /// then 2 of its kind. They may be of any number, and one of them is in memory at a time.
    pub(super) fn each_record(
        &mut self,
        stream: u32,
        start: u32,
        end: u32,
        mut take: impl FnMut(u16, &[u8]),
    ) -> Result<(), PdbError> {
        /// Records have at most 64 KiB.
        const PIECE: u32 = 1 << 20;
        let end = end.min(self.size(stream));
        let mut at = start;
        while at < end {
            let piece = self.part(stream, at, PIECE.min(end - at))?;
            let mut rest = piece.as_slice();
            while let Some((kind, record, behind)) = split_record(rest) {
                take(kind, record);
                rest = behind;
            }
            let taken = (piece.len() - rest.len()) as u32;
            if taken == 0 {
                return Err(PdbError::damaged("list of records", Some(stream), at.into()));
            }
            at += taken;
        }
        Ok(())
    }
}

/// The first of some records: its kind, what is in it, and the others.
pub(super) fn split_record(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (record, behind) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    let (kind, record) = record.split_first_chunk::<2>()?;
    Some((u16::from_le_bytes(*kind), record, behind))
}

/// By stream, its size, and where the numbers of its blocks are.
fn streams(directory: &[u8], block: u32) -> Option<Vec<(u32, usize)>> {
    let count = u32_at(directory, 0)? as usize;
    let sizes = directory.get(4..count.checked_mul(4)?.checked_add(4)?)?;
    let mut list = 4 + sizes.len();
    let streams = sizes.chunks_exact(4).map(|entry| {
        let size = u32_at(entry, 0).filter(|size| *size != ABSENT).unwrap_or(0);
        let at = list;
        list = list.saturating_add(4 * size.div_ceil(block) as usize);
        (size, at)
    });
    let streams: Vec<_> = streams.collect();
    (list <= directory.len()).then_some(streams)
}
