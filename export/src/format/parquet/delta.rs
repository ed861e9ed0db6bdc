//! Integers as differences to the one before (`DELTA_BINARY_PACKED` of `Encodings.md`): blocks of 128, each with its smallest
//! difference, and by how much others are larger in four parts with so many bits each.

use std::mem;

use super::bits;
use crate::leb128;

const BLOCK: usize = 128;
const PARTS: usize = 4;

/// Integers on their way in.
#[derive(Debug, Default)]
pub(super) struct Delta {
    count: u64,
    first: i64,
    last: i64,
    differences: Vec<i64>,
    blocks: Vec<u8>,
}

impl Delta {
    /// Adds an integer.
    pub(super) fn push(&mut self, number: i64) {
        if self.count == 0 {
            self.first = number;
        } else {
            self.differences.push(number.wrapping_sub(self.last));
            if self.differences.len() == BLOCK {
                self.end_block();
            }
        }
        self.last = number;
        self.count += 1;
    }

    fn end_block(&mut self) {
        let Some(&least) = self.differences.iter().min() else { return };
        leb128::write(&mut self.blocks, leb128::zigzag(least));
        let above: Vec<u64> =
            self.differences.drain(..).map(|one| one.wrapping_sub(least).cast_unsigned()).collect();
        let part = |at: usize| above.chunks(BLOCK / PARTS).nth(at).unwrap_or_default();
        let widths: [u32; PARTS] =
            std::array::from_fn(|at| part(at).iter().map(|&one| bits::width(one)).max().unwrap_or(0));
        self.blocks.extend(widths.map(|width| width as u8));
        for (at, width) in widths.into_iter().enumerate() {
            let numbers = part(at);
            let padding = if numbers.is_empty() { 0 } else { BLOCK / PARTS - numbers.len() };
            bits::pack(&mut self.blocks, numbers.iter().copied().chain(vec![0; padding]), width);
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them; it is empty then.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.end_block();
        let mut out = Vec::with_capacity(self.blocks.len() + 32);
        for number in [BLOCK as u64, PARTS as u64, self.count, leb128::zigzag(self.first)] {
            leb128::write(&mut out, number);
        }
        out.extend_from_slice(&self.blocks);
        let mut blocks = mem::take(&mut self.blocks);
        blocks.clear();
        *self = Self { blocks, ..Self::default() };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
        let mut delta = Delta::default();
        numbers.into_iter().for_each(|number| delta.push(number));
        delta.take()
    }

    /// Example 1 of `Encodings.md`, with blocks of the length that is allowed: 128 in 4 parts, 5 numbers of which the first is 1
    /// (as zigzag 2), and the least difference 1 with nothing above it.
    #[test]
    fn equal_differences_take_no_bits() {
        assert_eq!(encoded(1..=5), [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }

    /// Example 2: above -2 (as zigzag 3) are 0, 0, 0, 3, 3, 3, 3 with two bits each, and zeros up to 32.
    #[test]
    fn differences_are_packed_above_the_least() {
        let expected = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        assert_eq!(encoded([7, 5, 3, 1, 2, 3, 4, 5]), expected);
    }

    #[test]
    fn what_was_taken_is_gone() {
        let mut delta = Delta::default();
        for number in [i64::MIN, i64::MAX, 0] {
            delta.push(number);
        }
        assert_eq!(delta.take()[..3], [128, 1, 4]);
        assert!(delta.is_empty());
        delta.push(3);
        assert_eq!(delta.take(), encoded([3]));
    }
}
