//! The messages of `profile.proto`, written by hand for `prost`: field numbers and meanings are those of
//! github.com/google/pprof, `proto/profile.proto`.
//!
//! Numbers that name a string are positions in the profile's string table, whose first string is empty. The
//! profile itself is written and read field by field, so that neither way holds all of it as messages; the
//! numbers of its fields are in [`field`].

use prost::Message;

/// Field numbers of the message `Profile`.
pub(crate) mod field {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING_TABLE: u32 = 6;
    pub(crate) const DROP_FRAMES: u32 = 7;
    pub(crate) const KEEP_FRAMES: u32 = 8;
    pub(crate) const TIME_NANOS: u32 = 9;
    pub(crate) const DURATION_NANOS: u32 = 10;
    pub(crate) const PERIOD_TYPE: u32 = 11;
    pub(crate) const PERIOD: u32 = 12;
    pub(crate) const COMMENT: u32 = 13;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// What values count: `cpu`, `nanoseconds`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// Values recorded at one call stack.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Sample {
    /// The stack, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    /// One for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// A further fact: text or number.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
    /// What the number counts.
    #[prost(int64, tag = "4")]
    pub(crate) num_unit: i64,
}

/// Where a file was mapped.
#[expect(clippy::struct_excessive_bools, reason = "the format has as many")]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Mapping {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    /// In hex.
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    /// Readers look up names themselves where this is false.
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Location {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// 0 for none.
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// The function, and before it those inlined at this place, innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
    /// Whether several functions that are one piece of code are told of as one.
    #[prost(bool, tag = "5")]
    pub(crate) is_folded: bool,
}

/// A line of a function.
#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    /// From 1; 0 for none.
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
    /// From 1; 0 for none.
    #[prost(int64, tag = "3")]
    pub(crate) column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Function {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    /// As the file has it.
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    /// The source file; the function's lines are in it.
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
    /// Where it begins in its file, from 1; 0 for none.
    #[prost(int64, tag = "5")]
    pub(crate) start_line: i64,
}
