//! Blocks in, bytes out: a block is its size in 24 bits, its kind in 8, and what it holds.

use std::io::{self, Write};

/// Kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The last one, which is empty.
    End = 0,
    /// The first one: the trace as a whole.
    Trace = 1,
    Event = 2,
    /// Types of events.
    Metadata = 3,
    /// Where numbers of stacks and labels begin anew.
    SequencePoint = 4,
    Stack = 5,
    Thread = 6,
    LabelList = 8,
}

/// `Nettrace`, four bytes that tell it from older versions, and the version.
const HEADER: [u8; 20] = *b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0";

/// How large a block may be.
const LARGEST: usize = (1 << 24) - 1;

/// A file that is being written.
pub(super) struct Blocks<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Blocks<'a> {
    /// Begins a file.
    pub(super) fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        Ok(Self { out })
    }

    /// Writes a block.
    pub(super) fn write(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        if content.len() > LARGEST {
            let message =
                format!("a block of nettrace would have {} bytes; it has room for {LARGEST}", content.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let header = content.len() as u32 | (kind as u32) << 24;
        self.out.write_all(&header.to_le_bytes())?;
        self.out.write_all(content)
    }

    /// Ends the file.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.write(Kind::End, &[])?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_too_large_is_refused() {
        let mut out = Vec::new();
        let mut blocks = Blocks::begin(&mut out).unwrap();
        blocks.write(Kind::Stack, &vec![0; LARGEST]).unwrap();
        assert!(blocks.write(Kind::Stack, &vec![0; LARGEST + 1]).is_err());
        assert_eq!(out[20..24], [255, 255, 255, 5]);
        assert_eq!(out.len(), 24 + LARGEST);
    }
}
