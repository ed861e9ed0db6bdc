//! Values that the test's encoder puts down behind fields of all sizes come back.

use collector_common::event::{ByteOrder, EventData, EventFormat, Extent, FieldKind, Value, Width};
use proptest::collection::vec;
use proptest::prelude::*;

use super::encode::{Payload, add};

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::W8), Just(Width::W16), Just(Width::W32), Just(Width::W64)]
}

fn order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)]
}

proptest! {
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
}
