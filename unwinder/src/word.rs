//! The size of an architecture's words: its addresses, registers and stack slots. All are handled as 64 bits, of which a
//! smaller word leaves the upper ones zero; what is computed with them wraps where the word ends.

use crate::{StackMemory, StackReadError, StopReason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Four,
    Eight,
}

impl Word {
    #[inline]
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Word::Four => 4,
            Word::Eight => 8,
        }
    }

    pub(crate) const fn bits(self) -> u32 {
        match self {
            Word::Four => 32,
            Word::Eight => 64,
        }
    }

    /// What a word of this size has of a sum or a difference.
    #[inline]
    pub(crate) const fn wrap(self, value: u64) -> u64 {
        match self {
            Word::Four => value & 0xffff_ffff,
            Word::Eight => value,
        }
    }

    /// `address` with `offset` added.
    #[inline]
    pub(crate) const fn offset(self, address: u64, offset: i64) -> u64 {
        self.wrap(address.wrapping_add_signed(offset))
    }

    /// The address `count` words above `address`, if there is one.
    #[inline]
    pub(crate) fn above(self, address: u64, count: u64) -> Option<u64> {
        address.checked_add(count.checked_mul(self.bytes())?).filter(|&above| self.wrap(above) == above)
    }

    /// The value of a signed word.
    pub(crate) const fn signed(self, value: u64) -> i64 {
        match self {
            Word::Four => value as i32 as i64,
            Word::Eight => value as i64,
        }
    }

    /// The word of the stack at `address`.
    #[inline]
    pub(crate) fn read<M: StackMemory>(self, stack: &M, address: u64) -> Result<u64, StackReadError> {
        match self {
            Word::Four => stack.read_u32(address).map(u64::from),
            Word::Eight => stack.read_u64(address),
        }
    }

    /// The word at `address`, where a register was saved. `None` if that is below the copied stack: in an epilogue, CFI
    /// still names the slot of a register that was popped a moment ago, and the register itself has its value again.
    #[inline]
    pub(crate) fn read_slot<M: StackMemory>(
        self,
        stack: &M,
        address: u64,
    ) -> Result<Option<u64>, StopReason> {
        match self.read(stack, address) {
            Ok(value) => Ok(Some(value)),
            Err(StackReadError::Below) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn addresses_end_where_their_words_do() {
        assert_eq!(Word::Four.offset(0xffff_fffc, 8), 4);
        assert_eq!(Word::Four.offset(4, -8), 0xffff_fffc);
        assert_eq!(Word::Eight.offset(4, -8), u64::MAX - 3);
        assert_eq!(Word::Four.above(0xffff_fff8, 1), Some(0xffff_fffc));
        assert_eq!(Word::Four.above(0xffff_fff8, 2), None);
        assert_eq!(Word::Eight.above(0xffff_fff8, 2), Some(0x1_0000_0008));
        assert_eq!(Word::Four.signed(0xffff_fffe), -2);
    }
}
