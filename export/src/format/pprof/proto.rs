//! The messages of `profile.proto`, written by hand for `prost`: field numbers and meanings are those of
//! github.com/google/pprof, `proto/profile.proto`.
//!
//! Numbers that name a string are positions in the profile's string table, whose first string is empty. The
//! profile itself is written and read field by field, so that neither way holds all of it as messages; the
//! numbers of its fields are in [`field`].

use prost::Message;

/// Field numbers of the message `Profile`.
pub(super) mod field {
    pub(in super::super) const SAMPLE_TYPE: u32 = 1;
    pub(in super::super) const SAMPLE: u32 = 2;
    pub(in super::super) const MAPPING: u32 = 3;
    pub(in super::super) const LOCATION: u32 = 4;
    pub(in super::super) const FUNCTION: u32 = 5;
    pub(in super::super) const STRING_TABLE: u32 = 6;
    pub(in super::super) const TIME_NANOS: u32 = 9;
    pub(in super::super) const DURATION_NANOS: u32 = 10;
    pub(in super::super) const PERIOD_TYPE: u32 = 11;
    pub(in super::super) const PERIOD: u32 = 12;
    pub(in super::super) const COMMENT: u32 = 13;
    pub(in super::super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// What values count: `cpu`, `nanoseconds`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// Values recorded at one call stack.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Sample {
    /// The stack, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// One for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A further fact: text or number.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
    #[prost(int64, tag = "3")]
    pub(super) num: i64,
}

/// Where a file was mapped.
#[expect(clippy::struct_excessive_bools, reason = "the format has as many")]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Mapping {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(super) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    /// In hex.
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    /// Readers look up names themselves where this is false.
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Location {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// 0 for none.
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// The function, and before it those inlined at this place, innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    /// From 1; 0 for none.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
    /// From 1; 0 for none.
    #[prost(int64, tag = "3")]
    pub(super) column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Function {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    /// As the file has it.
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    /// The source file; the function's lines are in it.
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
