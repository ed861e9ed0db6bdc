//! Types of events as versions 4 and 5 have them.

use collector_common::record::EventFacts;

use super::cursor::Cursor;
use super::fields::{DEEPEST, Field, Type, UNKNOWN, simple};
use super::{EventType, ReadError};

type Result<T> = std::result::Result<T, ReadError>;

/// Where a description of fields is from, which decides how each is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The type, then the name.
    First,
    /// The size, the name, then the type, which may be an array.
    Second,
}

/// Reads a type of events, and its number.
pub(super) fn event_type(mut row: Cursor<'_>) -> Result<(u32, EventType)> {
    const OPCODE: u8 = 1;
    const FIELDS: u8 = 2;
    let number = row.u32()?;
    let provider = row.wide_text()?;
    let id = row.u32()?;
    let name = row.wide_text()?;
    let (keywords, version, level) = (row.u64()?, row.u32()?, row.u32()?);
    let facts = EventFacts { version: version as u8, level: level as u8, opcode: 0, keywords };
    let mut of = EventType { provider, id, name, facts, ..EventType::default() };
    if !row.is_empty() {
        of.fields = fields(&mut row, Layout::First, 0)?;
    }
    while !row.is_empty() {
        let size = row.u32()?;
        let kind = row.u8()?;
        let mut tag = row.sized(size as usize)?;
        match kind {
            OPCODE => of.facts.opcode = tag.u8()?,
            FIELDS => of.fields = fields(&mut tag, Layout::Second, 0)?,
            _ => {}
        }
    }
    Ok((number, of))
}

fn fields(cursor: &mut Cursor<'_>, layout: Layout, depth: u32) -> Result<Vec<Field>> {
    let count = cursor.u32()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        fields.push(match layout {
            Layout::First => {
                let of = read_type(cursor, layout, depth)?;
                Field { name: cursor.wide_text()?, of }
            }
            Layout::Second => {
                let before = *cursor;
                let size = cursor.u32()?;
                let rest = size.checked_sub(4).ok_or_else(|| before.malformed("a field of no size"))?;
                let mut field = cursor.sized(rest as usize)?;
                Field { name: field.wide_text()?, of: read_type(&mut field, layout, depth)? }
            }
        });
    }
    Ok(fields)
}

fn read_type(cursor: &mut Cursor<'_>, layout: Layout, depth: u32) -> Result<Type> {
    /// What came with version 6.
    const NEWER: u8 = 20;
    if depth > DEEPEST {
        return Err(cursor.too_large("the nesting of a type"));
    }
    let before = *cursor;
    let code = cursor.u32()?;
    match u8::try_from(code) {
        Ok(1) => Ok(Type::Object(fields(cursor, layout, depth + 1)?)),
        Ok(19) if layout == Layout::Second => {
            Ok(Type::Array(Box::new(read_type(cursor, layout, depth + 1)?)))
        }
        Ok(code) if code < NEWER => simple(code, before),
        _ => Err(before.malformed(UNKNOWN)),
    }
}
