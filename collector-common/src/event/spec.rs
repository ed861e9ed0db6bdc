//! Which event, and which of its occurrences: `sched:sched_switch/prev_pid == 1/`, as the command line takes it.
//!
//! A specification is a name, or a name and a filter between slashes of which the last ends the specification. Where
//! the name ends:
//!
//! 1. A name in single or double quotes ends with its quote, whatever is in it: `'dotnet:GC/Start'/depth == 2/`.
//! 2. A name with an absolute path, that is, one whose first slash is its first character or directly behind a colon,
//!    ends at the first space that a slash follows: `uprobe:/usr/lib/x.so:func /pid == 1/`.
//! 3. Any other name ends at the first slash.
//!
//! Spaces between the name and the filter mean nothing. Slashes within the filter are part of it.

use thiserror::Error;

use super::filter::{self, Expression, FilterError};

/// An event's name, and a filter if there is one.
#[derive(Clone, Debug)]
pub struct EventSpec<'a> {
    /// The event's name as its source knows it.
    pub name: &'a str,
    /// Which occurrences are wanted.
    pub filter: Option<Expression>,
}

/// A specification can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no name.
    #[error("an event begins with its name, as in sched:sched_switch/prev_pid == 1/")]
    NoName,
    /// The name's quote is not closed.
    #[error("the quote of the event's name is not closed")]
    OpenQuote,
    /// The slash that ends the filter is missing.
    #[error("the filter of `{name}` ends with a slash; quote the whole name if the slash is part of it")]
    OpenFilter {
        /// What was read as the name.
        name: String,
    },
    /// Between path and filter, a space is missing.
    #[error(
        "no file's path ends with a slash, and the filter of an event with one begins with a space and a slash: uprobe:/usr/lib/x.so:func \
         /common_pid == 1/"
    )]
    PathWithoutSpace,
    /// Something follows a quoted name that is no filter.
    #[error("`{rest}` behind the event's name is no filter between slashes")]
    NoFilter {
        /// What follows.
        rest: String,
    },
    /// The filter can't be read.
    #[error("{name}: {error}")]
    Filter {
        /// The event's name.
        name: String,
        /// What is wrong, with its place in the filter.
        #[source]
        error: FilterError,
    },
}

/// Reads a specification.
pub fn parse(text: &str) -> Result<EventSpec<'_>, SpecError> {
    let text = text.trim();
    let (name, rest) = split(text)?;
    let name = name.trim_end();
    if name.is_empty() {
        return Err(SpecError::NoName);
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(EventSpec { name, filter: None });
    }
    let Some(opened) = rest.strip_prefix('/') else {
        return Err(SpecError::NoFilter { rest: rest.to_owned() });
    };
    let Some(filter) = opened.strip_suffix('/') else {
        return Err(SpecError::OpenFilter { name: name.to_owned() });
    };
    match filter::parse(filter) {
        Ok(filter) => Ok(EventSpec { name, filter: Some(filter) }),
        Err(error) => Err(SpecError::Filter { name: name.to_owned(), error }),
    }
}

/// The name, and the rest from the slash that opens the filter.
fn split(text: &str) -> Result<(&str, &str), SpecError> {
    if let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let mut parts = text.splitn(3, quote).skip(1);
        return match (parts.next(), parts.next()) {
            (Some(name), Some(rest)) => Ok((name, rest)),
            _ => Err(SpecError::OpenQuote),
        };
    }
    let Some(slash) = text.find('/') else { return Ok((text, "")) };
    let (before, from) = text.split_at(slash);
    if !(before.is_empty() || before.ends_with(':')) {
        return Ok((before, from));
    }
    match text.split_once(" /") {
        Some((name, filter)) => Ok((name, text.get(text.len() - filter.len() - 1..).unwrap_or_default())),
        None if text.ends_with('/') => Err(SpecError::PathWithoutSpace),
        None => Ok((text, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(&str, Option<String>), SpecError> {
        let spec = parse(text)?;
        Ok((spec.name, spec.filter.map(|filter| filter.source().to_owned())))
    }

    #[test]
    fn a_name_ends_where_its_rule_says() {
        for (text, name, filter) in [
            ("sched:sched_switch", "sched:sched_switch", None),
            ("sched:sched_switch/prev_pid == 1/", "sched:sched_switch", Some("prev_pid == 1")),
            (" sched:sched_switch /prev_pid == 1/ ", "sched:sched_switch", Some("prev_pid == 1")),
            ("a:b/path == '/usr/lib'/", "a:b", Some("path == '/usr/lib'")),
            ("a:b/path == 'x /y/'/", "a:b", Some("path == 'x /y/'")),
            ("uprobe:/usr/lib/x.so:func", "uprobe:/usr/lib/x.so:func", None),
            ("uprobe:/usr/lib/x.so:func /pid == 1/", "uprobe:/usr/lib/x.so:func", Some("pid == 1")),
            ("uprobe:/a b/x.so:func  /p == '/ /'/", "uprobe:/a b/x.so:func", Some("p == '/ /'")),
            ("/usr/bin/x:main /a & 1/", "/usr/bin/x:main", Some("a & 1")),
            ("'dotnet:GC/Start'", "dotnet:GC/Start", None),
            ("'dotnet:GC/Start'/depth == 2/", "dotnet:GC/Start", Some("depth == 2")),
            ("\"uprobe:/a /b:f\" /x == 'y'/", "uprobe:/a /b:f", Some("x == 'y'")),
        ] {
            assert_eq!(read(text), Ok((name, filter.map(str::to_owned))), "{text}");
        }
    }

    #[test]
    fn what_is_unclear_is_refused() {
        let name = || "sched:sched_switch".to_owned();
        for (text, error) in [
            ("", SpecError::NoName),
            ("''/a == 1/", SpecError::NoName),
            ("'a", SpecError::OpenQuote),
            ("sched:sched_switch/prev_pid == 1", SpecError::OpenFilter { name: name() }),
            ("sched:sched_switch/", SpecError::OpenFilter { name: name() }),
            ("uprobe:/x.so:func/pid == 1/", SpecError::PathWithoutSpace),
            ("'a' b", SpecError::NoFilter { rest: "b".to_owned() }),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
        let error = read("a/pid ==/").unwrap_err();
        assert!(
            matches!(&error, SpecError::Filter { name, error } if name == "a" && error.column() == 7),
            "{error}"
        );
        assert!(read("a//").unwrap_err().to_string().contains("field was expected"));
    }
}
