//! Events as JSON objects (RFC 8259).

use std::fmt::{self, Write};

use crate::event::data::EventData;
use crate::event::value::Value;

/// Prints an event as one JSON object without spaces, a member for each field in order.
///
/// Integers and addresses are numbers with all their digits, also above 2^53. What JSON has no number for (NaN, infinity)
/// and values that the data don't hold are `null`. What is not UTF-8 or UTF-16 in text is U+FFFD. Structures are objects,
/// lists are arrays; addresses of the network, GUIDs and times are strings.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(pub(super) EventData<'a>);

impl fmt::Display for Json<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_char('{')?;
        for (index, (field, value)) in self.0.values().enumerate() {
            if index > 0 {
                out.write_char(',')?;
            }
            string(out, field.name().chars())?;
            out.write_char(':')?;
            match value {
                Ok(value) => write_value(out, value)?,
                Err(_) => out.write_str("null")?,
            }
        }
        out.write_char('}')
    }
}

fn write_value(out: &mut fmt::Formatter<'_>, value: Value<'_>) -> fmt::Result {
    match value {
        Value::Unsigned(value) | Value::Pointer(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        // With an exponent, so that large ones are short.
        Value::Float32(value) if value.is_finite() => write!(out, "{value:?}"),
        Value::Float64(value) if value.is_finite() => write!(out, "{value:?}"),
        Value::Float32(_) | Value::Float64(_) => out.write_str("null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Text(text) => string(out, text.chars()),
        Value::Utf16(text) => string(out, text.chars()),
        Value::Ipv4(value) => write!(out, "\"{value}\""),
        Value::Ipv6(value) => write!(out, "\"{value}\""),
        Value::Guid(value) => write!(out, "\"{value}\""),
        Value::FileTime(value) => write!(out, "\"{value}\""),
        Value::Sid(value) => write!(out, "\"{value}\""),
        Value::Struct(data) => write!(out, "{}", Json(data)),
        Value::Array(elements) => {
            out.write_char('[')?;
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.write_char(',')?;
                }
                write_value(out, element)?;
            }
            out.write_char(']')
        }
    }
}

fn string(out: &mut fmt::Formatter<'_>, chars: impl Iterator<Item = char>) -> fmt::Result {
    out.write_char('"')?;
    for char in chars {
        match char {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\0'..' ' => write!(out, "\\u{:04x}", u32::from(char))?,
            char => out.write_char(char)?,
        }
    }
    out.write_char('"')
}
