//! Numbers of variable length: 7 bits in each byte, the lowest first, and the 8th says that there are more (unsigned LEB128, DWARF 5
//! section 7.6; protobuf and nettrace have the same). Signed ones are turned into those by zigzag: 0, -1, 1, -2 are 0, 1, 2, 3.

/// The most bytes of a number of 64 bits.
const LONGEST: usize = 10;

/// The bytes of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    bytes: [u8; LONGEST],
    length: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The bytes of a number.
pub(crate) fn bytes(mut number: u64) -> Bytes {
    let mut bytes = [0; LONGEST];
    let mut length = 0;
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        bytes[length] = if number == 0 { low } else { low | 0x80 };
        length += 1;
        if number == 0 {
            return Bytes { bytes, length };
        }
    }
}

/// Appends a number.
pub(crate) fn write(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(bytes(number).as_ref());
}

/// What a signed number is written as: those near 0 are short, whatever their sign.
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The signed number that was written as this one.
pub(crate) fn from_zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Why bytes are no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// They end before it does.
    Short,
    /// It has more than 64 bits.
    TooLarge,
}

/// The number that bytes begin with, and what is behind it.
pub(crate) fn read(bytes: &[u8]) -> Result<(u64, &[u8]), NoNumber> {
    let mut number = 0;
    for (index, &byte) in bytes.iter().take(LONGEST).enumerate() {
        let (bits, shift) = (u64::from(byte & 0x7f), index * 7);
        if bits << shift >> shift != bits {
            return Err(NoNumber::TooLarge);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[index + 1..]));
        }
    }
    Err(if bytes.len() < LONGEST { NoNumber::Short } else { NoNumber::TooLarge })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREATEST: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];

    /// DWARF 5, figure 22, and by its formula, by hand.
    #[test]
    fn numbers_are_those_of_the_dwarf_standard() {
        let known = [
            (0, &[0][..]),
            (2, &[2]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (129, &[0x81, 1]),
            (300, &[0xac, 2]),
            (12857, &[0xb9, 0x64]),
            (u64::MAX, &GREATEST),
        ];
        for (number, expected) in known {
            assert_eq!(bytes(number).as_ref(), expected);
            assert_eq!(read(expected), Ok((number, &[][..])));
        }
        assert_eq!(read(&[0xac, 2, 7]), Ok((300, &[7][..])));
    }

    #[test]
    fn small_signed_numbers_are_short() {
        for (number, expected) in
            [(0, 0), (-1, 1), (1, 2), (-2, 3), (-64, 127), (i64::MIN, u64::MAX), (i64::MAX, u64::MAX - 1)]
        {
            assert_eq!(zigzag(number), expected);
            assert_eq!(from_zigzag(expected), number);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(read(&[]), Err(NoNumber::Short));
        assert_eq!(read(&[128]), Err(NoNumber::Short));
        assert_eq!(read(&[128; 9]), Err(NoNumber::Short));
        assert_eq!(read(&[128; 10]), Err(NoNumber::TooLarge));
        assert_eq!(read(&[128; 11]), Err(NoNumber::TooLarge));
        let mut larger = GREATEST;
        larger[9] = 2;
        assert_eq!(read(&larger), Err(NoNumber::TooLarge));
    }
}
