//! Events as `name=value` pairs, as in a trace's output.

use std::fmt::{self, Write};

use crate::event::data::EventData;
use crate::event::value::Value;

/// Prints an event as `prev_comm="bash" prev_pid=1 addr=0x7f00`: text in quotes with `\"`, `\\`, `\n`, `\t`, `\r` and
/// `\u{..}` for what else can't be seen, lists as `[1, 2]`, structures as `{a=1 b=2}`, and instead of a value that
/// the data don't hold what is wrong, as `<...>`.
#[derive(Clone, Copy, Debug)]
pub struct PlainText<'a>(pub(super) EventData<'a>);

impl fmt::Display for PlainText<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (field, value)) in self.0.values().enumerate() {
            if index > 0 {
                out.write_char(' ')?;
            }
            write!(out, "{}=", field.name())?;
            match value {
                Ok(value) => write_value(out, value)?,
                Err(error) => write!(out, "<{}>", error.problem())?,
            }
        }
        Ok(())
    }
}

fn write_value(out: &mut fmt::Formatter<'_>, value: Value<'_>) -> fmt::Result {
    match value {
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::Float32(value) => write!(out, "{value}"),
        Value::Float64(value) => write!(out, "{value}"),
        Value::Pointer(value) => write!(out, "{value:#x}"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Text(text) => quoted(out, text.chars()),
        Value::Utf16(text) => quoted(out, text.chars()),
        Value::Ipv4(value) => write!(out, "{value}"),
        Value::Ipv6(value) => write!(out, "{value}"),
        Value::Guid(value) => write!(out, "{value}"),
        Value::FileTime(value) => write!(out, "{value}"),
        Value::Sid(value) => write!(out, "{value}"),
        Value::Struct(data) => write!(out, "{{{}}}", PlainText(data)),
        Value::Array(elements) => {
            out.write_char('[')?;
            for (index, element) in elements.enumerate() {
                if index > 0 {
                    out.write_str(", ")?;
                }
                write_value(out, element)?;
            }
            out.write_char(']')
        }
    }
}

fn quoted(out: &mut fmt::Formatter<'_>, chars: impl Iterator<Item = char>) -> fmt::Result {
    out.write_char('"')?;
    for char in chars {
        match char {
            '\'' => out.write_char(char)?,
            _ => write!(out, "{}", char.escape_debug())?,
        }
    }
    out.write_char('"')
}
