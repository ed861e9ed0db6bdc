//! A file in, its blocks out, each with its kind.
//!
//! From version 6 on a block has four bytes of size and kind before it. Before, blocks were objects of a general serializer
//! (`NetTraceFormat_v5.md`): tags, the version and name of a type, and bytes that begin where the position in the file
//! can be divided by 4.

use std::io::{self, Read};

use super::ReadError;

type Result<T> = std::result::Result<T, ReadError>;

/// Kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    End,
    Trace,
    Events,
    Types,
    SequencePoint,
    Stacks,
    Threads,
    RemovedThreads,
    Labels,
    /// Of a later version.
    Other,
}

/// A file's blocks.
pub(super) struct Framing<R> {
    input: R,
    position: u64,
    content_start: u64,
    is_old: bool,
}

/// The largest block of an old file; newer ones have no room for larger ones.
const LARGEST: u32 = 64 << 20;

/// The size of the old description of the trace.
const OLD_TRACE: u32 = 48;

const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;

impl<R: Read> Framing<R> {
    /// Reads a file's first bytes.
    pub(super) fn begin(input: R) -> Result<Self> {
        let mut this = Self { input, position: 0, content_start: 0, is_old: false };
        if this.array::<8>()? != *b"Nettrace" {
            return Err(malformed("other first bytes", 0));
        }
        // The length of a name, or nothing.
        match this.u32()? {
            0 => {
                let (major, _minor) = (this.u32()?, this.u32()?);
                if major != 6 {
                    return Err(ReadError::Version(major));
                }
            }
            20 if this.array::<20>()? == *b"!FastSerialization.1" => this.is_old = true,
            _ => return Err(malformed("other first bytes", 0)),
        }
        Ok(this)
    }

    /// Whether the file is of a version before 6.
    pub(super) const fn is_old(&self) -> bool {
        self.is_old
    }

    /// Where the content of the block that was read last begins.
    pub(super) const fn content_start(&self) -> u64 {
        self.content_start
    }

    /// Reads the next block; room for it is made as its bytes come.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<Kind> {
        block.clear();
        if self.is_old {
            return self.next_object(block);
        }
        let header = self.u32()?;
        self.content(header & 0xff_ffff, block)?;
        Ok(match header >> 24 {
            0 => Kind::End,
            1 => Kind::Trace,
            2 => Kind::Events,
            3 => Kind::Types,
            4 => Kind::SequencePoint,
            5 => Kind::Stacks,
            6 => Kind::Threads,
            7 => Kind::RemovedThreads,
            8 => Kind::Labels,
            _ => Kind::Other,
        })
    }

    fn next_object(&mut self, block: &mut Vec<u8>) -> Result<Kind> {
        const TRACE: &[u8] = b"Trace";
        const LONGEST_NAME: u32 = 64;
        let tags = malformed("other tags than those of an object", self.position);
        match self.array()? {
            [NULL] => return Ok(Kind::End),
            [BEGIN] => {}
            _ => return Err(tags),
        }
        if self.array()? != [BEGIN, NULL] {
            return Err(tags);
        }
        let (_version, least_version) = (self.u32()?, self.u32()?);
        let length = self.u32()?;
        if length > LONGEST_NAME {
            return Err(ReadError::TooLarge {
                what: "the name of a type of object",
                position: self.position,
            });
        }
        let mut name = Vec::new();
        self.content(length, &mut name)?;
        if self.array()? != [END] {
            return Err(tags);
        }
        if name == TRACE {
            if least_version > 5 {
                return Err(ReadError::Version(least_version));
            }
            self.content(OLD_TRACE, block)?;
        } else {
            let size = self.u32()?;
            if size > LARGEST {
                return Err(ReadError::TooLarge { what: "a block", position: self.position });
            }
            let padding = self.position.next_multiple_of(4) - self.position;
            let mut zeros = Vec::new();
            self.content(padding as u32, &mut zeros)?;
            if zeros.iter().any(|&zero| zero != 0) {
                return Err(malformed("padding that is not zero", self.position));
            }
            self.content(size, block)?;
        }
        if self.array()? != [END] {
            return Err(tags);
        }
        Ok(match name.as_slice() {
            TRACE => Kind::Trace,
            b"EventBlock" => Kind::Events,
            b"MetadataBlock" => Kind::Types,
            b"SPBlock" => Kind::SequencePoint,
            b"StackBlock" => Kind::Stacks,
            _ => Kind::Other,
        })
    }

    fn content(&mut self, size: u32, block: &mut Vec<u8>) -> Result<()> {
        self.content_start = self.position;
        let read = self.input.by_ref().take(size.into()).read_to_end(block)?;
        self.position += read as u64;
        if read == size as usize { Ok(()) } else { Err(self.cut(size as usize - read)) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let mut left = &mut bytes[..];
        while !left.is_empty() {
            match self.input.read(left) {
                Ok(0) => return Err(self.cut(left.len())),
                Ok(read) => {
                    self.position += read as u64;
                    left = left.get_mut(read..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes)
    }

    /// The file ends here, so many bytes before what it was read for.
    const fn cut(&self, missing: usize) -> ReadError {
        ReadError::Cut { position: self.position, missing: missing as u64 }
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

const fn malformed(what: &'static str, position: u64) -> ReadError {
    ReadError::Malformed { what, position }
}
