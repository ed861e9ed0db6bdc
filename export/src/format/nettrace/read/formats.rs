//! Types of fields as event formats have them: fields one behind the other, in little-endian order.
//!
//! An event format has no numbers of variable length: events with such are written anew, with 8 bytes for each.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventField, EventFormat, Extent, FieldKind, FloatWidth, Place, Width,
};

use super::ReadError;
use super::cursor::Cursor;
use super::fields::{Field, Type, Value, values_and_rest};

/// What the only field is called of an element that is none by itself, as an array in an array.
const ELEMENT: &str = "value";

/// What the bytes are called that are behind the last field whose type is known.
const REST: &str = "rest";

/// The format of fields, and of the bytes behind them if there are more; `None` where there are none, or it has no words for one.
pub(super) fn format_of(fields: &[Field], has_more: bool) -> Option<EventFormat> {
    // Where bytes are written anew, they lie elsewhere than an event says.
    if fields.is_empty() || has_varints(fields) && fields.iter().any(|field| is_located(&field.of)) {
        return None;
    }
    let mut format = structure(fields)?;
    if has_more {
        let kind = FieldKind::Unsigned(Width::W8);
        let rest = EventField::new(REST, "Byte", kind, Extent::Rest, Place::AfterPrevious);
        format.add_field(rest).ok()?;
    }
    Some(format)
}

fn structure(fields: &[Field]) -> Option<EventFormat> {
    let mut format = EventFormat::new(ByteOrder::Little);
    for Field { name, of } in fields {
        let (kind, extent) = field(of)?;
        let field = EventField::new(name.as_str(), type_name(of), kind, extent, Place::AfterPrevious);
        format.add_field(field).ok()?;
    }
    Some(format)
}

fn field(of: &Type) -> Option<(FieldKind, Extent)> {
    Some(match of {
        Type::WideText => (FieldKind::Utf16, Extent::ZeroTerminated),
        Type::Array(of) => (element(of)?, Extent::CountPrefixed(Width::W16)),
        Type::Fixed(of, count) => (element(of)?, Extent::Array((*count).into())),
        Type::Located { element: of, is_relative: false } => (element(of)?, Extent::DataLoc),
        Type::Located { element: of, is_relative: true } => (element(of)?, Extent::RelLoc),
        of => (element(of)?, Extent::One),
    })
}

/// What is one element by itself.
fn element(of: &Type) -> Option<FieldKind> {
    let width = |size: u8| match size {
        1 => Width::W8,
        2 => Width::W16,
        4 => Width::W32,
        _ => Width::W64,
    };
    Some(match of {
        Type::Integer(size, true) => FieldKind::Signed(width(*size)),
        Type::Integer(size, false) => FieldKind::Unsigned(width(*size)),
        Type::Varint => FieldKind::Signed(Width::W64),
        Type::Varuint => FieldKind::Unsigned(Width::W64),
        Type::Bool => FieldKind::Bool(Width::W32),
        Type::Float { is_double: false } => FieldKind::Float(FloatWidth::W32),
        Type::Float { is_double: true } => FieldKind::Float(FloatWidth::W64),
        Type::FileTime => FieldKind::FileTime,
        Type::Guid => FieldKind::Guid,
        Type::Utf8 => FieldKind::Char,
        Type::Utf16 => FieldKind::Utf16,
        Type::Object(fields) => FieldKind::Struct(Arc::new(structure(fields)?)),
        Type::WideText | Type::Array(_) | Type::Fixed(..) => {
            let only = Field { name: ELEMENT.to_owned(), of: of.clone() };
            FieldKind::Struct(Arc::new(structure(std::slice::from_ref(&only))?))
        }
        Type::Located { .. } => return None,
    })
}

/// A type in the words of the specification.
fn type_name(of: &Type) -> &'static str {
    match of {
        Type::Object(_) => "Object",
        Type::Integer(1, true) => "SByte",
        Type::Integer(1, false) => "Byte",
        Type::Integer(2, true) => "Int16",
        Type::Integer(2, false) => "UInt16",
        Type::Integer(4, true) => "Int32",
        Type::Integer(4, false) => "UInt32",
        Type::Integer(_, true) => "Int64",
        Type::Integer(_, false) => "UInt64",
        Type::Bool => "Boolean",
        Type::Float { is_double: false } => "Single",
        Type::Float { is_double: true } => "Double",
        Type::FileTime => "DateTime",
        Type::Guid => "Guid",
        Type::Utf16 => "UTF16CodeUnit",
        Type::WideText => "NullTerminatedUTF16String",
        Type::Array(_) => "Array",
        Type::Fixed(..) => "FixedLengthArray",
        Type::Varint => "VarInt",
        Type::Varuint => "VarUInt",
        Type::Utf8 => "UTF8CodeUnit",
        Type::Located { is_relative: true, .. } => "RelLoc",
        Type::Located { is_relative: false, .. } => "DataLoc",
    }
}

fn is_located(of: &Type) -> bool {
    match of {
        Type::Located { .. } => true,
        Type::Object(fields) => fields.iter().any(|field| is_located(&field.of)),
        Type::Array(of) | Type::Fixed(of, _) => is_located(of),
        _ => false,
    }
}

pub(super) fn has_varints(fields: &[Field]) -> bool {
    fn is_or_has(of: &Type) -> bool {
        match of {
            Type::Varint | Type::Varuint => true,
            Type::Object(fields) => has_varints(fields),
            Type::Array(of) | Type::Fixed(of, _) | Type::Located { element: of, .. } => is_or_has(of),
            _ => false,
        }
    }
    fields.iter().any(|field| is_or_has(&field.of))
}

/// An event's bytes as the format of its fields has them, which have numbers of variable length; if it has more fields, all that is behind
/// these, too.
pub(super) fn described(fields: &[Field], has_more: bool, payload: Cursor<'_>) -> Result<Vec<u8>, ReadError> {
    let mut out = Vec::new();
    let (values, rest) = values_and_rest(fields, payload)?;
    for (field, value) in fields.iter().zip(values) {
        write(&mut out, &field.of, &value);
    }
    if has_more {
        out.extend_from_slice(rest.rest());
    }
    Ok(out)
}

/// Adds a value of a type.
fn write(out: &mut Vec<u8>, of: &Type, value: &Value) {
    let size = match of {
        Type::Integer(size, _) => usize::from(*size),
        Type::Bool | Type::Float { is_double: false } => 4,
        Type::Utf16 => 2,
        Type::Utf8 => 1,
        _ => 8,
    };
    match (of, value) {
        (_, Value::Unsigned(value)) => out.extend_from_slice(&value.to_le_bytes()[..size]),
        (_, Value::Signed(value)) => out.extend_from_slice(&value.to_le_bytes()[..size]),
        (Type::Float { is_double: false }, Value::Float(value)) => {
            out.extend_from_slice(&(*value as f32).to_le_bytes());
        }
        (_, Value::Float(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (_, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (Type::WideText, Value::Text(text)) => {
            out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        (Type::Array(_), Value::Text(text)) => {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        (_, Value::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (Type::Object(fields), Value::List(values)) => {
            for (field, value) in fields.iter().zip(values) {
                write(out, &field.of, value);
            }
        }
        (Type::Array(of), Value::List(values)) => {
            out.extend_from_slice(&(values.len() as u16).to_le_bytes());
            for value in values {
                write(out, of, value);
            }
        }
        (Type::Fixed(of, _), Value::List(values)) => {
            for value in values {
                write(out, of, value);
            }
        }
        (_, Value::List(_)) => {}
    }
}
