//! Each kind, extent and place: values put down by the test's own encoder come back, and what does not fit is an error.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use collector_common::event::{
    ByteOrder, EventData, EventField, EventFormat, Extent, FieldKind, FieldProblem, FileTime, FormatError,
    Guid, KindName, MOST_DEPTH, MOST_FLOATING_COUNTS, Place, PointerWidth, Value, Width,
};

use super::encode::{F32, F64, I8, I16, I32, I64, POINTER, Payload, U8, U16, U32, U64, add, add_at};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

#[test]
fn numbers_of_all_widths_in_both_orders() {
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let kinds = [U8, U16, U32, U64, I8, I16, I32, I64, F32, F64, POINTER];
        let fields: Vec<_> =
            kinds.iter().map(|kind| add(&mut format, "x", kind.clone(), Extent::One)).collect();
        let mut payload = Payload::new(order);
        payload.number(0xfe, 1).number(0xfedc, 2).number(0xfedc_ba98, 4).number(0xfedc_ba98_7654_3210, 8);
        payload.number(-2_i64 as u64, 1).number(-300_i64 as u64, 2).number(-70_000_i64 as u64, 4);
        payload.number(i64::MIN as u64, 8);
        payload.number(0x3fc0_0000, 4).number(0xc004_0000_0000_0000, 8).number(0x7fff_1234_5678, 8);
        assert_eq!(format.size(), Some(payload.bytes.len() as u32));
        let data = EventData::new(&[], &payload.bytes, &format);

        assert_eq!(data.try_get_u8(fields[0]), Ok(0xfe));
        assert_eq!(data.try_get_u16(fields[1]), Ok(0xfedc));
        assert_eq!(data.try_get_u32(fields[2]), Ok(0xfedc_ba98));
        assert_eq!(data.try_get_u64(fields[3]), Ok(0xfedc_ba98_7654_3210));
        assert_eq!(data.try_get_i8(fields[4]), Ok(-2));
        assert_eq!(data.try_get_i16(fields[5]), Ok(-300));
        assert_eq!(data.try_get_i32(fields[6]), Ok(-70_000));
        assert_eq!(data.try_get_i64(fields[7]), Ok(i64::MIN));
        assert_eq!(data.try_get_f32(fields[8]), Ok(1.5));
        assert_eq!(data.try_get_f64(fields[8]), Ok(1.5));
        assert_eq!(data.try_get_f64(fields[9]), Ok(-2.5));
        assert_eq!(data.try_get_u64(fields[10]), Ok(0x7fff_1234_5678));

        let widened: Vec<_> = fields[..4].iter().map(|field| data.try_get_u64(*field).unwrap()).collect();
        assert_eq!(widened, [0xfe, 0xfedc, 0xfedc_ba98, 0xfedc_ba98_7654_3210]);
        let widened: Vec<_> =
            [0, 1, 2, 4, 5, 6].iter().map(|index| data.try_get_i64(fields[*index]).unwrap()).collect();
        assert_eq!(widened, [0xfe, 0xfedc, 0xfedc_ba98, -2, -300, -70_000]);
        assert_eq!(data.try_get_i16(fields[0]), Ok(0xfe));
    }
}

#[test]
fn a_getter_refuses_what_its_type_may_not_hold() {
    let mut format = EventFormat::default();
    let wide = add(&mut format, "wide", U64, Extent::One);
    let signed = add(&mut format, "signed", I32, Extent::One);
    let list = add(&mut format, "list", U32, Extent::Array(2));
    let data = [0; 20];
    let data = EventData::new(&data, &data, &format);
    for (error, is, is_array, asked) in [
        (data.try_get_u32(wide).unwrap_err(), KindName::U64, false, KindName::U32),
        (data.try_get_i64(wide).map(|_| 0).unwrap_err(), KindName::U64, false, KindName::I64),
        (data.try_get_u64(signed).map(|_| 0).unwrap_err(), KindName::I32, false, KindName::U64),
        (data.try_get_u32(list).unwrap_err(), KindName::U32, true, KindName::U32),
        (data.try_get_str(wide).map(|_| 0).unwrap_err(), KindName::U64, false, KindName::Text),
        (data.try_get_f64(signed).map(|_| 0).unwrap_err(), KindName::I32, false, KindName::F64),
        (data.try_get_guid(wide).map(|_| 0).unwrap_err(), KindName::U64, false, KindName::Guid),
    ] {
        assert_eq!(error.problem(), FieldProblem::WrongKind { is, is_array, asked });
    }
    let error = data.try_get_u32(list).unwrap_err();
    assert_eq!(error.named(&format).to_string(), "field list: it is a list of u32, u32 was asked for");
    assert!(size_of_val(&error) <= 24, "{}", size_of_val(&error));
}

#[test]
fn a_reference_of_another_format_is_refused_by_every_getter() {
    let (mut one, mut other) = (EventFormat::default(), EventFormat::default());
    add(&mut one, "x", U8, Extent::One);
    let field = add(&mut other, "x", U8, Extent::One);
    let data = EventData::new(&[], &[1], &one);
    let problems = [
        data.try_get_u8(field).map(|_| ()),
        data.try_get_u64(field).map(|_| ()),
        data.try_get_i64(field).map(|_| ()),
        data.try_get_f32(field).map(|_| ()),
        data.try_get_bool(field).map(|_| ()),
        data.try_get_str(field).map(|_| ()),
        data.try_get_slice(field).map(|_| ()),
        data.value(field).map(|_| ()),
    ];
    for result in problems {
        assert_eq!(result.unwrap_err().problem(), FieldProblem::OtherFormat);
    }
}

#[test]
fn data_that_end_early_are_refused_at_every_length() {
    let mut format = EventFormat::default();
    let number = add(&mut format, "number", U32, Extent::One);
    let text = add(&mut format, "text", FieldKind::Char, Extent::LengthPrefixed(Width::W16));
    let mut payload = Payload::native();
    payload.number(7, 4).number(3, 2).raw(b"abc");
    for length in 0..=payload.bytes.len() {
        let data = EventData::new(&[], &payload.bytes[..length], &format);
        assert_eq!(data.try_get_u32(number).is_ok(), length >= 4);
        assert_eq!(data.try_get_str(text).is_ok(), length == 9);
        if length < 9 {
            assert_eq!(data.try_get_str(text).unwrap_err().problem(), FieldProblem::TooShort);
        }
    }
}

#[test]
fn text_in_all_its_forms_one_behind_the_other() {
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let fixed = add(&mut format, "fixed", FieldKind::Char, Extent::Array(8));
        let full = add(&mut format, "full", FieldKind::Char, Extent::Array(3));
        let terminated = add(&mut format, "terminated", FieldKind::Char, Extent::ZeroTerminated);
        let prefixed = add(&mut format, "prefixed", FieldKind::Char, Extent::LengthPrefixed(Width::W16));
        let wide = add(&mut format, "wide", FieldKind::Utf16, Extent::ZeroTerminated);
        let counted = add(&mut format, "counted", FieldKind::Utf16, Extent::CountPrefixed(Width::W8));
        let count = add(&mut format, "count", U16, Extent::One);
        let by_field = add(&mut format, "by_field", FieldKind::Char, Extent::CountOf(count));
        let last = add(&mut format, "last", FieldKind::Utf16, Extent::ZeroTerminated);
        let mut payload = Payload::new(order);
        payload.raw(b"bash\0old").raw(b"abc").raw("grüße\0".as_bytes());
        payload.number(4, 2).raw(b"a\0b\0").utf16("weit 😀\0").number(2, 1).utf16("hi");
        // No NUL behind the last.
        payload.number(5, 2).raw("fünf".as_bytes()).utf16("Ende");
        let data = EventData::new(&[], &payload.bytes, &format);

        assert_eq!(data.try_get_str(fixed), Ok("bash"));
        assert_eq!(data.try_get_slice(fixed), Ok(&b"bash\0old"[..]));
        assert_eq!(data.try_get_str(full), Ok("abc"));
        assert_eq!(data.try_get_str(terminated), Ok("grüße"));
        assert_eq!(data.try_get_str(prefixed), Ok("a\0b\0"));
        assert_eq!(data.try_get_utf16(wide).unwrap().to_string(), "weit 😀");
        assert_eq!(data.try_get_utf16(counted).unwrap().to_string(), "hi");
        assert_eq!(data.try_get_str(by_field), Ok("fünf"));
        assert_eq!(data.try_get_utf16(last).unwrap().to_string(), "Ende");
        // The walk in order and the walk to one field agree.
        for (field, (declared, value)) in format.field_refs().zip(data.values()) {
            let one = data.value(field).map(|value| format!("{value:?}"));
            assert_eq!(value.map(|value| format!("{value:?}")), one, "{}", declared.name());
        }
    }
}

#[test]
fn text_that_is_not_utf_8_is_kept_as_bytes() {
    let mut format = EventFormat::default();
    let text = add(&mut format, "text", FieldKind::Char, Extent::Rest);
    let data = EventData::new(&[], b"a\xffb", &format);
    assert_eq!(data.try_get_str(text).unwrap_err().problem(), FieldProblem::NotUtf8);
    assert_eq!(data.try_get_text(text).unwrap().as_bytes(), b"a\xffb");
    assert_eq!(data.try_get_text(text).unwrap().to_string(), "a\u{fffd}b");
    assert_eq!(data.try_get_bytes(text), Ok(&b"a\xffb"[..]));
}

/// As `sched_process_exec` has it: the offset counts from the record's start, common fields included.
#[test]
fn dynamic_data_of_the_kernel() {
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let data_loc = EventField::new("filename", "char[]", FieldKind::Char, Extent::DataLoc, Place::At(8));
        let data_loc = format.add_field(data_loc).unwrap();
        let rel_loc = EventField::new("numbers", "u16[]", U16, Extent::RelLoc, Place::At(12));
        let rel_loc = format.add_field(rel_loc).unwrap();
        let behind = add(&mut format, "behind", U8, Extent::One);
        let mut payload = Payload::new(order);
        payload.number(0, 8).number(5 << 16 | 0x15, 4).number(4 << 16 | 1, 4).number(9, 1);
        payload.number(1, 2).number(2, 2).raw(b"/sh\0x");
        let data = EventData::new(&[], &payload.bytes, &format);
        assert_eq!(data.try_get_str(data_loc), Ok("/sh"));
        assert_eq!(data.try_get_u8(behind), Ok(9));
        assert_eq!(format!("{:?}", data.value(rel_loc).map(list)), "Ok([1, 2])");
        assert_eq!(format.size(), Some(17));

        for word in [5 << 16 | 0x16, 0xffff_ffff, 1 << 16 | 0x1a] {
            let mut payload_of_bad = Payload::new(order);
            payload_of_bad.number(0, 8).number(word, 4).number(word, 4).raw(&payload.bytes[16..]);
            let data = EventData::new(&[], &payload_of_bad.bytes, &format);
            assert_eq!(data.try_get_str(data_loc).unwrap_err().problem(), FieldProblem::TooShort);
            assert!(data.value(rel_loc).is_err());
            assert_eq!(data.try_get_u8(behind), Ok(9));
        }
    }
}

fn list(value: Value<'_>) -> Vec<u64> {
    let Value::Array(elements) = value else { panic!("{value:?} is no list") };
    elements.map(|element| if let Value::Unsigned(value) = element { value } else { panic!() }).collect()
}

#[test]
fn bits_count_from_the_least_significant_in_both_orders() {
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let mut bits = |first, count, signed| {
            add_at(&mut format, "bits", FieldKind::Bits { unit: Width::W32, first, count, signed }, 0)
        };
        let (low, sign, all, one) =
            (bits(4, 12, false), bits(28, 4, true), bits(0, 32, false), bits(31, 1, false));
        let mut payload = Payload::new(order);
        payload.number(0xe000_abc5, 4);
        let data = EventData::new(&[], &payload.bytes, &format);
        assert_eq!(data.try_get_u16(low), Ok(0xabc));
        assert_eq!(data.try_get_i8(sign), Ok(-2));
        assert_eq!(data.try_get_u32(all), Ok(0xe000_abc5));
        assert_eq!(data.try_get_bool(one), Ok(true));
        assert!(data.try_get_u8(low).is_err() && data.try_get_u8(sign).is_err());
    }
}

#[test]
fn addresses_identities_and_times() {
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let ipv4 = add(&mut format, "ipv4", FieldKind::Ipv4, Extent::One);
        let ipv6 = add(&mut format, "ipv6", FieldKind::Ipv6, Extent::One);
        let guid = add(&mut format, "guid", FieldKind::Guid, Extent::One);
        let time = add(&mut format, "time", FieldKind::FileTime, Extent::One);
        let truth = add(&mut format, "truth", FieldKind::Bool(Width::W32), Extent::One);
        let narrow = add(&mut format, "narrow", FieldKind::Pointer(PointerWidth::W32), Extent::One);
        let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let mut payload = Payload::new(order);
        payload.raw(&[192, 168, 1, 2]).raw(&address.octets());
        // Microsoft-Windows-DotNETRuntime.
        payload.number(0xe13c_0d23, 4).number(0xccbc, 2).number(0x4e12, 2);
        payload.raw(&[0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4]);
        payload.number(133_485_408_001_234_567, 8).number(0x100, 4).number(0xffff_fff0, 4);
        let data = EventData::new(&[], &payload.bytes, &format);
        assert_eq!(data.try_get_ipv4(ipv4), Ok(Ipv4Addr::new(192, 168, 1, 2)));
        assert_eq!(data.try_get_ipv6(ipv6), Ok(address));
        let printed = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
        assert_eq!(data.try_get_guid(guid).unwrap().to_string(), printed);
        assert_eq!(format!("{{{}}}", printed.to_uppercase()).parse().ok(), data.try_get_guid(guid).ok());
        assert_eq!(data.try_get_bool(truth), Ok(true));
        assert_eq!(data.try_get_u32(narrow), Ok(0xffff_fff0));
        let time = data.try_get_filetime(time).unwrap();
        assert_eq!(time.to_string(), "2024-01-01T00:00:00.1234567Z");
        // date -ud @1704067200
        assert_eq!(time.unix_nanos(), 1_704_067_200_123_456_700);
    }
    for wrong in ["", "{", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e", "e13c0d23ccbc4e12931bd9cc2eee27e4", "é13c"]
    {
        assert!(wrong.parse::<Guid>().is_err(), "{wrong}");
    }
}

/// `S-1-5-32-544` is the group of administrators, and its bytes are those of `[MS-DTYP]` 2.4.2.
#[test]
fn ports_and_security_identifiers() {
    let administrators = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
    for order in ORDERS {
        let mut format = EventFormat::new(order);
        let port = add(&mut format, "port", FieldKind::Port, Extent::One);
        let sid = add(&mut format, "sid", FieldKind::Sid(None), Extent::One);
        let user = add(&mut format, "user", FieldKind::Sid(Some(PointerWidth::W64)), Extent::One);
        let none = add(&mut format, "none", FieldKind::Sid(Some(PointerWidth::W32)), Extent::One);
        let both = add(&mut format, "both", FieldKind::Sid(None), Extent::Array(2));
        let last = add(&mut format, "last", FieldKind::Unsigned(Width::W8), Extent::One);
        let mut payload = Payload::new(order);
        payload.raw(&[1, 187]).raw(&administrators).raw(&[7; 16]).raw(&administrators).raw(&[0; 4]);
        payload.raw(&administrators).raw(&administrators).raw(&[9]);
        let data = EventData::new(&[], &payload.bytes, &format);
        assert_eq!(data.try_get_u16(port), Ok(443));
        assert!(data.try_get_u8(port).is_err());
        for field in [sid, user] {
            assert_eq!(data.try_get_sid(field).unwrap().to_string(), "S-1-5-32-544");
        }
        assert!(data.try_get_sid(none).unwrap().as_bytes().is_empty());
        assert!(data.try_get_sid(both).is_err());
        assert_eq!(data.try_get_u8(last), Ok(9));
        let text = data.as_text().to_string();
        assert!(text.starts_with("port=443 sid=S-1-5-32-544 user=S-1-5-32-544 none= both=[S-"), "{text}");
        for cut in 0..payload.bytes.len() {
            let data = EventData::new(&[], &payload.bytes[..cut], &format);
            assert!(data.try_get_u8(last).is_err());
        }
    }
}

/// Dates as `date -u -d @SECONDS +%F` prints them.
#[test]
fn times_are_days_of_the_gregorian_calendar() {
    for (seconds, printed) in [
        (-11_644_473_600_i64, "1601-01-01"),
        (-2_203_891_200, "1900-03-01"),
        (-2_203_977_600, "1900-02-28"),
        (951_782_400, "2000-02-29"),
        (951_868_800, "2000-03-01"),
        (978_220_800, "2000-12-31"),
        (1_709_164_800, "2024-02-29"),
        (1_735_603_200, "2024-12-31"),
        (4_107_542_400, "2100-03-01"),
        (0, "1970-01-01"),
    ] {
        let time = FileTime(((seconds + 11_644_473_600) * 10_000_000) as u64);
        assert_eq!(time.to_string(), format!("{printed}T00:00:00.0000000Z"));
    }
    assert!(FileTime(u64::MAX).to_string().starts_with("60056-05-28T05:36:10"));
}

/// A structure with text in it differs in size: a list of them is walked.
#[test]
fn structures_and_lists_of_them() {
    let mut inner = EventFormat::default();
    let id = add(&mut inner, "id", U16, Extent::One);
    let name = add(&mut inner, "name", FieldKind::Char, Extent::ZeroTerminated);
    let inner = Arc::new(inner);
    let mut format = EventFormat::default();
    let kind = || FieldKind::Struct(Arc::clone(&inner));
    let one = add(&mut format, "one", kind(), Extent::One);
    let many = add(&mut format, "many", kind(), Extent::CountPrefixed(Width::W16));
    let behind = add(&mut format, "behind", U32, Extent::One);
    let mut payload = Payload::native();
    payload.number(1, 2).raw(b"eins\0").number(2, 2);
    payload.number(2, 2).raw(b"zwei\0").number(3, 2).raw(b"\0").number(99, 4);
    let data = EventData::new(&payload.bytes, &payload.bytes, &format);

    let Value::Struct(first) = data.value(one).unwrap() else { panic!("no structure") };
    assert_eq!((first.try_get_u16(id), first.try_get_str(name)), (Ok(1), Ok("eins")));
    assert_eq!(first.full_data(), payload.bytes);
    let Value::Array(elements) = data.value(many).unwrap() else { panic!("no list") };
    let elements: Vec<_> = elements
        .map(|element| {
            let Value::Struct(element) = element else { panic!("no structure") };
            (element.try_get_u16(id).unwrap(), element.try_get_str(name).unwrap())
        })
        .collect();
    assert_eq!(elements, [(2, "zwei"), (3, "")]);
    assert_eq!(data.try_get_u32(behind), Ok(99));
    // Of the inner format, so no field of the outer.
    assert_eq!(data.try_get_u16(id).unwrap_err().problem(), FieldProblem::OtherFormat);
    // The name of a field within is known to the outer format.
    let error = first.try_get_u8(name).unwrap_err();
    assert_eq!(error.named(&format).to_string(), "field name: it is text, u8 was asked for");
}

#[test]
fn formats_that_readers_could_not_rely_on_are_refused() {
    let mut format = EventFormat::default();
    let mut refused = |kind: FieldKind, extent, place| {
        format.add_field(EventField::new("x", "", kind, extent, place)).unwrap_err()
    };
    let after = Place::AfterPrevious;
    assert!(matches!(refused(U32, Extent::ZeroTerminated, after), FormatError::NotText { .. }));
    for (first, count) in [(0, 0), (1, 8), (8, 1), (255, 255)] {
        let bits = FieldKind::Bits { unit: Width::W8, first, count, signed: false };
        assert!(matches!(refused(bits, Extent::One, after), FormatError::Bits { .. }));
    }
    assert!(matches!(refused(U64, Extent::Array(u32::MAX), after), FormatError::TooLarge { .. }));
    assert!(matches!(refused(U64, Extent::One, Place::At(u32::MAX)), FormatError::TooLarge { .. }));
    let empty = || FieldKind::Struct(Arc::new(EventFormat::default()));
    assert!(matches!(refused(empty(), Extent::Rest, after), FormatError::EmptyElement { .. }));
    let mut dynamic = EventFormat::default();
    add(&mut dynamic, "text", FieldKind::Char, Extent::DataLoc);
    let dynamic = FieldKind::Struct(Arc::new(dynamic));
    assert!(matches!(refused(dynamic, Extent::One, after), FormatError::DynamicInStruct { .. }));
    let foreign = add(&mut EventFormat::default(), "count", U8, Extent::One);
    assert!(matches!(refused(U8, Extent::CountOf(foreign), after), FormatError::Counter { .. }));
    assert_eq!(format.fields().len(), 0);

    let mut inner = EventFormat::default();
    add(&mut inner, "x", U8, Extent::One);
    for depth in 1.. {
        let mut outer = EventFormat::default();
        let field = EventField::new("in", "", FieldKind::Struct(Arc::new(inner)), Extent::One, after);
        match outer.add_field(field) {
            Ok(_) => inner = outer,
            Err(error) => {
                assert!(matches!(error, FormatError::TooMany { .. }));
                assert_eq!(depth, MOST_DEPTH);
                break;
            }
        }
    }

    let mut floating = EventFormat::default();
    add(&mut floating, "text", FieldKind::Char, Extent::ZeroTerminated);
    for number in 0..=MOST_FLOATING_COUNTS {
        let count = add(&mut floating, "count", U8, Extent::One);
        let field = EventField::new("list", "", U8, Extent::CountOf(count), after);
        assert_eq!(floating.add_field(field).is_ok(), number < MOST_FLOATING_COUNTS);
    }
}

#[test]
fn the_first_of_a_name_is_found() {
    let mut format = EventFormat::default();
    let first = add(&mut format, "x", U8, Extent::One);
    add(&mut format, "x", U16, Extent::One);
    assert_eq!(format.field_ref("x"), Some(first));
    assert_eq!(format.field_ref("y"), None);
    assert_eq!(format.field(first).map(EventField::name), Some("x"));
}
