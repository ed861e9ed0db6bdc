//! Numbers and text in, their bytes out.
//!
//! Numbers of variable length have 7 bits in each byte, the lowest first, and the 8th says that there are more. Text of
//! headers has its length as such a number, text of events in 16 bits.

/// The most bytes of text in an event: PerfView keeps the size of all that an event holds in 16 bits.
pub(super) const LONGEST_TEXT: usize = u16::MAX as usize - 128;

/// An unsigned number.
pub(super) fn varuint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A signed number: those near 0 are short, whatever their sign.
pub(super) fn varint(out: &mut Vec<u8>, number: i64) {
    varuint(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Text as headers have it.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, LONGEST_TEXT);
    varuint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Text as events have it.
pub(super) fn event_text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, LONGEST_TEXT);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// As many whole characters as there is room for.
pub(super) fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// By the formula of the specification, by hand.
    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        assert_eq!(bytes(|out| varuint(out, 0)), [0]);
        assert_eq!(bytes(|out| varuint(out, 127)), [0x7f]);
        assert_eq!(bytes(|out| varuint(out, 300)), [0xac, 0x02]);
        assert_eq!(bytes(|out| varuint(out, u64::MAX)), [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(bytes(|out| varint(out, -1)), [1]);
        assert_eq!(bytes(|out| varint(out, 1)), [2]);
        assert_eq!(bytes(|out| varint(out, -64)), [0x7f]);
        assert_eq!(bytes(|out| varint(out, i64::MIN)), [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("añb", 3), "añ");
        assert_eq!(cut("añb", 9), "añb");
        let long = "ñ".repeat(40_000);
        let out = bytes(|out| event_text(out, &long));
        let length = usize::from(u16::from_le_bytes([out[0], out[1]]));
        assert_eq!((length, length % 2), (out.len() - 2, 0));
        assert!(length > 65_000);
    }
}
