//! Both written forms: the text as someone sees it, the JSON as another reader reads it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use collector_common::event::{EventData, EventFormat, Extent, FieldKind, Width};
use serde_json::{Value, json};

use super::encode::{F32, F64, I64, POINTER, Payload, U8, U16, U64, add};

fn sample() -> (EventFormat, Vec<u8>) {
    let mut inner = EventFormat::default();
    add(&mut inner, "a", U8, Extent::One);
    add(&mut inner, "b", FieldKind::Char, Extent::ZeroTerminated);
    let inner = FieldKind::Struct(Arc::new(inner));
    let mut format = EventFormat::default();
    let f = &mut format;
    add(f, "u", U64, Extent::One);
    add(f, "i", I64, Extent::One);
    add(f, "f", F32, Extent::One);
    add(f, "nan", F64, Extent::One);
    add(f, "infinite", F32, Extent::One);
    add(f, "p", POINTER, Extent::One);
    add(f, "t", FieldKind::Bool(Width::W8), Extent::One);
    add(f, "na\"me", FieldKind::Char, Extent::ZeroTerminated);
    add(f, "w", FieldKind::Utf16, Extent::ZeroTerminated);
    add(f, "list", U16, Extent::CountPrefixed(Width::W8));
    add(f, "structs", inner, Extent::CountPrefixed(Width::W8));
    add(f, "ip", FieldKind::Ipv6, Extent::One);
    add(f, "time", FieldKind::FileTime, Extent::One);
    add(f, "missing", U64, Extent::One);
    let mut payload = Payload::native();
    payload.number(u64::MAX, 8).number(i64::MIN as u64, 8).number(0.1_f32.to_bits().into(), 4);
    payload.number(f64::NAN.to_bits(), 8).number(f32::NEG_INFINITY.to_bits().into(), 4).number(0xfe00, 8);
    payload.number(2, 1).raw(b"a \"b\" \\ \x01\n\xff'z\0");
    payload.utf16("grün 😀").number(0xd800, 2).number(0, 2);
    payload.number(2, 1).number(7, 2).number(8, 2).number(2, 1).raw(b"\x01x\0\x02\0");
    payload.raw(&[0; 15]).raw(&[1]).number(0, 8);
    (format, payload.bytes)
}

#[test]
fn json_is_read_back_by_another_reader() {
    let (format, payload) = sample();
    let data = EventData::new(&payload, &payload, &format);
    let text = data.as_json().to_string();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read,
        json!({
            "u": u64::MAX, "i": i64::MIN, "f": 0.1, "nan": null, "infinite": null, "p": 0xfe00, "t": true,
            "na\"me": "a \"b\" \\ \u{1}\n\u{fffd}'z", "w": "grün 😀\u{fffd}", "list": [7, 8],
            "structs": [{"a": 1, "b": "x"}, {"a": 2, "b": ""}], "ip": "::1",
            "time": "1601-01-01T00:00:00.0000000Z", "missing": null,
        })
    );
    let names: Vec<_> =
        format.fields().iter().map(|field| text.find(&json!(field.name()).to_string())).collect();
    assert!(names.is_sorted(), "members are in the order of the fields");
}

#[test]
fn text_is_read_by_people() {
    let (format, payload) = sample();
    let data = EventData::new(&payload, &payload, &format);
    assert_eq!(
        data.as_text().to_string(),
        "u=18446744073709551615 i=-9223372036854775808 f=0.1 nan=NaN infinite=-inf p=0xfe00 t=true \
         na\"me=\"a \\\"b\\\" \\\\ \\u{1}\\n\u{fffd}'z\" w=\"grün 😀\u{fffd}\" list=[7, 8] \
         structs=[{a=1 b=\"x\"}, {a=2 b=\"\"}] ip=::1 time=1601-01-01T00:00:00.0000000Z \
         missing=<the event data end before it does>"
    );
}

#[test]
fn both_kinds_of_writers_get_the_same() {
    let (format, payload) = sample();
    let data = EventData::new(&payload, &payload, &format);
    let (mut text, mut bytes) = (String::new(), Vec::new());
    write!(text, "{} {}", data.as_text(), data.as_json()).unwrap();
    write!(bytes, "{} {}", data.as_text(), data.as_json()).unwrap();
    assert_eq!(text.as_bytes(), bytes);
}
