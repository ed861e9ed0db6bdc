//! How much is kept of a name that Windows wrote, in a trace or a dump: one may be of any length, and written again and again.

/// The longest name of a process, a thread, a file or a method, in bytes.
pub(crate) const LONGEST_NAME: usize = 4 << 10;

/// As much of a name as is kept.
pub(crate) fn name(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}
