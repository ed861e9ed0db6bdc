//! Why a description can't be understood.

use collector_common::event::FormatError;
use thiserror::Error;

/// A description is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} at byte {position}: {problem}")]
pub struct DescriptionError {
    /// What was read.
    pub what: &'static str,
    /// Where in the description.
    pub position: usize,
    /// What is wrong.
    pub problem: DescriptionProblem,
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DescriptionProblem {
    /// It ends early.
    #[error("the description ends within it")]
    TooShort,
    /// Text has no NUL, or none within what texts of a description may be long.
    #[error("no NUL ends it in time")]
    NoEnd,
    /// A type that is not known.
    #[error("type {input} shown as {output} is not known")]
    Type {
        /// `TDH_IN_TYPE`.
        input: u16,
        /// `TDH_OUT_TYPE`.
        output: u16,
    },
    /// A structure has more members than there are fields.
    #[error("it has {members} members, and {left} fields are left")]
    Members {
        /// Members.
        members: usize,
        /// Fields that are left.
        left: usize,
    },
    /// The size or number of a field is in one that is not before it in the same structure.
    #[error("its size or number is in field {index}, which is not before it in the same structure")]
    Counter {
        /// The field's place.
        index: u16,
    },
    /// It is no XML, or not what a manifest is.
    #[error("it is no manifest")]
    Xml,
    /// Structures within structures.
    #[error("structures nest too deep")]
    Depth,
    /// A field can't be part of a format.
    #[error(transparent)]
    Format(#[from] FormatError),
}
