//! Unpacks the buffers of files that ETW has compressed: Plain LZ77 of [MS-XCA], `COMPRESSION_FORMAT_XPRESS`.
//!
//! A word of 32 flags, the highest first, stands before what it tells of: 0 is a byte as it is, 1 is a u16 with the
//! distance less 1 in its upper 13 bits and the length less 3 in its lower three. A length of 7 goes on in four bits (two
//! lengths share a byte: the lower half, then the upper), 15 there in a byte, 255 there in a u16 that is the whole, and 0
//! there in a u32. A flag of 1 behind which there is nothing is the end.

use super::bytes::{u16_at, u32_at};

/// Bytes that are copied at once: a row of bytes as they are at most, and most of what is repeated. Where fewer are meant, the
/// others are written over later.
const ROW: usize = 32;

/// Writes what `packed` holds to the beginning of `out`, up to `most` bytes, and tells how many these are; what is behind them
/// means nothing. Where `packed` is damaged or cut, what came before that is there: compare the length.
pub(super) fn unpack(packed: &[u8], most: usize, out: &mut Vec<u8>) -> usize {
    let mut unpacker = Unpacker { packed, at: 0, half: None, out, length: 0, most };
    unpacker.run();
    unpacker.length
}

struct Unpacker<'a> {
    packed: &'a [u8],
    at: usize,
    /// Upper half of the last byte with lengths of four bits, where it is not used yet.
    half: Option<u8>,
    out: &'a mut Vec<u8>,
    /// Bytes of `out` that are unpacked.
    length: usize,
    most: usize,
}

impl Unpacker<'_> {
    /// None at the end of either side, and at what can't be.
    fn run(&mut self) -> Option<()> {
        loop {
            let mut flags = u32_at(self.packed, self.at)?;
            self.at += 4;
            let mut left: u32 = 32;
            while left > 0 {
                // Bytes as they are come in rows.
                let plain = flags.leading_zeros().min(left);
                self.plain(plain as usize)?;
                left -= plain;
                if left == 0 {
                    break;
                }
                let (distance, length) = self.copy()?;
                self.repeat(distance, length)?;
                left -= 1;
                // Shifting by all bits is none.
                flags = flags.checked_shl(plain + 1).unwrap_or(0);
            }
        }
    }

    /// Appends so many bytes as they are, at most [`ROW`].
    fn plain(&mut self, bytes: usize) -> Option<()> {
        let rest = self.packed.get(self.at..)?;
        let there = bytes.min(rest.len()).min(self.most - self.length);
        self.make_room(ROW);
        let (length, out) = (self.length, &mut *self.out);
        match (rest.first_chunk::<ROW>(), out.get_mut(length..).and_then(<[u8]>::first_chunk_mut)) {
            (Some(row), Some(place)) => *place = *row,
            _ => out[length..length + there].copy_from_slice(&rest[..there]),
        }
        self.at += there;
        self.length += there;
        (there == bytes && self.length < self.most).then_some(())
    }

    /// Appends `length` bytes that begin `distance` before the end; they may reach into themselves.
    fn repeat(&mut self, distance: usize, length: usize) -> Option<()> {
        let from = self.length.checked_sub(distance)?;
        let length = length.min(self.most - self.length);
        self.make_room(length.max(ROW));
        let (at, out) = (self.length, &mut *self.out);
        if length <= ROW && length <= distance {
            let row: [u8; ROW] = *out.get(from..)?.first_chunk()?;
            *out.get_mut(at..)?.first_chunk_mut()? = row;
        } else {
            let mut copied = 0;
            while copied < length {
                // What was appended doubles what can be copied at once.
                let row = (length - copied).min(distance + copied);
                out.copy_within(from..from + row, at + copied);
                copied += row;
            }
        }
        self.length += length;
        Some(())
    }

    /// Has room for so many bytes behind those that are unpacked. What is packed can say what it will: it grows with what there is.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.length + bytes;
        if self.out.len() < needed {
            let likely = self.packed.len().saturating_mul(4).max(2 * needed);
            self.out.resize(likely.min(self.most + ROW).max(needed), 0);
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

#[cfg(test)]
mod tests {
    use super::unpack;

    fn unpacked(packed: &[u8], most: usize) -> Vec<u8> {
        let mut out = b"old".to_vec();
        let length = unpack(packed, most, &mut out);
        out.truncate(length);
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

    /// What is repeated in one row, in several, and what reaches into itself.
    #[test]
    fn repeats_of_all_distances() {
        for (distance, length) in
            (1..32_u16).flat_map(|distance| (3..100).map(move |length| (distance, length)))
        {
            let mut packed = (u32::MAX >> distance).to_le_bytes().to_vec();
            packed.extend(0..distance as u8);
            packed.extend(((distance - 1) << 3 | (length - 3).min(7)).to_le_bytes());
            if let Some(more) = length.checked_sub(3 + 7) {
                packed.push(more.min(15) as u8);
                packed.extend(more.checked_sub(15).map(|more| more as u8));
            }
            let expected: Vec<u8> = (0..distance + length).map(|at| (at % distance) as u8).collect();
            assert_eq!(unpacked(&packed, 1000), expected, "{length} bytes {distance} before");
        }
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
