//! Unpacks the buffers of files that ETW has compressed: Plain LZ77 of [MS-XCA], `COMPRESSION_FORMAT_XPRESS`.
//!
//! A word of 32 flags, the highest first, stands before what it tells of: 0 is a byte as it is, 1 is a u16 with the
//! distance less 1 in its upper 13 bits and the length less 3 in its lower three. A length of 7 goes on in four bits (two
//! lengths share a byte: the lower half, then the upper), 15 there in a byte, 255 there in a u16 that is the whole, and 0
//! there in a u32. A flag of 1 behind which there is nothing is the end.

use super::bytes::{u16_at, u32_at};

/// Replaces what is in `out` by what `packed` holds, up to `most` bytes. Where `packed` is damaged or cut, what came before
/// that is there: compare the length.
pub(super) fn unpack(packed: &[u8], most: usize, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(most.min(packed.len().saturating_mul(4)));
    Unpacker { packed, at: 0, half: None, most }.run(out);
}

struct Unpacker<'a> {
    packed: &'a [u8],
    at: usize,
    /// Upper half of the last byte with lengths of four bits, where it is not used yet.
    half: Option<u8>,
    most: usize,
}

impl Unpacker<'_> {
    /// None at the end of either side, and at what can't be.
    fn run(&mut self, out: &mut Vec<u8>) -> Option<()> {
        loop {
            let mut flags = u32_at(self.packed, self.at)?;
            self.at += 4;
            let mut left: u32 = 32;
            while left > 0 {
                // Bytes as they are come in rows.
                let plain = flags.leading_zeros().min(left);
                let bytes = self.packed.get(self.at..)?;
                let plain_bytes = (plain as usize).min(bytes.len()).min(self.most - out.len());
                out.extend_from_slice(&bytes[..plain_bytes]);
                self.at += plain_bytes;
                if plain_bytes < plain as usize || out.len() == self.most {
                    return None;
                }
                left -= plain;
                if left == 0 {
                    break;
                }
                let (distance, length) = self.copy()?;
                repeat(out, distance, length.min(self.most - out.len()))?;
                left -= 1;
                // Shifting by all bits is none.
                flags = flags.checked_shl(plain + 1).unwrap_or(0);
            }
        }
    }

    /// How far back, and how long.
    fn copy(&mut self) -> Option<(usize, usize)> {
        let word = u16_at(self.packed, self.at)?;
        self.at += 2;
        let mut length = usize::from(word & 7);
        if length == 7 {
            length += usize::from(self.four_bits()?);
        }
        if length == 7 + 15 {
            length = self.long()?;
        }
        Some((usize::from(word >> 3) + 1, length + 3))
    }

    fn four_bits(&mut self) -> Option<u8> {
        if let Some(half) = self.half.take() {
            return Some(half);
        }
        let byte = *self.packed.get(self.at)?;
        self.at += 1;
        self.half = Some(byte >> 4);
        Some(byte & 15)
    }

    fn long(&mut self) -> Option<usize> {
        let byte = *self.packed.get(self.at)?;
        self.at += 1;
        if byte < 255 {
            return Some(usize::from(byte) + 7 + 15);
        }
        let word = u16_at(self.packed, self.at)?;
        self.at += 2;
        if word != 0 {
            // What it says is the whole: it can't be less than what led here.
            return Some(usize::from(word)).filter(|length| *length >= 7 + 15);
        }
        let length = u32_at(self.packed, self.at)?;
        self.at += 4;
        usize::try_from(length).ok().filter(|length| *length >= 7 + 15)
    }
}

/// Appends `length` bytes that begin `distance` before the end; they may reach into themselves.
fn repeat(out: &mut Vec<u8>, distance: usize, length: usize) -> Option<()> {
    let from = out.len().checked_sub(distance)?;
    let mut left = length;
    while left > 0 {
        // What was appended doubles what can be copied at once.
        let row = left.min(out.len() - from);
        out.extend_from_within(from..from + row);
        left -= row;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::unpack;

    fn unpacked(packed: &[u8], most: usize) -> Vec<u8> {
        let mut out = b"old".to_vec();
        unpack(packed, most, &mut out);
        out
    }

    /// The examples of [MS-XCA], "Plain LZ77".
    #[test]
    fn published_examples() {
        let alphabet = b"abcdefghijklmnopqrstuvwxyz";
        let packed = [&[0x3f, 0, 0, 0], &alphabet[..]].concat();
        assert_eq!(unpacked(&packed, 26), alphabet);
        // One that does not know how long it is ends there too.
        assert_eq!(unpacked(&packed, 1000), alphabet);

        let packed = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(unpacked(&packed, 300), b"abc".repeat(100));
        assert_eq!(unpacked(&packed, 200), b"abc".repeat(67)[..200]);
    }

    /// Lengths of every width, by what the specification says of them.
    #[test]
    fn lengths_of_every_width() {
        // Two lengths share the byte 0x21: 7 + 1 + 3 and 7 + 2 + 3; the byte between belongs to the next.
        let packed = [0, 0, 0, 0b0111_0000, b'a', 7, 0, 0x21, 7, 0, 0, 0];
        assert_eq!(unpacked(&packed, 1 + 11 + 12), [b'a'; 24]);
        // 15, then a byte: 7 + 15 + 9 + 3.
        let packed = [0, 0, 0, 0b0100_0000, b'a', 7, 0, 0x0f, 9];
        assert_eq!(unpacked(&packed, 35), [b'a'; 35]);
        // 15, 255, 0, then four bytes: 70,000 + 3.
        let packed = [0, 0, 0, 0b0100_0000, b'a', 7, 0, 0x0f, 255, 0, 0, 0x70, 0x11, 1, 0];
        assert_eq!(unpacked(&packed, 70_004), vec![b'a'; 70_004]);
    }

    #[test]
    fn what_is_damaged_ends_there() {
        // From before the beginning.
        assert_eq!(unpacked(&[0, 0, 0, 0b0110_0000, b'a', 8, 0, 9, 9], 100), b"a");
        // A length that is less than what led to it.
        assert_eq!(unpacked(&[0, 0, 0, 0b0100_0000, b'a', 7, 0, 0x0f, 255, 3, 0], 100), b"a");
        let whole = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
        for cut in 0..whole.len() {
            assert!(unpacked(&whole[..cut], 300).len() <= 3);
        }
        // 4 GiB are not made.
        let packed = [0, 0, 0, 0b0100_0000, b'a', 7, 0, 0x0f, 255, 0, 0, 255, 255, 255, 255];
        assert_eq!(unpacked(&packed, 100).len(), 100);
    }
}
