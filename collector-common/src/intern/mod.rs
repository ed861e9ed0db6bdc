//! Strings and call stacks, each stored once and named by a small id.

mod callstacks;
mod strings;

pub use callstacks::{InternedCallstacks, StackId};
pub use strings::{InternedStrings, StringId};
