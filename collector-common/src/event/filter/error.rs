//! What is wrong with a filter, and where in its text.

use std::fmt;

/// Characters that are printed of the text, of what follows the place in it, and of the message, which may have names of the text in it.
const MOST_TEXT: usize = 160;
const MOST_REST: usize = 24;
const MOST_MESSAGE: usize = 800;

/// A filter can't be read or does not fit the format. Prints one line: the text, the place in it, and the message.
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
        let message = one_line(&self.message, MOST_MESSAGE);
        if self.source.trim().is_empty() {
            return write!(out, "the filter is empty: {message}");
        }
        write!(out, "the filter `{}`, at column {}, ", one_line(&self.source, MOST_TEXT), self.column())?;
        match self.source.get(self.at..).map_or("", str::trim) {
            "" => out.write_str("its end")?,
            rest => write!(out, "before `{}`", one_line(rest, MOST_REST))?,
        }
        write!(out, ": {message}")
    }
}

impl std::error::Error for FilterError {}

/// The first characters of a text.
fn one_line(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut line: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        line.push_str("...");
    }
    line
}
