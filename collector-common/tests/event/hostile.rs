//! Any format over any bytes: no panic, the ways to a value agree, and the JSON is JSON. Values put down by the test's
//! encoder behind fields of all sizes come back.

use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventData, EventField, EventFieldRef, EventFormat, Extent, FieldKind, Place, PointerWidth,
    Value, Width, filter, spec,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::encode::{F32, F64, Payload, U8, add};

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::W8), Just(Width::W16), Just(Width::W32), Just(Width::W64)]
}

fn order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)]
}

fn kind() -> impl Strategy<Value = FieldKind> {
    prop_oneof![
        width().prop_map(FieldKind::Unsigned),
        width().prop_map(FieldKind::Signed),
        width().prop_map(FieldKind::Bool),
        Just(F32),
        Just(F64),
        Just(FieldKind::Pointer(PointerWidth::W32)),
        Just(FieldKind::Char),
        Just(FieldKind::Utf16),
        Just(FieldKind::Ipv4),
        Just(FieldKind::Ipv6),
        Just(FieldKind::Guid),
        Just(FieldKind::FileTime),
        (width(), 0..70_u8, 0..70_u8, any::<bool>())
            .prop_map(|(unit, first, count, signed)| FieldKind::Bits { unit, first, count, signed }),
    ]
}

/// A declaration; the count of another is the field of this number, if it will do.
#[derive(Clone, Debug)]
struct Declared {
    kind: FieldKind,
    extent: Result<Extent, usize>,
    place: Place,
    /// Whether all fields so far become a structure, of which this field is made.
    wrap: bool,
}

fn declared() -> impl Strategy<Value = Declared> {
    let extent = prop_oneof![
        4 => Just(Ok(Extent::One)),
        1 => (0..5_u32).prop_map(|count| Ok(Extent::Array(count))),
        1 => any::<u32>().prop_map(|count| Ok(Extent::Array(count))),
        1 => Just(Ok(Extent::ZeroTerminated)),
        1 => width().prop_map(|width| Ok(Extent::LengthPrefixed(width))),
        1 => width().prop_map(|width| Ok(Extent::CountPrefixed(width))),
        1 => Just(Ok(Extent::DataLoc)),
        1 => Just(Ok(Extent::RelLoc)),
        1 => Just(Ok(Extent::Rest)),
        2 => any::<usize>().prop_map(Err),
    ];
    let place = prop_oneof![
        6 => Just(Place::AfterPrevious),
        2 => (0..40_u32).prop_map(Place::At),
        1 => any::<u32>().prop_map(Place::At),
    ];
    (kind(), extent, place, prop::bool::weighted(0.1)).prop_map(|(kind, extent, place, wrap)| Declared {
        kind,
        extent,
        place,
        wrap,
    })
}

fn build(order: ByteOrder, fields: Vec<Declared>) -> EventFormat {
    let mut format = EventFormat::new(order);
    for (number, Declared { kind, extent, place, wrap }) in fields.into_iter().enumerate() {
        let mut kind = kind;
        if wrap {
            kind = FieldKind::Struct(Arc::new(format));
            format = EventFormat::new(order);
        }
        let refs: Vec<EventFieldRef> = format.field_refs().collect();
        let extent = match extent {
            Ok(extent) => extent,
            Err(index) => {
                index.checked_rem(refs.len()).map_or(Extent::One, |index| Extent::CountOf(refs[index]))
            }
        };
        // What the format refuses is left out.
        let _ = format.add_field(EventField::new(format!("f{number}"), "", kind, extent, place));
    }
    format
}

fn use_all(data: &EventData<'_>) {
    for (field, (declared, value)) in data.format().field_refs().zip(data.values()) {
        let direct = data.value(field);
        assert_eq!(
            format!("{value:?}"),
            format!("{direct:?}"),
            "{} is the same by itself and in order",
            declared.name()
        );
        let _ = (data.try_get_u8(field), data.try_get_u64(field), data.try_get_i8(field));
        let _ = (data.try_get_f32(field), data.try_get_bool(field), data.try_get_str(field));
        let _ = (data.try_get_utf16(field).map(|text| text.to_string()), data.try_get_bytes(field));
        if let (Ok(Value::Unsigned(value)), Ok(got)) = (&direct, data.try_get_u64(field)) {
            assert_eq!(*value, got);
        }
        if let (Ok(Value::Signed(value)), Ok(got)) = (&direct, data.try_get_i64(field)) {
            assert_eq!(*value, got);
        }
    }
}

proptest! {
    #[test]
    fn any_format_over_any_bytes(
        order in order(),
        fields in vec(declared(), 0..24),
        bytes in prop_oneof![vec(any::<u8>(), 0..200), vec(0..4_u8, 0..200)],
    ) {
        let format = build(order, fields);
        let data = EventData::new(&bytes, &bytes, &format);
        use_all(&data);
        let json = data.as_json().to_string();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
        let _ = data.as_text().to_string();
    }

    /// Numbers between texts of all lengths, in either order.
    #[test]
    fn what_was_put_down_comes_back(order in order(), parts in vec((width(), any::<u64>(), ".{0,12}", 0..3), 0..12)) {
        let mut format = EventFormat::new(order);
        let mut payload = Payload::new(order);
        let mut expected = Vec::new();
        for (width, number, text, form) in &parts {
            let (width, text) = (*width, text.replace('\0', "0"));
            let bytes = width.bytes() as usize;
            let unsigned = add(&mut format, "unsigned", FieldKind::Unsigned(width), Extent::One);
            let signed = add(&mut format, "signed", FieldKind::Signed(width), Extent::One);
            payload.number(*number, bytes).number(*number, bytes);
            let kind = if *form == 2 { FieldKind::Utf16 } else { FieldKind::Char };
            let extent = if *form == 0 { Extent::LengthPrefixed(Width::W16) } else { Extent::ZeroTerminated };
            let string = add(&mut format, "text", kind, extent);
            match form {
                0 => payload.number(text.len() as u64, 2).raw(text.as_bytes()),
                1 => payload.raw(text.as_bytes()).raw(&[0]),
                _ => payload.utf16(&text).number(0, 2),
            };
            let unused = 64 - width.bits();
            expected.push((unsigned, number << unused >> unused, signed, (*number as i64) << unused >> unused, string, text));
        }
        let data = EventData::new(&[], &payload.bytes, &format);
        for (unsigned, value, signed, signed_value, string, text) in expected {
            prop_assert_eq!(data.try_get_u64(unsigned), Ok(value));
            prop_assert_eq!(data.try_get_i64(signed), Ok(signed_value));
            match data.value(string) {
                Ok(Value::Text(got)) => prop_assert_eq!(got.to_str(), Ok(&*text)),
                Ok(Value::Utf16(got)) => prop_assert_eq!(got.to_string(), text),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn any_text_is_a_filter_or_an_error(text in ".{0,60}") {
        if let Err(error) = filter::parse(&text) {
            prop_assert!(error.column() <= text.chars().count() + 1);
            prop_assert!(error.to_string().lines().count() == 3);
        }
        let _ = spec::parse(&text);
    }

    #[test]
    fn words_of_filters_in_any_order(words in vec(prop_oneof![
        Just("and"), Just("or"), Just("not"), Just("("), Just(")"), Just("x"), Just("y"), Just("=="), Just("&"),
        Just("1"), Just("-2.5"), Just("'t'"), Just("contains"), Just("~"), Just("<"), Just("x == 1"), Just("y ~ 'a*'"),
    ], 0..20)) {
        let mut format = EventFormat::default();
        add(&mut format, "x", U8, Extent::One);
        add(&mut format, "y", FieldKind::Char, Extent::Rest);
        if let Ok(predicate) = filter::parse(&words.join(" ")).and_then(|filter| filter.compile(&format)) {
            for bytes in [&b""[..], b"\x01", b"\x01abc"] {
                let _ = predicate.accepts(&EventData::new(bytes, bytes, &format));
            }
        }
    }
}
