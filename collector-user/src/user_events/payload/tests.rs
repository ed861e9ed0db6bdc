//! Values are read back through the format that the kernel makes of the same declaration.

use collector_common::event::{EventData, EventField, EventFormat, Extent, FieldKind, Place, Width};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::user_events::Declaration;

const BYTE: FieldKind = FieldKind::Unsigned(Width::W8);

/// A field for each layout there is, with names.
fn declared() -> Vec<(&'static str, FieldKind, Extent)> {
    let unsigned = [Width::W8, Width::W16, Width::W32, Width::W64].map(FieldKind::Unsigned);
    let signed = [Width::W8, Width::W16, Width::W32, Width::W64].map(FieldKind::Signed);
    let names = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
    let integers =
        unsigned.into_iter().chain(signed).zip(names).map(|(kind, name)| (name, kind, Extent::One));
    let others = [
        ("array", FieldKind::Char, Extent::Array(7)),
        ("text", FieldKind::Char, Extent::RelLoc),
        ("raw", BYTE, Extent::Array(3)),
        ("bytes", BYTE, Extent::RelLoc),
        ("last", FieldKind::Char, Extent::RelLoc),
    ];
    integers.chain(others).collect()
}

fn fields(declared: &[(&'static str, FieldKind, Extent)]) -> Fields {
    let declaration = declared.iter().fold(Declaration::new("e"), |declaration, (name, kind, extent)| {
        declaration.field(*name, kind.clone(), *extent)
    });
    Fields::new("e", declaration.layouts().unwrap())
}

/// The kernel's, without what tracepoints begin with.
fn format(declared: &[(&'static str, FieldKind, Extent)]) -> EventFormat {
    let mut format = EventFormat::default();
    for (name, kind, extent) in declared {
        let field = EventField::new(*name, "", kind.clone(), *extent, Place::AfterPrevious);
        format.add_field(field).unwrap();
    }
    format
}

fn problem(kind: FieldKind, extent: Extent, value: FieldValue<'_>) -> ValueProblem {
    let error = fields(&[("f", kind, extent)]).write(&[value], |_| ()).unwrap_err();
    let WriteError::Value { field, problem, .. } = error else { panic!("{error}") };
    assert_eq!(field, "f");
    problem
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let (text, room) = (FieldKind::Char, |len, room| ValueProblem::Room { len, room });
    for (kind, extent, value, expected) in [
        (BYTE, Extent::One, 256_u16.into(), ValueProblem::Range),
        (BYTE, Extent::One, (-1_i8).into(), ValueProblem::Range),
        (FieldKind::Signed(Width::W8), Extent::One, 128_u8.into(), ValueProblem::Range),
        (FieldKind::Signed(Width::W64), Extent::One, u64::MAX.into(), ValueProblem::Range),
        (BYTE, Extent::One, "1".into(), ValueProblem::Kind("an integer")),
        (text.clone(), Extent::RelLoc, 1_u8.into(), ValueProblem::Kind("text")),
        (text.clone(), Extent::Array(4), b"abc"[..].into(), ValueProblem::Kind("text")),
        (BYTE, Extent::RelLoc, "abc".into(), ValueProblem::Kind("bytes")),
        (text.clone(), Extent::Array(4), "abcde".into(), room(5, 4)),
        (BYTE, Extent::Array(4), [0; 5][..].into(), room(5, 4)),
        (text.clone(), Extent::RelLoc, "a\0b".into(), ValueProblem::Nul),
        (text, Extent::Array(4), "a\0b".into(), ValueProblem::Nul),
    ] {
        assert_eq!(problem(kind, extent, value), expected, "{value:?}");
    }
}

#[test]
fn there_is_a_value_for_each_field_and_room_for_all() {
    let fields = fields(&[("f", FieldKind::Char, Extent::RelLoc)]);
    let error = fields.write(&[], |_| ()).unwrap_err();
    assert!(matches!(error, WriteError::Count { fields: 1, given: 0, .. }));
    // A word, and a NUL behind the text.
    let text = "x".repeat(LONGEST_PAYLOAD - 5);
    assert_eq!(fields.write(&[text.as_str().into()], <[u8]>::len).unwrap(), LONGEST_PAYLOAD);
    let error = fields.write(&[(text + "x").as_str().into()], |_| ()).unwrap_err();
    assert!(matches!(error, WriteError::TooLong { len, .. } if len == LONGEST_PAYLOAD + 1));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        unsigned in any::<(u8, u16, u32, u64)>(),
        signed in any::<(i8, i16, i32, i64)>(),
        array in "[a-zä]{0,3}",
        text in "[^\0]{0,300}",
        raw in vec(any::<u8>(), 3),
        bytes in vec(any::<u8>(), 0..300),
        last in "[^\0]{0,9}",
    ) {
        let declared = declared();
        let values = [
            unsigned.0.into(), unsigned.1.into(), unsigned.2.into(), unsigned.3.into(),
            signed.0.into(), signed.1.into(), signed.2.into(), signed.3.into(),
            array.as_str().into(), text.as_str().into(), raw[..].into(), bytes[..].into(), last.as_str().into(),
        ];
        let payload = fields(&declared).write(&values, <[u8]>::to_vec).unwrap();
        let format = format(&declared);
        let data = EventData::new(&payload, &payload, &format);
        let field = |name| format.field_ref(name).unwrap();
        prop_assert_eq!(data.try_get_u8(field("u8")), Ok(unsigned.0));
        prop_assert_eq!(data.try_get_u16(field("u16")), Ok(unsigned.1));
        prop_assert_eq!(data.try_get_u32(field("u32")), Ok(unsigned.2));
        prop_assert_eq!(data.try_get_u64(field("u64")), Ok(unsigned.3));
        prop_assert_eq!(data.try_get_i8(field("s8")), Ok(signed.0));
        prop_assert_eq!(data.try_get_i16(field("s16")), Ok(signed.1));
        prop_assert_eq!(data.try_get_i32(field("s32")), Ok(signed.2));
        prop_assert_eq!(data.try_get_i64(field("s64")), Ok(signed.3));
        prop_assert_eq!(data.try_get_str(field("array")), Ok(&*array));
        prop_assert_eq!(data.try_get_str(field("text")), Ok(&*text));
        prop_assert_eq!(data.try_get_bytes(field("raw")), Ok(&*raw));
        prop_assert_eq!(data.try_get_bytes(field("bytes")), Ok(&*bytes));
        prop_assert_eq!(data.try_get_str(field("last")), Ok(&*last));
        // A text's NUL is the kernel's condition.
        prop_assert_eq!(payload.last(), Some(&0));
    }
}
