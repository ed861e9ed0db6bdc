//! Hexadecimal digits in, bytes out: as files have build ids and signatures.

use collector_common::ids::BuildId;

/// The most digits that are looked at: no id is longer.
const MOST_DIGITS: usize = 128;

/// Bytes of two digits each.
pub(super) fn bytes(digits: &str) -> Option<Vec<u8>> {
    if digits.len() > MOST_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The build id of these digits.
pub(super) fn build_id(digits: &str) -> Option<BuildId> {
    BuildId::new(&bytes(digits)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_alone_are_bytes() {
        assert_eq!(bytes("00fFa1"), Some(vec![0x00, 0xff, 0xa1]));
        assert_eq!(bytes(""), Some(Vec::new()));
        for wrong in ["+f", "0x12", "12-34", "é1", &"0".repeat(130)] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        assert_eq!(build_id("abcd").map(|id| id.to_string()).as_deref(), Some("abcd"));
        assert_eq!(build_id(""), None);
    }
}
