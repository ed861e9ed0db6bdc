//! The input is a filter and an event's specification: it is read or refused at a place in it, and what compiles can
//! be evaluated over any data.

use collector_common::event::{
    EventData, EventField, EventFormat, Extent, FieldKind, Place, Width, filter, spec,
};

/// Reads, compiles and evaluates the input.
pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(spec) = spec::parse(&text) {
        assert!(!spec.name.is_empty() && text.contains(spec.name));
    }
    let format = format();
    let columns = 1..=text.chars().count() + 1;
    let predicate = match filter::parse(&text).and_then(|filter| filter.compile(&format)) {
        Ok(predicate) => predicate,
        Err(error) => {
            assert!(columns.contains(&error.column()), "{error}");
            assert!(!error.message().is_empty());
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
            return;
        }
    };
    for data in [&b""[..], b"\x01", b"\x01\xff\xff\x00text", b"\x01\x02\x03\x00a\xff\0b\0c\0", &[b'a'; 64]] {
        // An event that is too short has no answer; it is none of the filter's.
        let _ = predicate.accepts(&EventData::new(data, data, &format));
    }
}

fn format() -> EventFormat {
    let mut format = EventFormat::default();
    for (name, kind, extent) in [
        ("number", FieldKind::Unsigned(Width::W8), Extent::One),
        ("signed", FieldKind::Signed(Width::W16), Extent::One),
        ("idle", FieldKind::Bool(Width::W8), Extent::One),
        ("text", FieldKind::Char, Extent::ZeroTerminated),
        ("wide", FieldKind::Utf16, Extent::Rest),
        ("from", FieldKind::Ipv4, Extent::One),
        ("list", FieldKind::Unsigned(Width::W16), Extent::Array(3)),
    ] {
        let place = if matches!(name, "from" | "list") { Place::At(0) } else { Place::AfterPrevious };
        let _ = format.add_field(EventField::new(name, "", kind, extent, place));
    }
    format
}
