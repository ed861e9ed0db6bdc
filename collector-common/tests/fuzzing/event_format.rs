//! The input's first bytes declare a format, the rest is an event of it.
//!
//! The first byte is how many fields there are and the byte order; a field is four bytes: its kind, its extent, its
//! place, and a number for these.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventData, EventField, EventFormat, Extent, FieldKind, FloatWidth, Place, PointerWidth, Value,
    Width,
};

/// Fields of a format at most, some of which may become a structure.
const MOST_FIELDS: usize = 31;

/// Reads every field of the declared event in every way.
pub(crate) fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let order = if first & 0x80 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let declared = (usize::from(*first) & MOST_FIELDS).min(rest.len() / 4);
    let (declared, bytes) = rest.split_at(4 * declared);
    let mut format = EventFormat::new(order);
    for field in declared.as_chunks().0 {
        format = with_field(format, *field);
    }
    let data = EventData::new(bytes, bytes, &format);
    read_all(&data);
    let json = data.as_json().to_string();
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
    assert!(data.as_text().to_string().len() >= format.fields().len());
}

/// Adds a field, unless the format refuses it.
fn with_field(mut format: EventFormat, [kind, extent, place, number]: [u8; 4]) -> EventFormat {
    let order = format.order();
    let kind = match kind % 18 {
        0 => FieldKind::Unsigned(width(number)),
        1 => FieldKind::Signed(width(number)),
        2 => FieldKind::Bool(width(number)),
        3 => FieldKind::Float(FloatWidth::W32),
        4 => FieldKind::Float(FloatWidth::W64),
        5 => FieldKind::Pointer(PointerWidth::W32),
        6 => FieldKind::Pointer(PointerWidth::W64),
        7 => FieldKind::Char,
        8 => FieldKind::Utf16,
        9 => FieldKind::Ipv4,
        10 => FieldKind::Ipv6,
        11 => FieldKind::Guid,
        12 => FieldKind::FileTime,
        14 => FieldKind::Port,
        15 => FieldKind::Sid(None),
        16 => FieldKind::Sid(Some(PointerWidth::W64)),
        13 => {
            let structure = FieldKind::Struct(Arc::new(format));
            format = EventFormat::new(order);
            structure
        }
        _ => FieldKind::Bits {
            unit: width(kind >> 4),
            first: number >> 3,
            count: number & 7,
            signed: kind & 1 == 1,
        },
    };
    let fields = format.field_refs().count();
    let counter = format.field_refs().nth(usize::from(number).checked_rem(fields).unwrap_or(0));
    let extent = match extent % 12 {
        0 => Extent::ZeroTerminated,
        1 => Extent::Array(number.into()),
        2 => Extent::Array(u32::from(number) << 24 | 0xff_ffff),
        3 => Extent::LengthPrefixed(width(number)),
        4 => Extent::CountPrefixed(width(number)),
        5 => Extent::DataLoc,
        6 => Extent::RelLoc,
        7 => Extent::Rest,
        8 | 9 => counter.map_or(Extent::One, Extent::CountOf),
        _ => Extent::One,
    };
    let place = match place % 8 {
        0 => Place::At(number.into()),
        1 => Place::At(u32::MAX - u32::from(number)),
        2 => Place::At((number & 15).into()),
        _ => Place::AfterPrevious,
    };
    let _ = format.add_field(EventField::new(format!("f{fields}"), "", kind, extent, place));
    format
}

fn width(number: u8) -> Width {
    match number % 4 {
        0 => Width::W8,
        1 => Width::W16,
        2 => Width::W32,
        _ => Width::W64,
    }
}

fn read_all(data: &EventData<'_>) {
    for (field, (declared, value)) in data.format().field_refs().zip(data.values()) {
        let direct = data.value(field);
        let (in_order, by_itself) = (format!("{value:?}"), format!("{direct:?}"));
        assert_eq!(in_order, by_itself, "{} is the same by itself and in order", declared.name());
        let unsigned = [
            data.try_get_u8(field).map(u64::from),
            data.try_get_u16(field).map(u64::from),
            data.try_get_u32(field).map(u64::from),
            data.try_get_u64(field),
        ];
        let signed = [
            data.try_get_i8(field).map(i64::from),
            data.try_get_i16(field).map(i64::from),
            data.try_get_i32(field).map(i64::from),
            data.try_get_i64(field),
        ];
        for unsigned in unsigned.into_iter().flatten() {
            match &direct {
                Ok(Value::Unsigned(value) | Value::Pointer(value)) => assert_eq!(*value, unsigned),
                Ok(Value::Text(text)) => assert_eq!(text.as_bytes(), [unsigned as u8]),
                other => panic!("{unsigned} is {other:?}"),
            }
        }
        for signed in signed.into_iter().flatten() {
            match &direct {
                Ok(Value::Unsigned(value) | Value::Pointer(value)) => {
                    assert_eq!(i128::from(*value), signed.into());
                }
                Ok(Value::Signed(value)) => assert_eq!(*value, signed),
                Ok(Value::Text(text)) => assert_eq!(i64::from(text.as_bytes()[0]), signed),
                other => panic!("{signed} is {other:?}"),
            }
        }
        let float = data.try_get_f64(field).or(data.try_get_f32(field).map(f64::from));
        assert_eq!(float.is_ok(), matches!(direct, Ok(Value::Float32(_) | Value::Float64(_))));
        if let Ok(text) = data.try_get_str(field) {
            assert!(matches!(&direct, Ok(Value::Text(same)) if same.to_str() == Ok(text)));
        }
        assert_eq!(data.try_get_utf16(field).is_ok(), matches!(direct, Ok(Value::Utf16(_))));
        assert_eq!(data.try_get_guid(field).is_ok(), matches!(direct, Ok(Value::Guid(_))));
        assert!(data.try_get_slice(field).is_ok() || direct.is_err());
    }
}
