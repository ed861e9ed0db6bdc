//! Small numbers as runs of one number and, where they differ, packed bits ("RLE/bit-packing hybrid" of `Encodings.md`).

use super::bits;
use crate::leb128;

/// Numbers that are packed together.
const GROUP: usize = 8;
/// What is packed under one header at most.
const PACKED_AT_ONCE: usize = 512 * GROUP;

/// Numbers on their way in, of so many bits each.
pub(super) struct Hybrid<'a> {
    out: &'a mut Vec<u8>,
    width: u32,
    /// What is to be packed; whole groups before a run of one number.
    packed: Vec<u32>,
}

impl<'a> Hybrid<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, width: u32) -> Self {
        Self { out, width, packed: Vec::new() }
    }

    /// Adds a number so many times.
    pub(super) fn push(&mut self, number: u32, mut count: u32) {
        let partial = self.packed.len() % GROUP;
        if partial > 0 || (count as usize) < GROUP {
            let taken = count.min((GROUP - partial) as u32);
            self.packed.extend((0..taken).map(|_| number));
            count -= taken;
        }
        if self.packed.len() >= PACKED_AT_ONCE {
            self.end_packed();
        }
        if count == 0 {
            return;
        }
        if (count as usize) < GROUP {
            self.packed.extend((0..count).map(|_| number));
            return;
        }
        self.end_packed();
        leb128::write(self.out, u64::from(count) << 1);
        let bytes = self.width.div_ceil(8) as usize;
        self.out.extend_from_slice(&number.to_le_bytes()[..bytes]);
    }

    fn end_packed(&mut self) {
        if self.packed.is_empty() {
            return;
        }
        let groups = self.packed.len().div_ceil(GROUP);
        self.packed.resize(groups * GROUP, 0);
        leb128::write(self.out, (groups as u64) << 1 | 1);
        bits::pack(self.out, self.packed.drain(..).map(u64::from), self.width);
    }

    /// Ends them; a last group that is not full has zeros behind it, which a reader that knows the count leaves out.
    pub(super) fn finish(mut self) {
        self.end_packed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(width: u32, runs: &[(u32, u32)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut hybrid = Hybrid::new(&mut out, width);
        for &(number, count) in runs {
            hybrid.push(number, count);
        }
        hybrid.finish();
        out
    }

    #[test]
    fn runs_are_told_by_their_length() {
        assert_eq!(encoded(9, &[(0x104, 100)]), [200, 1, 0x04, 0x01]);
        assert_eq!(encoded(1, &[]), [] as [u8; 0]);
    }

    #[test]
    fn short_runs_are_packed_in_eights() {
        // 0 to 7 of the specification's example.
        let numbers: Vec<_> = (0..8).map(|number| (number, 1)).collect();
        assert_eq!(encoded(3, &numbers), [1 << 1 | 1, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // Two ones complete the group of six zeros, the other eight are a run; the last group is not full.
        let expected = [1 << 1 | 1, 0b1100_0000, 8 << 1, 1, 1 << 1 | 1, 0b0000_0010];
        assert_eq!(encoded(1, &[(0, 6), (1, 10), (0, 1), (1, 1)]), expected);
    }
}
