//! Numbers and text in, their bytes out: 7 bits in each byte, the lowest first, and the 8th says that there are more, but the 9th byte
//! has 8 bits and is the last. Numbers below 0 are written as the unsigned ones of their width.

/// How text is written.
const EMPTY: u8 = 1;
const CONSTANT: u8 = 2;
const UTF8: u8 = 3;

/// No text, or no constant.
pub(super) const NULL: u8 = 0;

/// The bytes of a number.
pub(super) fn long(out: &mut Vec<u8>, mut number: u64) {
    for _ in 0..8 {
        if number < 0x80 {
            break;
        }
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number of 32 bits.
pub(super) fn int(out: &mut Vec<u8>, number: i32) {
    long(out, number.cast_unsigned().into());
}

/// Text, with its length in bytes before it.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        out.push(EMPTY);
    } else {
        symbol(out, text);
    }
}

/// Text of a symbol, which readers want to be as it is even where it is empty.
pub(super) fn symbol(out: &mut Vec<u8>, text: &str) {
    out.push(UTF8);
    long(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Text that is a constant.
pub(super) fn constant_text(out: &mut Vec<u8>, id: u64) {
    out.push(CONSTANT);
    long(out, id);
}

/// How many bytes a number has.
pub(super) fn length(number: u64) -> u64 {
    let bits = u64::from(u64::BITS - number.leading_zeros());
    bits.div_ceil(7).clamp(1, 9)
}

/// What an event begins with: its size, which counts itself.
pub(super) fn size(out: &mut Vec<u8>, content: u64) {
    let size = content + length(content);
    // One more byte may make it one longer.
    let size = content + length(size);
    long(out, size);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// By hand.
    #[test]
    fn numbers_have_nine_bytes_at_most() {
        for (number, expected) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            ((1 << 56) - 1, &[255, 255, 255, 255, 255, 255, 255, 127]),
            (1 << 56, &[128, 128, 128, 128, 128, 128, 128, 128, 1]),
            (u64::MAX, &[255; 9]),
        ] {
            assert_eq!(bytes(|out| long(out, number)), expected);
            assert_eq!(length(number), expected.len() as u64);
        }
        assert_eq!(bytes(|out| int(out, -1)), [255, 255, 255, 255, 15]);
    }

    #[test]
    fn a_size_counts_itself() {
        assert_eq!(bytes(|out| size(out, 126)), [127]);
        assert_eq!(bytes(|out| size(out, 127)), [0x81, 1]);
        assert_eq!(bytes(|out| size(out, 0x3ffd)), [0xff, 0x7f]);
        assert_eq!(bytes(|out| size(out, 0x3ffe)), [0x81, 0x80, 1]);
    }

    #[test]
    fn text_has_its_length_before_it() {
        assert_eq!(bytes(|out| text(out, "")), [1]);
        assert_eq!(bytes(|out| text(out, "ñ")), [3, 2, 0xc3, 0xb1]);
        assert_eq!(bytes(|out| symbol(out, "")), [3, 0]);
        assert_eq!(bytes(|out| constant_text(out, 5)), [2, 5]);
    }
}
