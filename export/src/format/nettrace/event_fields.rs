//! Fields of raw events: what they are in the words of the file, and an event's bytes written so.
//!
//! The source's bytes may have gaps, another byte order and types that the file has none for, so fields are written anew, one behind the
//! other: integers with their width, bits with 8 bytes, addresses as integers, all text and whatever is told as text (addresses of
//! networks, Windows' times) as UTF-8, lists with their number. What the kernel writes before all fields of a tracepoint is left out.

use collector_common::event::{
    EventData, EventField, EventFormat, FieldKind, FloatWidth, PointerWidth, Value, Width,
};

use super::wire::{cut, text};

/// `PerfView` keeps the size of an event in 16 bits.
const LARGEST: usize = u16::MAX as usize;

/// Bytes up to which lists and text are written: behind them, other fields have room.
const FULL: usize = 60_000;

/// The most bytes of a field's name.
const LONGEST_NAME: usize = 1 << 10;

/// Codes of types.
mod code {
    pub(super) const OBJECT: u8 = 1;
    pub(super) const BOOL: u8 = 3;
    pub(super) const GUID: u8 = 17;
    pub(super) const ARRAY: u8 = 19;
    pub(super) const UTF8: u8 = 23;
}

/// Fields that are written.
fn is_told(field: &EventField) -> bool {
    !field.name().starts_with("common_")
}

/// Adds the descriptions of a format's fields. `false` where one has no room for its size; what was added is no use then.
pub(super) fn describe(out: &mut Vec<u8>, format: &EventFormat) -> bool {
    let count = format.fields().iter().filter(|field| is_told(field)).count();
    out.extend_from_slice(&(count as u16).to_le_bytes());
    for field in format.fields().iter().filter(|field| is_told(field)) {
        let mut own = Vec::new();
        text(&mut own, cut(field.name(), LONGEST_NAME));
        if field.is_array() {
            own.push(code::ARRAY);
        }
        if !describe_one(&mut own, field.kind()) {
            return false;
        }
        let Ok(size) = u16::try_from(own.len()) else { return false };
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&own);
    }
    true
}

fn describe_one(out: &mut Vec<u8>, kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Struct(format) => {
            out.push(code::OBJECT);
            return describe(out, format);
        }
        FieldKind::Unsigned(width) => out.push(unsigned(*width)),
        FieldKind::Signed(width) => out.push(unsigned(*width) - 1),
        FieldKind::Pointer(width) => out.push(unsigned(width.width())),
        FieldKind::Bits { signed, .. } => out.push(unsigned(Width::W64) - u8::from(*signed)),
        FieldKind::Float(FloatWidth::W32) => out.push(13),
        FieldKind::Float(FloatWidth::W64) => out.push(14),
        FieldKind::Bool(_) => out.push(code::BOOL),
        FieldKind::Guid => out.push(code::GUID),
        FieldKind::Port => out.push(unsigned(Width::W16)),
        _ => out.extend_from_slice(&[code::ARRAY, code::UTF8]),
    }
    true
}

/// The code of an unsigned integer; the signed one of the same width is one less.
const fn unsigned(width: Width) -> u8 {
    match width {
        Width::W8 => 6,
        Width::W16 => 8,
        Width::W32 => 10,
        Width::W64 => 12,
    }
}

/// Adds an event's fields. Out: whether they say all that the event does.
pub(super) fn write(out: &mut Vec<u8>, data: &EventData<'_>) -> bool {
    let is_whole = object(out, data);
    let fits = out.len() <= LARGEST;
    out.truncate(LARGEST);
    is_whole && fits
}

fn object(out: &mut Vec<u8>, data: &EventData<'_>) -> bool {
    let mut is_whole = true;
    for (field, value) in data.values().filter(|(field, _)| is_told(field)) {
        is_whole &= match value {
            Ok(Value::Array(elements)) => list(out, field.kind(), elements),
            Ok(value) => one(out, field.kind(), &value),
            Err(_) => {
                nothing(out, field);
                false
            }
        };
    }
    is_whole
}

fn list<'a>(out: &mut Vec<u8>, kind: &FieldKind, elements: impl Iterator<Item = Value<'a>>) -> bool {
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    let (mut count, mut is_whole) = (0_u16, true);
    for element in elements {
        if out.len() > FULL || count == u16::MAX {
            is_whole = false;
            break;
        }
        is_whole &= one(out, kind, &element);
        count += 1;
    }
    if let Some(place) = out.get_mut(at..at + 2) {
        place.copy_from_slice(&count.to_le_bytes());
    }
    is_whole
}

fn one(out: &mut Vec<u8>, kind: &FieldKind, value: &Value<'_>) -> bool {
    match *value {
        Value::Unsigned(value) | Value::Pointer(value) => {
            out.extend_from_slice(&value.to_le_bytes()[..size(kind)]);
            true
        }
        Value::Signed(value) => {
            out.extend_from_slice(&value.to_le_bytes()[..size(kind)]);
            true
        }
        Value::Float32(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            true
        }
        Value::Float64(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            true
        }
        Value::Bool(value) => {
            out.extend_from_slice(&u32::from(value).to_le_bytes());
            true
        }
        Value::Guid(guid) => {
            // The first three parts have their lowest byte first.
            let mut bytes = guid.0;
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
            out.extend_from_slice(&bytes);
            true
        }
        Value::Text(text) => utf8(out, &text.to_string(), text.to_str().is_ok()),
        Value::Utf16(text) => {
            let is_whole = char::decode_utf16(text.units()).all(|char| char.is_ok());
            utf8(out, &text.to_string(), is_whole)
        }
        Value::Ipv4(address) => utf8(out, &address.to_string(), true),
        Value::Ipv6(address) => utf8(out, &address.to_string(), true),
        Value::FileTime(time) => utf8(out, &time.to_string(), true),
        Value::Sid(sid) => utf8(out, &sid.to_string(), true),
        Value::Struct(data) => object(out, &data),
        // A list is no element, and kinds that come later are told as text.
        _ => utf8(out, "", false),
    }
}

/// Bytes of a number of this kind in the file.
fn size(kind: &FieldKind) -> usize {
    match kind {
        FieldKind::Unsigned(width) | FieldKind::Signed(width) => width.bytes() as usize,
        FieldKind::Pointer(PointerWidth::W32) => 4,
        FieldKind::Port => 2,
        _ => 8,
    }
}

fn utf8(out: &mut Vec<u8>, text: &str, is_whole: bool) -> bool {
    let own = cut(text, FULL.saturating_sub(out.len()));
    out.extend_from_slice(&(own.len() as u16).to_le_bytes());
    out.extend_from_slice(own.as_bytes());
    is_whole && own.len() == text.len()
}

/// Adds what stands for a value that the event does not have: nothing of a list or text, 0 of a number.
fn nothing(out: &mut Vec<u8>, field: &EventField) {
    if field.is_array() {
        out.extend_from_slice(&[0; 2]);
        return;
    }
    let zeros = match field.kind() {
        FieldKind::Struct(format) => {
            format.fields().iter().filter(|field| is_told(field)).for_each(|field| nothing(out, field));
            0
        }
        FieldKind::Float(FloatWidth::W32) | FieldKind::Bool(_) => 4,
        FieldKind::Guid => 16,
        kind @ (FieldKind::Unsigned(_)
        | FieldKind::Signed(_)
        | FieldKind::Pointer(_)
        | FieldKind::Port
        | FieldKind::Bits { .. }
        | FieldKind::Float(FloatWidth::W64)) => size(kind),
        _ => 2,
    };
    out.resize(out.len() + zeros, 0);
}
