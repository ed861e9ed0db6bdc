//! Stretches of the process's memory that a dump has in, bytes by address out; of a thread its stack.

use std::cell::Cell;
use std::ops::Range;

use unwinder::{StackMemory, StackReadError};

use super::source::Places;

/// Stretches that are taken for one stack: they lie side by side, and Windows has three of a stack.
const MOST_OF_STACK: usize = 1024;

/// Stretches that a part of an image may be in. Windows has one for each way in which pages may be accessed.
const MOST_PIECES: usize = 1024;

/// Memory, and where it is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
}

impl Stretch {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// What of a process's memory is in the file.
pub(super) struct Memory<'a> {
    source: &'a dyn Places,
    /// By where they begin; none overlaps another.
    stretches: Vec<Stretch>,
    reads: Cell<u64>,
}

impl<'a> Memory<'a> {
    /// Of stretches in any order. What two have is the first one's; what is beyond the file's end is none's.
    pub(super) fn new(source: &'a dyn Places, mut all: Vec<Stretch>) -> Self {
        all.sort_by_key(|stretch| stretch.start);
        let (mut end, mut stretches) = (0, Vec::with_capacity(all.len()));
        for Stretch { start, size, offset } in all {
            let size = size.min(source.length().saturating_sub(offset));
            let known = end.max(start) - start;
            if known >= size {
                continue;
            }
            let stretch = Stretch { start: start + known, size: size - known, offset: offset + known };
            end = stretch.end();
            stretches.push(stretch);
        }
        Self { source, stretches, reads: Cell::new(0) }
    }

    /// Where the stretch with an address is in the list.
    fn position(&self, address: u64) -> Option<usize> {
        let behind = self.stretches.partition_point(|stretch| stretch.start <= address);
        let at = behind.checked_sub(1)?;
        (address < self.stretches.get(at)?.end()).then_some(at)
    }

    /// Fills `buffer` with what is at an address; says how many bytes of it there are in one piece.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.reads.set(self.reads.get() + 1);
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = address.wrapping_add(filled as u64);
            let Some(stretch) = self.position(at).and_then(|at| self.stretches.get(at)) else { break };
            let within = at - stretch.start;
            let count =
                usize::try_from(stretch.size - within).map_or(rest.len(), |count| count.min(rest.len()));
            let Some(rest) = rest.get_mut(..count) else { break };
            if self.source.fill(stretch.offset + within, rest).is_none() {
                break;
            }
            filled += count;
        }
        filled
    }

    /// What was read so far, in words, as many as a block of the file takes as long as.
    pub(super) fn work(&self) -> u64 {
        const WORDS_PER_BLOCK: u64 = 64;
        self.reads.get() + WORDS_PER_BLOCK * self.source.blocks_read()
    }

    /// Whether all of a range is there, in no more than [`MOST_PIECES`].
    pub(super) fn has(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        let Some(first) = self.position(at) else { return range.is_empty() };
        for stretch in self.stretches.get(first..).unwrap_or_default().iter().take(MOST_PIECES) {
            if at >= range.end || stretch.start > at {
                break;
            }
            at = stretch.end();
        }
        at >= range.end
    }

    /// The stack that a stack pointer points into.
    pub(super) fn stack(&self, pointer: u64) -> Stack<'_> {
        let first = self.position(pointer);
        let behind = first.and_then(|first| self.stretches.get(first..)).unwrap_or_default();
        let mut end = pointer;
        for (stretch, index) in behind.iter().take(MOST_OF_STACK).zip(0..) {
            if index > 0 && stretch.start != end {
                break;
            }
            end = stretch.end();
        }
        Stack { memory: self, range: pointer..end }
    }
}

/// A thread's stack, from its pointer on.
pub(super) struct Stack<'a> {
    memory: &'a Memory<'a>,
    range: Range<u64>,
}

impl Stack<'_> {
    fn word<const N: usize>(&self, address: u64) -> Result<[u8; N], StackReadError> {
        let mut word = [0; N];
        if address < self.range.start {
            return Err(StackReadError::Below);
        }
        let is_within = address.checked_add(N as u64).is_some_and(|end| end <= self.range.end);
        if !is_within {
            return Err(StackReadError::Beyond);
        }
        if self.memory.read(address, &mut word) < N { Err(StackReadError::Absent) } else { Ok(word) }
    }
}

impl StackMemory for Stack<'_> {
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        self.word(address).map(u64::from_le_bytes)
    }

    fn read_u32(&self, address: u64) -> Result<u32, StackReadError> {
        self.word(address).map(u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::minidump::source::Source;

    #[test]
    fn memory_is_what_the_stretches_have_together() {
        let mut input = Cursor::new((0..=255).collect::<Vec<u8>>());
        let source = Source::new(&mut input).unwrap();
        let stretch = |start, size, offset| Stretch { start, size, offset };
        // The second has 4 bytes of the first's, the third is in it, the fourth goes on beyond the file's end, the last is nowhere.
        let all =
            vec![stretch(108, 8, 50), stretch(100, 12, 0), stretch(109, 2, 90), stretch(300, 1 << 40, 250)];
        let memory = Memory::new(&source, all.into_iter().chain([stretch(1000, 8, 1 << 50)]).collect());
        let read = |address, count| {
            let mut buffer = vec![0; count];
            let read = memory.read(address, &mut buffer);
            buffer.truncate(read);
            buffer
        };
        assert_eq!(read(110, 10), [10, 11, 54, 55, 56, 57]);
        assert_eq!(read(302, 9), [252, 253, 254, 255]);
        for (address, count) in [(99, 4), (116, 1), (1000, 8), (u64::MAX, 4)] {
            assert!(read(address, count).is_empty(), "{address}");
        }
        assert!(memory.has(&(100..116)) && memory.has(&(5..5)) && !memory.has(&(100..117)));
        assert!(!memory.has(&(99..101)) && !memory.has(&(200..201)));

        let stack = memory.stack(104);
        assert_eq!(stack.read_u64(108), Ok(u64::from_le_bytes([8, 9, 10, 11, 54, 55, 56, 57])));
        assert_eq!(stack.read_u32(112), Ok(u32::from_le_bytes([54, 55, 56, 57])));
        assert_eq!(stack.read_u64(109), Err(StackReadError::Beyond));
        assert_eq!(stack.read_u64(103), Err(StackReadError::Below));
        assert_eq!(stack.read_u64(u64::MAX), Err(StackReadError::Beyond));
        assert_eq!(memory.stack(200).read_u32(200), Err(StackReadError::Beyond));
    }
}
