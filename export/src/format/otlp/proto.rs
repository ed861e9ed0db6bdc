//! The messages of OTLP profiles, written by hand for `prost`: field numbers and meanings are those of
//! open-telemetry/opentelemetry-proto 1.10, `profiles/v1development`, `common/v1` and `resource/v1`.
//!
//! Numbers that name something are positions in the dictionary's tables, of which each begins with nothing. What holds the samples
//! is written field by field, so that it is never there as a whole; the numbers of those fields are in [`field`].

use prost::{Message, Oneof};

/// Field numbers of messages that are written in parts.
pub(super) mod field {
    pub(in super::super) const DATA_RESOURCE_PROFILES: u32 = 1;
    pub(in super::super) const DATA_DICTIONARY: u32 = 2;
    pub(in super::super) const RESOURCE_SCOPE_PROFILES: u32 = 2;
    pub(in super::super) const SCOPE_PROFILES: u32 = 2;
    pub(in super::super) const PROFILE_SAMPLES: u32 = 2;
}

/// `ResourceProfiles` without its profiles.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3, 5")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(message, tag = "5")]
    List(ArrayValue),
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

/// `ScopeProfiles` without its profiles.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<Scope>,
}

/// `InstrumentationScope`: who recorded.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// A profile without its samples.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Profile {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<ValueType>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    #[prost(int32, repeated, tag = "11")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit_strindex: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Sample {
    #[prost(int32, tag = "1")]
    pub(super) stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attribute_indices: Vec<i32>,
    /// One for each of the times; none where each would be 1.
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    pub(super) timestamps_unix_nano: Vec<u64>,
}

#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub(super) function_table: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub(super) link_table: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub(super) string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attribute_table: Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stack_table: Vec<Stack>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "3")]
    pub(super) file_offset: u64,
    #[prost(int32, tag = "4")]
    pub(super) filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Location {
    #[prost(int32, tag = "1")]
    pub(super) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    /// The function, and before it those inlined at this place, innermost first.
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attribute_indices: Vec<i32>,
}

#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Line {
    #[prost(int32, tag = "1")]
    pub(super) function_index: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
    #[prost(int64, tag = "3")]
    pub(super) column: i64,
}

#[expect(clippy::struct_field_names, reason = "the format calls them so")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Function {
    #[prost(int32, tag = "1")]
    pub(super) name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename_strindex: i32,
}

/// A span of a trace, of which there are none.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Link {}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub(super) key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Stack {
    /// The innermost first.
    #[prost(int32, repeated, tag = "1")]
    pub(super) location_indices: Vec<i32>,
}

impl From<&str> for AnyValue {
    fn from(text: &str) -> Self {
        Self { value: Some(Value::Text(text.to_owned())) }
    }
}

impl From<i64> for AnyValue {
    fn from(number: i64) -> Self {
        Self { value: Some(Value::Number(number)) }
    }
}

impl From<Vec<Self>> for AnyValue {
    fn from(values: Vec<Self>) -> Self {
        Self { value: Some(Value::List(ArrayValue { values })) }
    }
}
