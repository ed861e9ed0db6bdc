//! Numbers of so many bits each, one after the other, the lowest bits first.

/// Appends the lowest `width` bits of each; the last byte is filled with zeros.
pub(super) fn pack(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>, width: u32) {
    let mask = u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0);
    let (mut pending, mut filled) = (0_u128, 0);
    for number in numbers {
        pending |= u128::from(number & mask) << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= u64::BITS;
            filled -= u64::BITS;
        }
    }
    let bytes = (filled as usize).div_ceil(8);
    out.extend_from_slice(&pending.to_le_bytes()[..bytes]);
}

/// The bits that a number needs.
pub(super) fn width(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `Encodings.md`.
    #[test]
    fn the_lowest_bits_come_first() {
        let mut out = Vec::new();
        pack(&mut out, 0..8, 3);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn all_widths_are_packed() {
        for bits in 0..=64_u32 {
            let largest = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            assert_eq!(width(largest), bits);
            let mut out = Vec::new();
            pack(&mut out, [largest; 9], bits);
            assert_eq!(out.len(), (9 * bits as usize).div_ceil(8));
            assert_eq!(out.iter().map(|byte| byte.count_ones()).sum::<u32>(), 9 * bits);
        }
    }
}
