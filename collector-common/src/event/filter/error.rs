//! What is wrong with a filter, and where in its text.

use std::fmt;

/// A filter can't be read or does not fit the format. Prints the message, the text, and a caret below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    source: Box<str>,
    /// Byte offset in `source`.
    at: usize,
    message: Box<str>,
}

impl FilterError {
    pub(super) fn new(source: &str, at: usize, message: impl Into<Box<str>>) -> Self {
        Self { source: source.into(), at, message: message.into() }
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where, in characters from 1.
    pub fn column(&self) -> usize {
        1 + self.source.char_indices().take_while(|(at, _)| *at < self.at).count()
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} (column {})", self.message, self.column())?;
        // One line, so that the caret meets its place.
        let line: String =
            self.source.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        write!(out, "  {line}\n  {:>1$}", "^", self.column())
    }
}

impl std::error::Error for FilterError {}
