//! Texts without characters that break a line, or that XML has no way to write.

/// A text in one line of XML: control characters are blanks.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(printed).collect()
}

/// What stands for a character.
pub(super) fn printed(char: char) -> char {
    match char {
        char if char.is_control() => ' ',
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        char => char,
    }
}
