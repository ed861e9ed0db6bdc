//! Outer frames of a stack that is larger than its copy: user space has found where their words lie when it unwound earlier samples
//! of the thread, and the program copies them with each further one.

use bytemuck::{Pod, Zeroable};

/// Where the outer frames of a thread's stack lay.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct OuterPlaces {
    /// [`super::SampleHeader::stack_end`] of that stack: a thread with another one has another stack.
    pub stack_end: u64,
    /// The process.
    pub pid: u32,
    /// Zero.
    pub reserved: u32,
    /// Addresses of lines of [`OuterLines::LINE`] bytes, the outermost ones; where there are fewer, one of them again.
    pub lines: [u64; MOST_LINES],
}

/// Near the end of a record with [`super::SampleFlags::OUTER_LINES`], before the room for [`super::TrappedReturns`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct OuterLines {
    /// Addresses of the lines; 0 for one that was absent.
    pub lines: [u64; MOST_LINES],
    /// What lay there when the sample was taken.
    pub bytes: [[u8; LINE]; MOST_LINES],
}

/// As many as the outer frames take of a thread with one that is large: each one or two.
const MOST_LINES: usize = 16;

/// A cache line, so that a return address and the registers that are saved beside it are mostly in one.
const LINE: usize = 64;

impl OuterLines {
    /// Lines of a record at most.
    pub const MOST: usize = MOST_LINES;
    /// Bytes of a line, whose address is a multiple of that.
    pub const LINE: usize = LINE;
    /// Bytes in a record.
    pub const SIZE: usize = size_of::<Self>();

    /// The word of `N` bytes at an address, if it is in a line.
    #[inline]
    pub fn word<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let offset = address % LINE as u64;
        let start = address - offset;
        let line = self.lines.iter().position(|&line| line == start && line != 0)?;
        self.bytes[line].get(offset as usize..)?.first_chunk().copied()
    }

    /// The lines that are there, each once, with their addresses.
    pub fn present(&self) -> impl Iterator<Item = (u64, &[u8; LINE])> {
        let is_new = |at: usize| !self.lines[..at].contains(&self.lines[at]);
        let all = self.lines.iter().zip(&self.bytes).enumerate();
        all.filter(move |(at, (line, _))| **line != 0 && is_new(*at)).map(|(_, (line, bytes))| (*line, bytes))
    }
}

const _: () = {
    assert!(size_of::<OuterPlaces>() == 16 + MOST_LINES * 8);
    assert!(OuterLines::SIZE == MOST_LINES * (8 + LINE));
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_their_lines() {
        let mut lines = OuterLines::zeroed();
        (lines.lines[3], lines.bytes[3][8], lines.bytes[3][60]) = (0x1040, 7, 9);
        assert_eq!(lines.word(0x1048), Some(7_u64.to_le_bytes()));
        assert_eq!(lines.word(0x107c), Some(9_u32.to_le_bytes()));
        assert_eq!(lines.word::<8>(0x107c), None, "it goes on in the next line");
        assert_eq!(lines.word::<8>(0x1080), None);
        assert_eq!(lines.word::<8>(0), None, "a line that was absent");
    }
}
