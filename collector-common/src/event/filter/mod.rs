//! Filters: a small language over an event's fields, parsed once and compiled once per format.
//!
//! ```text
//! any    = all { ("or" | "||") all }
//! all    = one { ("and" | "&&") one }
//! one    = ("not" | "!") one | "(" any ")" | test
//! test   = field ("==" | "!=" | "<" | "<=" | ">" | ">=") literal
//!        | field "&" integer [("==" | "!=" | "<" | "<=" | ">" | ">=") integer]
//!        | field ("contains" | "starts_with" | "ends_with" | "~") text
//! field  = name ["[" integer "]"]
//! ```
//!
//! - A field is a name, or any text in backquotes; one of a structure is both names with a point between. Of a list of integers
//!   whose length is fixed, an element is compared: `args[1] == 3`. The first is 0.
//! - A literal is an integer (`12`, `-3`, `0xff`), a number with a point or an exponent, `true` or `false` (1 and 0), or
//!   text in single or double quotes, where a backslash escapes a quote, itself, `n` and `t`.
//! - Numbers are compared by what they are, whatever their types: -1 is less than any unsigned number, and 2^53 + 1 is
//!   not equal to the floating-point number 2^53. What a field surely is, or is not, because it has no room for the number, is
//!   refused: `pid == 4294967295` where 32 bits have a sign.
//! - `flags & 4` holds if one of the bits is set; `flags & 6 == 2` compares the bits that are left. The bits of a negative
//!   number are those of its 64-bit form.
//! - `~` matches the whole text with a pattern, where `*` stands for any text and `?` for one byte (UTF-16: one unit), and what is
//!   behind a backslash for itself (`'a\\*'`). Text is compared byte by byte (unit by unit).
//! - IP addresses and GUIDs are equal or not to their usual text form.

mod compile;
mod error;
mod kernel;
mod lex;
mod near;
mod number;
mod parse;
mod pattern;

use std::cmp::Ordering;

pub use compile::Predicate;
pub use error::FilterError;
pub use near::near;

use super::format::EventFormat;

/// Parentheses and negations within each other.
pub const MOST_DEPTH: usize = 64;

/// A filter that was read and not yet tied to a format.
#[derive(Clone, Debug)]
pub struct Expression {
    source: Box<str>,
    root: Node,
}

impl Expression {
    /// The text it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Ties it to the fields of a format.
    pub fn compile(&self, format: &EventFormat) -> Result<Predicate, FilterError> {
        compile::compile(&self.source, &self.root, format)
    }
}

/// Reads a filter.
pub fn parse(text: &str) -> Result<Expression, FilterError> {
    let root = parse::parse(text)?;
    Ok(Expression { source: text.into(), root })
}

/// A part of an expression.
#[derive(Clone, Debug)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Test),
}

/// One comparison; `field_at` and `value_at` are byte offsets in the source.
#[derive(Clone, Debug)]
struct Test {
    field: String,
    field_at: usize,
    element: Option<Element>,
    asked: Asked,
    value_at: usize,
}

/// One of a list, by its number from 0; `at` is the number's place in the source.
#[derive(Clone, Copy, Debug)]
struct Element {
    number: u64,
    at: usize,
}

/// What is asked of a field's value.
#[derive(Clone, Debug)]
enum Asked {
    Compare(Comparison, Literal),
    Masked(u64, Comparison, i128),
    Text(TextTest, String),
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// What holds between values with an order where this one does not.
    fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// As it is written.
    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Whether it holds; nothing but "not equal" does between values without an order (NaN).
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextTest {
    Contains,
    StartsWith,
    EndsWith,
    Glob,
}
