//! A block of events in, their headers and bytes out. Old files have types of events in such blocks, too.

use super::ReadError;
use super::cursor::Cursor;
use super::header::{self, Header};

type Result<T> = std::result::Result<T, ReadError>;

/// The events of a block.
pub(super) struct Blobs<'a> {
    block: Cursor<'a>,
    is_old: bool,
    is_compressed: bool,
    first_time: u64,
    last_time: u64,
    before: Header,
    size: usize,
    /// Events outside of the time that the block tells.
    pub(super) outside: u64,
}

impl<'a> Blobs<'a> {
    pub(super) fn of(mut block: Cursor<'a>, is_old: bool) -> Result<Self> {
        const HEADER: u16 = 20;
        const COMPRESSED: u16 = 1;
        let (start, size) = (block, block.len());
        let header_size = block.u16()?;
        let is_compressed = block.u16()? & COMPRESSED != 0;
        let (first_time, last_time) = (block.u64()?, block.u64()?);
        let rest =
            header_size.checked_sub(HEADER).ok_or_else(|| start.malformed("a short header of events"))?;
        block.bytes(rest.into())?;
        if block.is_empty() {
            return Err(start.malformed("a block of no events"));
        }
        let before = Header::default();
        Ok(Self { block, is_old, is_compressed, first_time, last_time, before, size, outside: 0 })
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Result<Option<(Header, Cursor<'a>)>> {
        if self.block.is_empty() {
            return Ok(None);
        }
        let header = if self.is_compressed {
            header::compressed(&mut self.block, &self.before, self.is_old)?
        } else {
            header::whole(&mut self.block, self.is_old)?
        };
        let payload = self.block.sized(header.payload as usize)?;
        if self.is_old && !self.is_compressed {
            let position = self.size - self.block.len();
            self.block.bytes(position.next_multiple_of(4) - position)?;
        }
        self.outside += u64::from(!(self.first_time..=self.last_time).contains(&header.time));
        self.before = header;
        Ok(Some((header, payload)))
    }
}
