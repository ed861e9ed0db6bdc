//! The file in, its bytes at any place out, through a few blocks that are held: of a dump with all memory of a process little is read.

use std::cell::RefCell;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use export::import::Input;

use super::error::DumpError;

/// Bytes of a block.
const BLOCK: u64 = 16 << 10;

/// Blocks that are held, each at a place of its own: 4 MiB.
const BLOCKS: u64 = 256;

/// Bytes of a file, at any place in it.
pub(super) trait Places {
    /// Bytes of the file.
    fn length(&self) -> u64;

    /// Fills `buffer` with what is at `offset`. None where the file ends before, or reading failed.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> Option<()>;

    /// Blocks of the file that were read, again and again if need be.
    fn blocks_read(&self) -> u64;
}

/// A file that is read here and there.
pub(super) struct Source<'a> {
    blocks: RefCell<Blocks<'a>>,
    length: u64,
}

struct Blocks<'a> {
    input: &'a mut dyn Input,
    /// By their number modulo [`BLOCKS`]; the last one of a file is shorter.
    held: Vec<Option<(u64, Box<[u8]>)>>,
    read: u64,
    failure: Option<io::Error>,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a mut dyn Input) -> io::Result<Self> {
        let length = input.seek(SeekFrom::End(0))?;
        let held = (0..BLOCKS).map(|_| None).collect();
        Ok(Self { blocks: RefCell::new(Blocks { input, held, read: 0, failure: None }), length })
    }

    /// So many bytes at `offset`, of what is called `what`. Nothing is allocated for what the file does not have.
    pub(super) fn bytes(&self, offset: u64, bytes: u64, what: &'static str) -> Result<Vec<u8>, DumpError> {
        let short = || DumpError::Short { what, at: offset, bytes };
        let end = offset.checked_add(bytes).ok_or_else(short)?;
        if let Some(missing) = end.checked_sub(self.length).filter(|missing| *missing > 0) {
            return Err(DumpError::Cut { what, at: offset, bytes, missing });
        }
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| short())?];
        match self.fill(offset, &mut read) {
            Some(()) => Ok(read),
            None => Err(self.failure().map_or_else(short, DumpError::Io)),
        }
    }

    /// Why reading failed, if it did since this was last asked for.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.blocks.borrow_mut().failure.take()
    }
}

impl Places for Source<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    /// [`Source::failure`] tells why reading failed.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(buffer.len() as u64)?;
        if end > self.length {
            return None;
        }
        let mut blocks = self.blocks.borrow_mut();
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let block = blocks.block(at / BLOCK)?.get((at % BLOCK) as usize..)?;
            let count = block.len().min(rest.len());
            let (filled, behind) = rest.split_at_mut_checked(count).filter(|_| count > 0)?;
            filled.copy_from_slice(block.get(..count)?);
            (at, rest) = (at + count as u64, behind);
        }
        Some(())
    }

    fn blocks_read(&self) -> u64 {
        self.blocks.borrow().read
    }
}

impl Blocks<'_> {
    fn block(&mut self, number: u64) -> Option<&[u8]> {
        let Self { input, held, read: count, failure } = self;
        let place = held.get_mut((number % BLOCKS) as usize)?;
        if place.as_ref().is_none_or(|(held, _)| *held != number) {
            *count += 1;
            let mut bytes = Vec::with_capacity(BLOCK as usize);
            let read = input
                .seek(SeekFrom::Start(number * BLOCK))
                .and_then(|_| input.take(BLOCK).read_to_end(&mut bytes));
            if let Err(error) = read {
                *failure = Some(error);
                return None;
            }
            *place = Some((number, bytes.into()));
        }
        place.as_ref().map(|(_, bytes)| &**bytes)
    }
}

/// A number of a structure, lowest byte first; none where the structure is shorter.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The same of 4 bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The same of 8 bytes.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
