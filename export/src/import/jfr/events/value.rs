//! Values of fields: read where they stand when they are asked for, and no deeper than they are. A constant may refer to others, to
//! itself, too: it is looked up when it is asked for.

use std::borrow::Cow;

use super::ReadError;
use super::chunk::Chunk;
use super::cursor::{Cursor, WrittenText};
use super::types::{Field, Kind, Type};

/// A field's value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// Nothing: no text, a constant that is not there, or a field that is not there.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A whole number that is never below 0.
    Unsigned(u64),
    /// A number of single or double precision.
    Float(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// Fields.
    Struct(Struct<'a>),
    /// Several values.
    List(List<'a>),
}

impl<'a> Value<'a> {
    /// A whole number; `None` for what is none. Of unsigned ones beyond 63 bits those below 0.
    pub fn integer(&self) -> Option<i64> {
        match *self {
            Self::Integer(number) => Some(number),
            Self::Unsigned(number) => Some(number.cast_signed()),
            Self::Boolean(is_so) => Some(is_so.into()),
            _ => None,
        }
    }

    /// A whole number that is not below 0.
    pub fn unsigned(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(number) => Some(number),
            Self::Integer(number) => number.try_into().ok(),
            _ => None,
        }
    }

    /// Text, or that of a type that has it as its only field, as symbols and states of threads are.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Struct(of) if of.kind().fields().len() == 1 => match of.at(0) {
                Self::Text(text) => Some(text),
                Self::Struct(of) => match of.at(0) {
                    Self::Text(text) => Some(text),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Fields.
    pub fn fields(&self) -> Option<Struct<'a>> {
        match self {
            Self::Struct(of) => Some(*of),
            _ => None,
        }
    }

    /// A field's field; [`Value::Null`] where there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Self {
        self.fields().map_or(Self::Null, |of| of.get(name))
    }
}

/// Names a constant of a chunk: equal ones are equal constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    of: usize,
    number: u64,
}

impl Constant {
    /// Its number, as the file has it.
    pub const fn number(self) -> u64 {
        self.number
    }
}

/// Fields at a place of a chunk: an event, a constant, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Struct<'a> {
    pub(super) chunk: &'a Chunk,
    /// A position among the types.
    pub(super) of: usize,
    pub(super) at: usize,
    /// The constant that it is.
    pub(super) constant: Option<Constant>,
}

impl<'a> Struct<'a> {
    /// Its type.
    pub fn kind(&self) -> &'a Type {
        &self.chunk.types().list[self.of]
    }

    /// The constant that it is, where it is one.
    pub const fn constant(&self) -> Option<Constant> {
        self.constant
    }

    /// The constant that a field refers to, where it refers to one, whether that is there or not.
    pub fn constant_of(&self, name: &str) -> Option<Constant> {
        self.constant_at(self.kind().position(name)?)
    }

    /// The constant that the field at a position refers to, where it refers to one.
    pub fn constant_at(&self, position: usize) -> Option<Constant> {
        let field = self.kind().fields().get(position).filter(|field| !field.is_list)?;
        let mut cursor = self.cursor_at(position)?;
        if field.is_constant {
            return Some(Constant { of: field.of, number: cursor.long().ok()? });
        }
        if self.chunk.types().list[field.of].kind != Kind::Text {
            return None;
        }
        let number = cursor.text_constant()?;
        Some(Constant { of: self.chunk.types().text?, number })
    }

    /// The value of a field; [`Value::Null`] where there is none of that name.
    pub fn get(&self, name: &str) -> Value<'a> {
        let position = self.kind().position(name);
        position.map_or(Value::Null, |position| self.at(position))
    }

    /// The value of the field at a position.
    pub fn at(&self, position: usize) -> Value<'a> {
        let found = self.kind().fields().get(position).zip(self.cursor_at(position));
        let value = found.and_then(|(field, cursor)| field_value(self.chunk, field, cursor).ok());
        value.unwrap_or(Value::Null)
    }

    /// Where the field at a position stands.
    fn cursor_at(&self, position: usize) -> Option<Cursor<'a>> {
        let mut cursor = self.chunk.cursor(self.at);
        let kind = self.kind();
        for &written in kind.written.iter().take_while(|written| **written < position) {
            skip_field(self.chunk, &kind.fields()[written], &mut cursor).ok()?;
        }
        Some(cursor)
    }

    /// All fields with their values.
    pub fn fields(self) -> impl Iterator<Item = (&'a Field, Value<'a>)> {
        let positions = 0..self.kind().fields().len();
        positions.map(move |position| (&self.kind().fields()[position], self.at(position)))
    }
}

impl Field {
    /// Whether each of its values takes bytes. A list may tell of any number of others, which say nothing.
    fn has_bytes(&self, chunk: &Chunk) -> bool {
        self.is_constant || !chunk.types().list[self.of].is_empty
    }
}

/// Values one behind the other. Those that take no bytes are passed over.
#[derive(Clone, Debug)]
pub struct List<'a> {
    chunk: &'a Chunk,
    field: &'a Field,
    left: usize,
    at: usize,
}

impl List<'_> {
    /// Whether they have fields.
    pub fn is_of_structs(&self) -> bool {
        self.chunk.types().list[self.field.of].kind == Kind::Struct
    }
}

impl<'a> Iterator for List<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = self.chunk.cursor(self.at);
        let value = item(self.chunk, self.field, cursor).unwrap_or(Value::Null);
        if skip_item(self.chunk, self.field, &mut cursor).is_err() {
            self.left = 0;
        }
        self.at = cursor.at();
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

fn field_value<'a>(
    chunk: &'a Chunk,
    field: &'a Field,
    mut cursor: Cursor<'a>,
) -> Result<Value<'a>, ReadError> {
    if field.is_list {
        let count = cursor.count()?;
        let left = if field.has_bytes(chunk) { count } else { 0 };
        return Ok(Value::List(List { chunk, field, left, at: cursor.at() }));
    }
    item(chunk, field, cursor)
}

/// One value of a field, of which there may be several.
fn item<'a>(chunk: &'a Chunk, field: &'a Field, mut cursor: Cursor<'a>) -> Result<Value<'a>, ReadError> {
    if field.is_constant {
        let number = cursor.long()?;
        let at = chunk.constant_at(field.of, number);
        let constant = Some(Constant { of: field.of, number });
        let value = at.and_then(|at| value(chunk, field.of, false, chunk.cursor(at), constant).ok());
        return Ok(value.unwrap_or(Value::Null));
    }
    value(chunk, field.of, field.is_unsigned, cursor, None)
}

fn value<'a>(
    chunk: &'a Chunk,
    of: usize,
    is_unsigned: bool,
    mut cursor: Cursor<'a>,
    constant: Option<Constant>,
) -> Result<Value<'a>, ReadError> {
    let whole = |signed: i64, unsigned: u64| {
        if is_unsigned { Value::Unsigned(unsigned) } else { Value::Integer(signed) }
    };
    Ok(match chunk.types().list[of].kind {
        Kind::Boolean => Value::Boolean(cursor.byte()? != 0),
        Kind::Byte => {
            let number = cursor.byte()?;
            whole(number.cast_signed().into(), number.into())
        }
        Kind::Short => {
            let number = cursor.short()?;
            whole(number.cast_signed().into(), number.into())
        }
        Kind::Char => Value::Unsigned(cursor.short()?.into()),
        Kind::Int => {
            let number = cursor.int()?;
            whole(number.cast_signed().into(), number.into())
        }
        Kind::Long => {
            let number = cursor.long()?;
            whole(number.cast_signed(), number)
        }
        Kind::Float => Value::Float(cursor.float()?.into()),
        Kind::Double => Value::Float(cursor.double()?),
        Kind::Text => match cursor.text()? {
            WrittenText::Null => Value::Null,
            WrittenText::Text(text) => Value::Text(text),
            WrittenText::Constant(number) => chunk.constant_text(number).map_or(Value::Null, Value::Text),
        },
        Kind::Struct => Value::Struct(Struct { chunk, of, at: cursor.at(), constant }),
    })
}

/// Leaves out a field.
fn skip_field(chunk: &Chunk, field: &Field, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    let count = if field.is_list { cursor.count()? } else { 1 };
    if !field.has_bytes(chunk) {
        return Ok(());
    }
    for _ in 0..count {
        skip_item(chunk, field, cursor)?;
    }
    Ok(())
}

fn skip_item(chunk: &Chunk, field: &Field, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    if field.is_constant { cursor.long().map(drop) } else { skip(chunk, field.of, cursor) }
}

/// Leaves out a value: what was left out once can be read.
pub(super) fn skip(chunk: &Chunk, of: usize, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    let of = &chunk.types().list[of];
    match of.kind {
        Kind::Boolean | Kind::Byte => cursor.byte().map(drop),
        Kind::Short | Kind::Char => cursor.short().map(drop),
        Kind::Int => cursor.int().map(drop),
        Kind::Long => cursor.long().map(drop),
        Kind::Float => cursor.float().map(drop),
        Kind::Double => cursor.double().map(drop),
        Kind::Text => cursor.skip_text(),
        Kind::Struct => {
            for &written in &of.written {
                skip_field(chunk, &of.fields()[written], cursor)?;
            }
            Ok(())
        }
    }
}
