//! Types of fields, and an event's bytes taken apart by them.

use super::ReadError;
use super::cursor::Cursor;

type Result<T> = std::result::Result<T, ReadError>;

/// What a type is whose number means none.
pub(super) const UNKNOWN: &str = "a type of field that does not exist";

/// How deep types may be nested.
pub(super) const DEEPEST: u32 = 8;

/// The largest event that is taken apart: `PerfView` keeps the size of one in 16 bits.
const LARGEST: usize = u16::MAX as usize;

/// Values of an event that may be there without bytes, as objects without fields.
const MOST_EMPTY: usize = 1 << 7;

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Object(Vec<Field>),
    /// An integer of so many bytes, and whether it is signed.
    Integer(u8, bool),
    /// A truth value in 4 bytes.
    Bool,
    /// A floating-point number in 4 or, if so, 8 bytes.
    Float {
        is_double: bool,
    },
    /// 100 ns since 1601. The specification has the eight parts of a date, but .NET's runtime writes this, and `PerfView` reads it.
    FileTime,
    Guid,
    /// A unit of UTF-16.
    Utf16,
    /// UTF-16 up to a unit of 0.
    WideText,
    /// Elements after their number in 16 bits.
    Array(Box<Self>),
    /// As many elements as this says.
    Fixed(Box<Self>, u16),
    Varint,
    Varuint,
    /// A byte of UTF-8.
    Utf8,
    /// Where in the event an array of these is: so far behind the event's start or, if so, behind this field.
    Located {
        element: Box<Self>,
        is_relative: bool,
    },
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes of a type that is none of these.
    Bytes(Vec<u8>),
    /// Elements of an array, or fields of an object.
    List(Vec<Self>),
}

/// Reads the descriptions of an event's fields up to the first one of a type that means none. Out: these, and whether there are more.
///
/// `one_collect` writes arrays of type 0: of text with its length before it, and of what it has no number for. Where such a field ends is
/// not told, so that nothing behind it can be found either.
pub(super) fn leading_fields(cursor: &mut Cursor<'_>) -> Result<(Vec<Field>, bool)> {
    let count = cursor.u16()?;
    let (mut fields, mut has_more) = (Vec::new(), false);
    for _ in 0..count {
        let mut field = cursor.part()?;
        if has_more {
            continue;
        }
        let name = field.text()?.to_owned();
        match read_type(&mut field, 0) {
            Ok(of) => fields.push(Field { name, of }),
            Err(ReadError::Malformed { what: UNKNOWN, .. }) => has_more = true,
            Err(error) => return Err(error),
        }
    }
    Ok((fields, has_more))
}

/// Reads the descriptions of an object's fields.
fn fields(cursor: &mut Cursor<'_>, depth: u32) -> Result<Vec<Field>> {
    let count = cursor.u16()?;
    // Each takes bytes, so that there are never more than what is there has room for.
    let mut fields = Vec::new();
    for _ in 0..count {
        let mut field = cursor.part()?;
        let name = field.text()?.to_owned();
        fields.push(Field { name, of: read_type(&mut field, depth)? });
    }
    Ok(fields)
}

fn read_type(cursor: &mut Cursor<'_>, depth: u32) -> Result<Type> {
    if depth > DEEPEST {
        return Err(cursor.too_large("the nesting of a type"));
    }
    let before = *cursor;
    let code = cursor.u8()?;
    let element = |cursor: &mut Cursor<'_>| read_type(cursor, depth + 1).map(Box::new);
    Ok(match code {
        1 => Type::Object(fields(cursor, depth + 1)?),
        19 => Type::Array(element(cursor)?),
        22 => Type::Fixed(element(cursor)?, cursor.u16()?),
        20 => Type::Varint,
        21 => Type::Varuint,
        24 | 25 => {
            let element = element(cursor)?;
            if !has_fixed_size(&element) {
                return Err(before.malformed("a located array of elements whose size varies"));
            }
            Type::Located { element, is_relative: code == 24 }
        }
        code => simple(code, before)?,
    })
}

/// Types that all versions have, of which this one is told there.
pub(super) fn simple(code: u8, place: Cursor<'_>) -> Result<Type> {
    Ok(match code {
        6 | 26 => Type::Integer(1, false),
        4 => Type::Utf16,
        8 => Type::Integer(2, false),
        5 => Type::Integer(1, true),
        7 => Type::Integer(2, true),
        9 => Type::Integer(4, true),
        3 => Type::Bool,
        10 => Type::Integer(4, false),
        11 => Type::Integer(8, true),
        12 => Type::Integer(8, false),
        13 => Type::Float { is_double: false },
        14 => Type::Float { is_double: true },
        16 => Type::FileTime,
        17 => Type::Guid,
        18 => Type::WideText,
        23 => Type::Utf8,
        _ => return Err(place.malformed(UNKNOWN)),
    })
}

fn has_fixed_size(of: &Type) -> bool {
    match of {
        Type::Object(fields) => fields.iter().all(|field| has_fixed_size(&field.of)),
        Type::Fixed(element, _) => has_fixed_size(element),
        Type::Array(_) | Type::WideText => false,
        _ => true,
    }
}

/// Takes an event apart: the values of its fields, in their order.
pub(super) fn values(fields: &[Field], payload: Cursor<'_>) -> Result<Vec<Value>> {
    values_and_rest(fields, payload).map(|(values, _)| values)
}

/// The same, and what is behind them.
pub(super) fn values_and_rest<'a>(
    fields: &[Field],
    mut payload: Cursor<'a>,
) -> Result<(Vec<Value>, Cursor<'a>)> {
    if payload.len() > LARGEST {
        return Err(payload.too_large("an event"));
    }
    // A value has bytes, or is an array or an object around others, which have more than one as a rule.
    let mut left = 2 * payload.len() + MOST_EMPTY;
    Ok((object(fields, &mut payload, &mut left)?, payload))
}

/// The first value of an event.
pub(super) fn first_value(fields: &[Field], payload: Cursor<'_>) -> Result<Option<Value>> {
    let first = fields.get(..1).unwrap_or_default();
    Ok(values(first, payload)?.pop())
}

/// Whether a type is that of a number of variable length, or of text in UTF-8, which may be described as one byte of it.
pub(super) fn is_number_or_text(of: &Type) -> bool {
    match of {
        Type::Varuint | Type::Utf8 => true,
        Type::Array(element) => **element == Type::Utf8,
        _ => false,
    }
}

/// Numbers of variable length, and text where `are_text` says so.
pub(super) fn known_values(are_text: &[bool], mut payload: Cursor<'_>) -> Result<Vec<Value>> {
    let value = |is_text: &bool| {
        if !is_text {
            return payload.varuint().map(Value::Unsigned);
        }
        let count = payload.u16()?;
        Ok(Value::Text(payload.utf8(count.into())?.to_owned()))
    };
    are_text.iter().map(value).collect()
}

/// Room for so many values of those that an event may have.
fn room(count: usize, left: &mut usize, place: &Cursor<'_>) -> Result<Vec<Value>> {
    let too_large = || place.too_large("the number of values of an event");
    *left = left.checked_sub(count).ok_or_else(too_large)?;
    Ok(Vec::with_capacity(count))
}

fn object(fields: &[Field], cursor: &mut Cursor<'_>, left: &mut usize) -> Result<Vec<Value>> {
    let mut values = room(fields.len(), left, cursor)?;
    for field in fields {
        values.push(value(&field.of, cursor, left)?);
    }
    Ok(values)
}

fn value(of: &Type, cursor: &mut Cursor<'_>, left: &mut usize) -> Result<Value> {
    Ok(match of {
        Type::Object(fields) => Value::List(object(fields, cursor, left)?),
        Type::Integer(size, signed) => integer(cursor.bytes((*size).into())?, *signed),
        Type::Bool => integer(cursor.bytes(4)?, false),
        Type::Utf16 => integer(cursor.bytes(2)?, false),
        Type::Float { is_double: false } => Value::Float(f32::from_le_bytes(cursor.array()?).into()),
        Type::Float { is_double: true } => Value::Float(f64::from_le_bytes(cursor.array()?)),
        Type::FileTime => Value::Unsigned(cursor.u64()?),
        Type::Guid => Value::Bytes(cursor.bytes(16)?.to_vec()),
        Type::Located { .. } => Value::Bytes(cursor.bytes(4)?.to_vec()),
        Type::WideText => Value::Text(cursor.wide_text()?),
        Type::Varint => Value::Signed(cursor.varint()?),
        Type::Varuint => Value::Unsigned(cursor.varuint()?),
        Type::Utf8 => Value::Unsigned(cursor.u8()?.into()),
        Type::Array(element) => {
            let count = cursor.u16()?;
            elements(element, count, cursor, left)?
        }
        Type::Fixed(element, count) => elements(element, *count, cursor, left)?,
    })
}

fn elements(element: &Type, count: u16, cursor: &mut Cursor<'_>, left: &mut usize) -> Result<Value> {
    if *element == Type::Utf8 {
        return Ok(Value::Text(cursor.utf8(count.into())?.to_owned()));
    }
    let mut values = room(count.into(), left, cursor)?;
    for _ in 0..count {
        values.push(value(element, cursor, left)?);
    }
    Ok(Value::List(values))
}

/// An integer of at most 8 bytes.
fn integer(bytes: &[u8], signed: bool) -> Value {
    let number = bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let unused = 64 - 8 * bytes.len() as u32;
    if signed { Value::Signed((number << unused).cast_signed() >> unused) } else { Value::Unsigned(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(bytes: &[u8]) -> Cursor<'_> {
        Cursor::of(bytes, 0)
    }

    #[test]
    fn integers_are_extended_by_their_sign() {
        assert_eq!(integer(&[0xfe], true), Value::Signed(-2));
        assert_eq!(integer(&[0xfe], false), Value::Unsigned(254));
        assert_eq!(integer(&[0, 0, 0, 0, 0, 0, 0, 0x80], true), Value::Signed(i64::MIN));
        assert_eq!(integer(&[1, 2], false), Value::Unsigned(0x201));
    }

    #[test]
    fn arrays_of_nothing_end() {
        let nothing = Type::Object(Vec::new());
        let many = Type::Fixed(Box::new(Type::Fixed(Box::new(nothing), u16::MAX)), u16::MAX);
        let fields = [Field { name: String::new(), of: many }];
        assert!(matches!(values(&fields, of(&[])), Err(ReadError::TooLarge { .. })));
    }

    /// Arrays of one element around each byte, of which more are nested than an event has room for; and an event that is too large.
    #[test]
    fn an_event_has_only_so_many_values() {
        let field = |of| [Field { name: String::new(), of }];
        let one = |of| Type::Fixed(Box::new(of), 1);
        let byte = || Type::Integer(1, false);
        let payload = vec![7; 20_000];
        let pairs = field(Type::Fixed(Box::new(one(byte())), 9_999));
        assert!(values(&pairs, of(&payload)).is_ok());
        let nested = field(Type::Fixed(Box::new(one(one(one(byte())))), 20_000));
        assert!(matches!(values(&nested, of(&payload)), Err(ReadError::TooLarge { .. })));
        let bytes = field(Type::Fixed(Box::new(byte()), 3));
        assert_eq!(values(&bytes, of(&vec![7; LARGEST])).unwrap().len(), 1);
        assert!(matches!(values(&bytes, of(&vec![7; LARGEST + 1])), Err(ReadError::TooLarge { .. })));
    }

    #[test]
    fn types_that_are_nested_without_end_are_refused() {
        let bytes = [19; 40];
        assert!(matches!(read_type(&mut of(&bytes), 0), Err(ReadError::TooLarge { .. })));
    }
}
