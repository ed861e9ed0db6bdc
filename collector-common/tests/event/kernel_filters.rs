//! What of a filter is said to the Linux kernel: each operator, and each reason to say nothing. That the kernel takes it for the
//! same is tested with the kernel itself, by `collector-user`'s live tests.

use collector_common::event::{
    Event, EventField, EventId, Extent, FieldKind, FloatWidth, KernelStorage, Place, PointerWidth, Width,
    filter,
};

/// A tracepoint of all kinds, as its format file would make it.
fn tracepoint() -> Event {
    let signed = FieldKind::Signed;
    let unsigned = FieldKind::Unsigned;
    let pointer = || FieldKind::Pointer(PointerWidth::W64);
    let mut event = Event::new(EventId(7), "made:up");
    for (name, type_name, kind, extent, size, is_signed) in [
        ("common_pid", "int", signed(Width::W32), Extent::One, 4, true),
        ("prio", "s8", signed(Width::W8), Extent::One, 1, true),
        ("delta", "s64", signed(Width::W64), Extent::One, 8, true),
        ("flags", "u16", unsigned(Width::W16), Extent::One, 2, false),
        ("bytes", "u64", unsigned(Width::W64), Extent::One, 8, false),
        ("addr", "void *", pointer(), Extent::One, 8, false),
        ("path", "const char *", pointer(), Extent::One, 8, false),
        ("idle", "bool", FieldKind::Bool(Width::W8), Extent::One, 1, false),
        ("comm", "char", FieldKind::Char, Extent::Array(16), 16, true),
        ("file", "__data_loc char[]", FieldKind::Char, Extent::DataLoc, 4, true),
        ("near", "__rel_loc char[]", FieldKind::Char, Extent::RelLoc, 4, true),
        ("fd", "int", signed(Width::W32), Extent::One, 8, false),
        ("kind", "enum kind", unsigned(Width::W32), Extent::One, 4, true),
        ("ratio", "double", FieldKind::Float(FloatWidth::W64), Extent::One, 8, true),
        ("saddr", "__u8", FieldKind::Ipv4, Extent::One, 4, false),
        ("twice", "u32", unsigned(Width::W32), Extent::One, 4, false),
        ("twice", "u32", unsigned(Width::W32), Extent::One, 4, false),
        ("odd-name", "u32", unsigned(Width::W32), Extent::One, 4, false),
        ("args", "unsigned long", unsigned(Width::W64), Extent::Array(6), 48, false),
    ] {
        let field = EventField::new(name, type_name, kind, extent, Place::AfterPrevious);
        let field = field.in_kernel(KernelStorage { size, signed: is_signed });
        event.format_mut().add_field(field).unwrap();
    }
    let own = EventField::new("own", "u32", unsigned(Width::W32), Extent::One, Place::AfterPrevious);
    event.format_mut().add_field(own).unwrap();
    event
}

fn said(text: &str) -> Option<String> {
    let mut event = tracepoint();
    let filter = filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    event.set_filter(Some(&filter)).unwrap_or_else(|error| panic!("{text}: {error}"));
    event.kernel_filter()
}

#[test]
fn what_the_kernel_can_say() {
    for (text, expected) in [
        ("common_pid == 7", "common_pid == 7"),
        ("common_pid != 0x10", "common_pid != 16"),
        ("prio < -1", "prio < -1"),
        ("prio <= 127", "prio <= 127"),
        ("flags > 0", "flags > 0"),
        ("flags >= 65535", "flags >= 65535"),
        ("bytes == 18446744073709551615", "bytes == 18446744073709551615"),
        ("delta > -9223372036854775808", "delta > -9223372036854775808"),
        ("addr >= 0xffff800000000000", "addr >= 18446603336221196288"),
        ("idle == true", "idle != 0"),
        ("idle != 1", "idle == 0"),
        ("idle == false", "idle == 0"),
        ("flags & 4", "flags & 4"),
        ("flags & 6 != 0", "flags & 6"),
        ("flags & 6 == 0", "!(flags & 6)"),
        ("not flags & 6", "!(flags & 6)"),
        ("bytes & 0x8000000000000000", "bytes & 9223372036854775808"),
        ("comm == 'kworker/0:1'", "comm == \"kworker/0:1\""),
        ("comm != 'cat'", "comm != \"cat\""),
        ("comm starts_with 'kw'", "comm ~ \"kw*\""),
        ("comm contains '0'", "comm ~ \"*0*\""),
        ("comm ~ 'cat'", "comm == \"cat\""),
        ("comm ~ 'cat*'", "comm ~ \"cat*\""),
        ("comm ~ '*cat*'", "comm ~ \"*cat*\""),
        ("comm ~ 'Web ?ontent'", "comm ~ \"Web *\""),
        ("comm ~ 'a*b'", "comm ~ \"a*\""),
        ("not comm starts_with 'kw'", "!(comm ~ \"kw*\")"),
        ("file == '/bin/ls'", "file == \"/bin/ls\""),
        ("not file != '/bin/ls'", "file == \"/bin/ls\""),
        ("file starts_with '/bin/'", "file ~ \"/bin/*\""),
        ("prio == 1 and flags == 2 and not bytes < 3", "(prio == 1 && flags == 2 && bytes >= 3)"),
        ("prio == 1 or flags == 2", "(prio == 1 || flags == 2)"),
        ("not (prio == 1 or flags & 2)", "(prio != 1 && !(flags & 2))"),
        ("not (prio <= 1 and flags > 2)", "(prio > 1 || flags <= 2)"),
        ("prio == 1 and (flags == 2 or comm == 'a')", "(prio == 1 && (flags == 2 || comm == \"a\"))"),
    ] {
        assert_eq!(said(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn of_what_must_all_hold_a_part_is_said() {
    for (text, expected) in [
        ("prio == 1 and ratio > 2", "prio == 1"),
        ("ratio > 2 and prio == 1 and saddr == '1.2.3.4' and flags & 1", "(prio == 1 && flags & 1)"),
        ("not (prio == 1 or ratio > 2)", "prio != 1"),
        ("prio == 1 or (flags == 2 and ratio > 2)", "(prio == 1 || flags == 2)"),
    ] {
        assert_eq!(said(text).as_deref(), Some(expected), "{text}");
    }
    for text in ["prio == 1 or ratio > 2", "not (prio == 1 and ratio > 2)", "ratio > 2 and fd == 1"] {
        assert_eq!(said(text), None, "{text}");
    }
}

#[test]
fn what_the_kernel_would_take_for_something_else() {
    for (text, why) in [
        ("common_pid < 4294967303", "cut to 32 bits it is 7"),
        ("flags > -1", "cut to 16 bits it is a value of the field"),
        ("common_pid == 7.0", "no integer"),
        ("idle < 2", "no truth value"),
        ("idle > 0", "any byte but 0 is 1"),
        ("idle & 1", "any byte but 0 is 1"),
        ("common_pid & 0x100000000", "a negative number has this bit"),
        ("delta & 0x8000000000000000", "more than the kernel reads"),
        ("flags & 6 == 2", "the kernel only knows whether a bit is set"),
        ("path == 0", "the kernel compares text there"),
        ("fd == 3", "the kernel compares the whole register"),
        ("kind < 3", "the kernel takes it for signed"),
        ("ratio > 2", "no integer"),
        ("saddr == '1.2.3.4'", "an array"),
        ("twice == 1", "it may be either"),
        ("`odd-name` == 1", "it ends at the sign"),
        ("args[1] == 3", "the kernel knows no elements"),
        ("args[1] & 3", "the same"),
        ("own == 1", "no field of the kernel"),
        ("comm < 'a'", "text has no order there"),
        ("comm ends_with 'a'", "the kernel looks at the end of the array"),
        ("file ends_with 'a'", "the kernel looks one byte before its end"),
        ("comm ~ '*a'", "the same"),
        ("comm ~ '?a'", "nothing is known at its start"),
        ("comm == ''", "no text there"),
        ("comm contains 'a*b'", "the star is a letter here"),
        ("comm == 'a\"b'", "it ends at the quote"),
        ("comm == 'a[b]'", "a set of letters"),
        (r"comm == 'a\\b'", "an escape"),
        ("comm == 'Zähler'", "more than ASCII"),
        ("comm starts_with '1a'", "a digit makes it no pattern"),
        ("comm != 'more-than-16-bytes'", "the kernel compares 16"),
        ("comm == 'exactly-16-bytes'", "the same"),
        ("not comm contains 'a'", "the kernel looks behind the NUL, too"),
        ("not comm ~ 'a*b'", "less is asked than said"),
        ("file != '/bin/ls'", "the text may have no NUL"),
        ("not file starts_with '/bin'", "the same"),
        ("near == 'x'", "not each kernel knows it"),
    ] {
        assert_eq!(said(text), None, "{text}: {why}");
    }
}

#[test]
fn without_a_filter_or_with_more_than_a_page() {
    assert_eq!(tracepoint().kernel_filter(), None);
    let many = |count: usize| vec!["common_pid == 1000000"; count].join(" or ");
    assert!(said(&many(100)).is_some_and(|text| text.len() < 4096));
    assert_eq!(said(&many(200)), None);
    let mut event = tracepoint();
    event.set_filter(Some(&filter::parse("prio == 1").unwrap())).unwrap();
    *event.format_mut() = std::mem::take(tracepoint().format_mut());
    assert_eq!(event.kernel_filter(), None, "it was compiled for another format");
}
