//! Strings of JSON (RFC 8259, section 7).

use std::fmt::Write as _;

/// Adds a string.
pub(super) fn string(out: &mut String, text: &str) {
    chars(out, text.chars());
}

/// Adds characters as a string.
pub(super) fn chars(out: &mut String, chars: impl Iterator<Item = char>) {
    out.push('"');
    for char in chars {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Readers of lines take the last two for ends of lines, some of them.
            '\0'..' ' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

/// Adds bytes as a string of two hexadecimal digits each.
pub(super) fn hex(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('"');
}

/// Adds a member's name, behind a comma.
pub(super) fn key(out: &mut String, name: &str) {
    out.push(',');
    string(out, name);
    out.push(':');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_string_or_a_line_is_escaped() {
        let mut out = String::new();
        string(&mut out, "a\"b\\c\n\u{1}\u{85}\u{2028}é😀");
        assert_eq!(out, "\"a\\\"b\\\\c\\u000a\\u0001\\u0085\\u2028é😀\"");
        out.clear();
        hex(&mut out, &[0, 0xab, 7]);
        assert_eq!(out, "\"00ab07\"");
    }
}
