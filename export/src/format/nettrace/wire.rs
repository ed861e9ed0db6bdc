//! Text in, its bytes out: in headers it has its length before it as a number of variable length, in events in 16 bits.

use crate::leb128;

/// The most bytes of text in an event: PerfView keeps the size of all that an event holds in 16 bits.
pub(super) const LONGEST_TEXT: usize = u16::MAX as usize - 128;

/// Text as headers have it.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, LONGEST_TEXT);
    leb128::write(out, text.len() as u64);
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
