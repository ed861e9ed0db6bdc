//! Why a field has no value, and why a format can't be.

use std::fmt;

use thiserror::Error;

use super::field::FormatId;
use super::format::EventFormat;
use super::kind::KindName;

/// Why a getter has no value. Small and `Copy`; the field's name is looked up when it is printed, see
/// [`FieldError::named`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub(super) format: FormatId,
    pub(super) index: u16,
    pub(super) problem: FieldProblem,
}

/// What is wrong, see [`FieldError::problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldProblem {
    /// The event data end before the field does, or dynamic data lie outside of it.
    TooShort,
    /// The field is of another kind than was asked for.
    WrongKind {
        /// What its elements are.
        is: KindName,
        /// Whether it has several.
        is_array: bool,
        /// What was asked for.
        asked: KindName,
    },
    /// The reference was resolved in another format.
    OtherFormat,
    /// The text is not UTF-8.
    NotUtf8,
    /// An element takes no bytes, so that their number means nothing.
    EmptyElement,
}

impl FieldError {
    /// What is wrong.
    pub fn problem(&self) -> FieldProblem {
        self.problem
    }

    /// The message with the field's name, which `format` (or one within it) knows.
    pub fn named(self, format: &EventFormat) -> impl fmt::Display + '_ {
        fmt::from_fn(move |out| match format.name_of(self.format, self.index) {
            Some(name) if self.problem != FieldProblem::OtherFormat => {
                write!(out, "field {name}: {}", self.problem)
            }
            _ => write!(out, "{self}"),
        })
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "field #{}: {}", self.index, self.problem)
    }
}

impl std::error::Error for FieldError {}

impl fmt::Display for FieldProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => out.write_str("the event data end before it does"),
            Self::WrongKind { is, is_array, asked } => {
                let list = if *is_array { "a list of " } else { "" };
                write!(out, "it is {list}{}, {} was asked for", is.as_str(), asked.as_str())
            }
            Self::OtherFormat => out.write_str("the reference was resolved in another format"),
            Self::NotUtf8 => out.write_str("its text is not UTF-8"),
            Self::EmptyElement => out.write_str("its elements take no bytes"),
        }
    }
}

/// Why a field can't be part of a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Only text ends at a NUL.
    #[error("field {field}: {kind} does not end at a NUL; only text does")]
    NotText {
        /// The field.
        field: Box<str>,
        /// What it is.
        kind: &'static str,
    },
    /// The bits are not within their unit.
    #[error("field {field}: {count} bits from bit {first} are not within {unit} bits")]
    Bits {
        /// The field.
        field: Box<str>,
        /// The lowest bit.
        first: u8,
        /// How many.
        count: u8,
        /// Bits of the unit.
        unit: u32,
    },
    /// The count is of a field that is not an integer before this one.
    #[error("field {field}: its count is no integer field before it in the same format")]
    Counter {
        /// The field.
        field: Box<str>,
    },
    /// Offsets of dynamic data count from the event, and a structure may be anywhere in it.
    #[error("field {field}: a structure within an event can't have dynamic data")]
    DynamicInStruct {
        /// The field.
        field: Box<str>,
    },
    /// A list of structures without fields has no end.
    #[error("field {field}: its elements take no bytes")]
    EmptyElement {
        /// The field.
        field: Box<str>,
    },
    /// The field ends behind 4 GiB.
    #[error("field {field}: it ends behind 4 GiB")]
    TooLarge {
        /// The field.
        field: Box<str>,
    },
    /// More fields, structures within structures, or counts at no fixed place than any real event has.
    #[error("field {field}: the format has more {what} than {most}")]
    TooMany {
        /// The field.
        field: Box<str>,
        /// Of what.
        what: &'static str,
        /// How many are possible.
        most: u32,
    },
}
