//! The fields of an event as members of an object.
//!
//! Integers are numbers with all their digits, also beyond 2^53, so that a column has one type; addresses are strings of hexadecimal
//! digits, as most of them are beyond it. Lists of bytes are strings of hexadecimal digits, too. What JSON has no number for is `null`,
//! and so is what the data do not hold.

use std::fmt::Write as _;

use collector_common::event::{EventData, EventField, EventFormat, FieldKind, Value, Width};

use super::text::{chars, hex, string};

/// What the kernel writes before the fields of every tracepoint: the line has the thread, and the rest is the kernel's own.
const COMMON: &str = "common_";

/// The names of a format's fields as members; `None` for one that is not told.
pub(super) struct Names(Vec<Option<Box<str>>>);

impl Names {
    /// A name that was there before has its number behind it.
    pub(super) fn of(format: &EventFormat) -> Self {
        let fields = format.fields();
        let names = fields.iter().enumerate().map(|(at, field)| {
            if field.name().starts_with(COMMON) {
                return None;
            }
            let before = fields.iter().take(at).filter(|other| other.name() == field.name()).count();
            let mut out = String::new();
            match before {
                0 => string(&mut out, field.name()),
                before => string(&mut out, &format!("{}_{}", field.name(), before + 1)),
            }
            out.push(':');
            Some(out.into())
        });
        Self(names.collect())
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Adds an event's fields as an object. Out: whether that is all that they say.
    pub(super) fn object(&self, out: &mut String, data: &EventData<'_>) -> bool {
        let mut is_whole = true;
        out.push('{');
        let before = out.len();
        for (name, (field, value)) in self.0.iter().zip(data.values()) {
            let Some(name) = name else { continue };
            if out.len() > before {
                out.push(',');
            }
            out.push_str(name);
            if let Ok(value) = value {
                is_whole &= value_of(out, field, value);
            } else {
                is_whole = false;
                out.push_str("null");
            }
        }
        out.push('}');
        is_whole
    }
}

/// Adds a value. Out: whether it says all that the bytes do.
fn value_of(out: &mut String, field: &EventField, value: Value<'_>) -> bool {
    match value {
        Value::Array(elements) if matches!(field.kind(), FieldKind::Unsigned(Width::W8)) => {
            let bytes: Vec<u8> = elements.map(|element| byte(&element)).collect();
            hex(out, &bytes);
            true
        }
        Value::Array(elements) => {
            let mut is_whole = true;
            out.push('[');
            for (element, at) in elements.zip(0..) {
                if at > 0 {
                    out.push(',');
                }
                is_whole &= one(out, &element);
            }
            out.push(']');
            is_whole
        }
        value => one(out, &value),
    }
}

fn byte(value: &Value<'_>) -> u8 {
    if let Value::Unsigned(value) = value { *value as u8 } else { 0 }
}

fn one(out: &mut String, value: &Value<'_>) -> bool {
    let mut is_whole = true;
    // Writing to a string can't fail.
    let _ = match *value {
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::Pointer(value) => write!(out, "\"{value:#x}\""),
        // With an exponent, so that large ones are short.
        Value::Float32(value) if value.is_finite() => write!(out, "{value:?}"),
        Value::Float64(value) if value.is_finite() => write!(out, "{value:?}"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Text(text) => {
            is_whole = text.to_str().is_ok();
            chars(out, text.chars());
            Ok(())
        }
        Value::Utf16(text) => {
            is_whole = char::decode_utf16(text.units()).all(|char| char.is_ok());
            chars(out, text.chars());
            Ok(())
        }
        Value::Ipv4(value) => write!(out, "\"{value}\""),
        Value::Ipv6(value) => write!(out, "\"{value}\""),
        Value::Guid(value) => write!(out, "\"{value}\""),
        Value::FileTime(value) => write!(out, "\"{value}\""),
        Value::Sid(value) => write!(out, "\"{value}\""),
        Value::Struct(data) => {
            is_whole = Names::of(data.format()).object(out, &data);
            Ok(())
        }
        // NaN and infinity.
        _ => {
            is_whole = false;
            write!(out, "null")
        }
    };
    is_whole
}
