//! The stack's bytes: what the walk asks ([`StackMemory`]) and the usual answer, a copy of a part of the stack
//! ([`CopiedStack`]).

use thiserror::Error;

use crate::StopReason;

/// Why a word of stack memory can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StackReadError {
    /// The address lies below the copy.
    #[error("the address lies below the copied stack")]
    Below,
    /// The address lies beyond the end of the copy: a larger copy would have it, if the stack goes on.
    #[error("the address lies beyond the end of the copied stack; copy more of it")]
    Beyond,
    /// The address lies on a page that was not resident when the stack was copied.
    #[error("the address lies on a page that was absent when the stack was copied")]
    Absent,
}

impl From<StackReadError> for StopReason {
    fn from(error: StackReadError) -> Self {
        match error {
            StackReadError::Beyond => StopReason::StackExhausted,
            StackReadError::Below | StackReadError::Absent => StopReason::Unreadable,
        }
    }
}

/// Memory that holds the stack.
pub trait StackMemory {
    /// The little-endian word at `address`, which need not be aligned.
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError>;

    /// The little-endian word of 4 bytes at `address`, which need not be aligned: what stacks of 32-bit code are made of.
    fn read_u32(&self, address: u64) -> Result<u32, StackReadError> {
        if let Ok(word) = self.read_u64(address) {
            return Ok(word as u32);
        }
        // Where readable memory ends.
        self.read_u64(address.wrapping_sub(4)).map(|word| (word >> 32) as u32)
    }
}

const PAGE_SHIFT: u32 = 12;

/// Bytes copied from a stack, from `base` (usually the stack pointer) upwards; some 4 KiB pages may be absent.
///
/// ```text
///  base (any alignment)                                     base + bytes.len()
///   |  piece 0  |   piece 1   |   piece 2   | ...  |  last  |
///        bit 0      bit 1          bit 2               of `absent`; pieces end at page boundaries
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CopiedStack<'a> {
    base: u64,
    bytes: &'a [u8],
    absent: u64,
}

impl<'a> CopiedStack<'a> {
    /// `bytes` were copied from address `base` upwards. Bit `i` of `absent` says that the `i`-th page-aligned piece,
    /// counted from the page of `base`, could not be read (its bytes are then ignored). Pieces from the 64th on
    /// count as present.
    pub fn new(base: u64, bytes: &'a [u8], absent: u64) -> Self {
        CopiedStack { base, bytes, absent }
    }

    fn is_absent(&self, address: u64) -> bool {
        let piece = (address >> PAGE_SHIFT).wrapping_sub(self.base >> PAGE_SHIFT);
        piece < 64 && self.absent >> piece & 1 != 0
    }

    #[inline]
    fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], StackReadError> {
        let offset = address.wrapping_sub(self.base);
        let word = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..)?.first_chunk::<N>())
            .ok_or(if address < self.base { StackReadError::Below } else { StackReadError::Beyond })?;
        let last = address.wrapping_add(N as u64 - 1);
        if self.absent != 0 && (self.is_absent(address) || self.is_absent(last)) {
            return Err(StackReadError::Absent);
        }
        Ok(*word)
    }
}

impl StackMemory for CopiedStack<'_> {
    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        self.read(address).map(u64::from_le_bytes)
    }

    #[inline]
    fn read_u32(&self, address: u64) -> Result<u32, StackReadError> {
        self.read(address).map(u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{CopiedStack, StackMemory, StackReadError};

    #[test]
    fn reads_name_the_side_on_which_they_fail() {
        let bytes: Vec<u8> = (0..32).collect();
        let stack = CopiedStack::new(0x1000, &bytes, 0);
        assert_eq!(stack.read_u64(0x1000), Ok(0x0706_0504_0302_0100));
        assert_eq!(stack.read_u64(0x1018), Ok(0x1f1e_1d1c_1b1a_1918));
        assert_eq!(stack.read_u64(0x1019), Err(StackReadError::Beyond));
        assert_eq!(stack.read_u64(u64::MAX), Err(StackReadError::Beyond));
        assert_eq!(stack.read_u64(0xfff), Err(StackReadError::Below));
        assert_eq!(stack.read_u32(0x101c), Ok(0x1f1e_1d1c));
        assert_eq!(stack.read_u32(0x101d), Err(StackReadError::Beyond));
        assert_eq!(stack.read_u32(0xffe), Err(StackReadError::Below));
    }

    /// Memory that is read by longer words alone.
    struct LongWords<'a>(CopiedStack<'a>);

    impl StackMemory for LongWords<'_> {
        fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
            self.0.read_u64(address)
        }
    }

    #[test]
    fn short_words_are_parts_of_longer_ones() {
        let bytes: Vec<u8> = (0..32).collect();
        let stack = CopiedStack::new(0x1000, &bytes, 0);
        for address in 0x1000..0x1020 {
            assert_eq!(LongWords(stack).read_u32(address).ok(), stack.read_u32(address).ok(), "{address:#x}");
        }
    }

    #[test]
    fn absent_pages_are_counted_from_the_page_of_the_base() {
        let bytes = vec![7; 0x3000];
        let stack = CopiedStack::new(0x1800, &bytes, 0b10);
        assert!(stack.read_u64(0x1ff8).is_ok());
        assert_eq!(stack.read_u64(0x1ff9), Err(StackReadError::Absent));
        assert_eq!(stack.read_u64(0x2000), Err(StackReadError::Absent));
        assert_eq!(stack.read_u64(0x2fff), Err(StackReadError::Absent));
        assert!(stack.read_u64(0x3000).is_ok());
    }
}
