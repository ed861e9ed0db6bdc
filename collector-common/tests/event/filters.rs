//! What filters accept, and what is said of those that can't be read or do not fit.

use std::sync::Arc;

use collector_common::event::filter::{self, MOST_DEPTH};
use collector_common::event::{ByteOrder, EventData, EventFormat, Extent, FieldKind, Width};

use super::encode::{F64, I32, POINTER, Payload, U8, U16, U32, U64, add};

/// An event of all kinds that filters know.
fn sample() -> (EventFormat, Vec<u8>) {
    let mut format = EventFormat::default();
    let f = &mut format;
    add(f, "prev_pid", I32, Extent::One);
    add(f, "next_pid", I32, Extent::One);
    add(f, "flags", U16, Extent::One);
    add(f, "bytes", U64, Extent::One);
    add(f, "ratio", F64, Extent::One);
    add(f, "addr", POINTER, Extent::One);
    add(f, "idle", FieldKind::Bool(Width::W8), Extent::One);
    add(f, "comm", FieldKind::Char, Extent::Array(16));
    add(f, "from", FieldKind::Ipv4, Extent::One);
    add(f, "provider", FieldKind::Guid, Extent::One);
    add(f, "odd name!", U8, Extent::One);
    add(f, "stack", U32, Extent::Array(2));
    add(f, "wide", FieldKind::Utf16, Extent::ZeroTerminated);
    add(f, "last", FieldKind::Signed(Width::W8), Extent::One);
    let mut payload = Payload::native();
    payload.number(-1_i64 as u64, 4).number(42, 4).number(0b110, 2).number(u64::MAX, 8);
    payload.number(2.5_f64.to_bits(), 8).number(0x7fff_0000_1000, 8).number(1, 1);
    payload.raw(b"rust-analyzer\0xx").raw(&[10, 0, 0, 1]);
    payload.number(0x0011_2233, 4).number(0x4455, 2).number(0x6677, 2);
    payload.raw(&[0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]);
    payload.number(3, 1).number(7, 4).number(0xffff_fffd, 4).utf16("Zähler\0").number(-5_i64 as u64, 1);
    (format, payload.bytes)
}

fn accepts(text: &str) -> bool {
    let (format, payload) = sample();
    let predicate = match filter::parse(text).and_then(|filter| filter.compile(&format)) {
        Ok(predicate) => predicate,
        Err(error) => panic!("{text}:\n{error}"),
    };
    predicate.accepts(&EventData::new(&payload, &payload, &format)).unwrap()
}

#[test]
fn comparisons() {
    for (text, expected) in [
        ("prev_pid == -1", true),
        ("prev_pid != -1", false),
        ("prev_pid < 0", true),
        ("prev_pid <= -1", true),
        ("prev_pid > -2", true),
        ("prev_pid >= 0", false),
        ("next_pid == 0x2a", true),
        ("next_pid==42&&prev_pid<0", true),
        // No value wraps into another.
        ("prev_pid < 4294967295", true),
        ("prev_pid < 18446744073709551615", true),
        ("bytes == 18446744073709551615", true),
        ("bytes > -1", true),
        ("bytes > 9223372036854775807", true),
        ("bytes < 18446744073709551616.0", true),
        ("bytes == 1.8446744073709552e19", false),
        ("ratio == 2.5", true),
        ("ratio > 2", true),
        ("ratio < 3", true),
        ("next_pid < 42.5", true),
        ("next_pid == 42.0", true),
        ("addr >= 0x7fff00000000", true),
        ("idle == true", true),
        ("idle == 0", false),
        ("last == -5", true),
        ("`odd name!` == 3", true),
    ] {
        assert_eq!(accepts(text), expected, "{text}");
    }
}

#[test]
fn bits() {
    for (text, expected) in [
        ("flags & 4", true),
        ("flags & 1", false),
        ("not flags & 1", true),
        ("flags & 6 == 6", true),
        ("flags & 7 == 7", false),
        ("flags & 0x5 != 0", true),
        ("prev_pid & 0x8000000000000000", true),
        ("flags & 3 < 2", false),
    ] {
        assert_eq!(accepts(text), expected, "{text}");
    }
}

#[test]
fn elements_of_lists() {
    for (text, expected) in [
        ("stack[0] == 7", true),
        ("stack[1] == 7", false),
        ("stack [ 1 ] > 0xfffffff0", true),
        ("stack[0] & 4", true),
        ("stack[0] & 3 == 3 and not stack[1] & 2", true),
        ("`stack`[0x1] < 4294967295.5", true),
    ] {
        assert_eq!(accepts(text), expected, "{text}");
    }
}

/// An event that ends before a field: the answer depends on that or not, in whatever order a filter names its parts.
#[test]
fn what_an_event_has_can_be_enough() {
    let mut format = EventFormat::default();
    add(&mut format, "kind", U16, Extent::One);
    add(&mut format, "ns", U16, Extent::One);
    let mut payload = Payload::native();
    payload.number(1, 2).number(9, 2);
    let short = EventData::new(&[], &payload.bytes[..2], &format);
    for (parts, expected) in [
        (["ns > 5 or ", "kind == 1"], Some(true)),
        (["ns > 5 and ", "kind == 2"], Some(false)),
        (["ns > 5 or ", "kind == 2"], None),
        (["ns > 5 and ", "kind == 1"], None),
        (["not ns > 5 or ", "kind == 1"], Some(true)),
    ] {
        let [first, second] = parts;
        let (first, word) = first.trim_end().rsplit_once(' ').unwrap();
        for text in [format!("{first} {word} {second}"), format!("{second} {word} {first}")] {
            let predicate = filter::parse(&text).unwrap().compile(&format).unwrap();
            assert_eq!(predicate.accepts(&short).ok(), expected, "{text}");
        }
    }
}

/// Of each width and byte order, of a structure, and of an event that ends before the element.
#[test]
fn elements_are_loaded_as_they_lie() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut inner = EventFormat::new(order);
        add(&mut inner, "name", FieldKind::Char, Extent::ZeroTerminated);
        add(&mut inner, "small", FieldKind::Signed(Width::W16), Extent::Array(3));
        let mut format = EventFormat::new(order);
        add(&mut format, "outer", FieldKind::Struct(Arc::new(inner)), Extent::One);
        let mut payload = Payload::new(order);
        payload.raw(b"ab\0").number(1, 2).number(-2_i64 as u64, 2).number(0x300, 2);
        let data = EventData::new(&[], &payload.bytes, &format);
        for text in ["outer.small[0] == 1", "outer.small[1] == -2", "outer.small[2] == 768"] {
            let predicate = filter::parse(text).unwrap().compile(&format).unwrap();
            assert_eq!(predicate.accepts(&data), Ok(true), "{text}");
            let short = EventData::new(&[], &payload.bytes[..8], &format);
            assert!(predicate.accepts(&short).is_err(), "{text}");
        }
    }
}

#[test]
fn text() {
    for (text, expected) in [
        ("comm == 'rust-analyzer'", true),
        ("comm == \"rust\"", false),
        ("comm != 'rust'", true),
        ("comm contains 'ana'", true),
        ("comm contains ''", true),
        ("comm contains 'xx'", false),
        ("comm starts_with 'rust'", true),
        ("comm starts_with 'analyzer'", false),
        ("comm ends_with 'analyzer'", true),
        ("comm ends_with 'a-very-long-text-before-rust-analyzer'", false),
        ("comm ~ 'rust-*'", true),
        ("comm ~ '*-anal?zer'", true),
        ("comm ~ 'rust'", false),
        (r"comm ~ 'rust\*'", false),
        ("comm > 'rust'", true),
        ("comm < 'rusu'", true),
        ("comm >= 'rust-analyzer'", true),
        ("wide == 'Zähler'", true),
        ("wide starts_with 'Zä'", true),
        ("wide ends_with 'ler'", true),
        ("wide contains 'äh'", true),
        ("wide ~ 'Z?h*'", true),
        ("wide < 'Zz'", false),
        ("wide == 'Zahler'", false),
        ("from == '10.0.0.1'", true),
        ("from != '10.0.0.2'", true),
        ("provider == '{00112233-4455-6677-8899-AABBCCDDEEFF}'", true),
        ("provider != '00112233-4455-6677-8899-aabbccddeeff'", false),
    ] {
        assert_eq!(accepts(text), expected, "{text}");
    }
}

/// The structure differs in size, and the field behind it has the name of one within.
#[test]
fn fields_of_structures() {
    let mut inner = EventFormat::default();
    add(&mut inner, "name", FieldKind::Char, Extent::ZeroTerminated);
    add(&mut inner, "id", U16, Extent::One);
    let mut middle = EventFormat::default();
    add(&mut middle, "inner", FieldKind::Struct(Arc::new(inner)), Extent::One);
    let mut format = EventFormat::default();
    add(&mut format, "the.outer", FieldKind::Struct(Arc::new(middle)), Extent::One);
    add(&mut format, "id", U16, Extent::One);
    let mut payload = Payload::native();
    payload.raw(b"abc\0").number(7, 2).number(8, 2);
    for (text, expected) in [
        ("the.outer.inner.id == 7 and id == 8", true),
        ("the.outer.inner.name ends_with 'bc'", true),
        ("the.outer.inner.id == 8", false),
    ] {
        let predicate = filter::parse(text).unwrap().compile(&format).unwrap();
        let data = EventData::new(&[], &payload.bytes, &format);
        assert_eq!(predicate.accepts(&data), Ok(expected), "{text}");
        let short = EventData::new(&[], &payload.bytes[..5], &format);
        let error = predicate.accepts(&short).unwrap_err();
        assert!(error.named(&format).to_string().starts_with("field the.outer: "), "{error}");
    }
    for (text, message) in [
        ("the.outer.inner.ids == 7", "there is no field `ids`; did you mean `id`?"),
        ("the.outer.x == 7", "there is no field `x`; there are: inner"),
        ("the.outer == 7", "`the.outer` is a structure, which filters can't compare"),
        ("id.x == 7", "there is no field `id.x`;"),
    ] {
        let error = filter::parse(text).unwrap().compile(&format).unwrap_err();
        assert!(error.message().starts_with(message), "{text}: {error}");
    }
}

#[test]
fn and_binds_tighter_than_or_and_not_tighter_than_and() {
    let (yes, no) = ("next_pid == 42", "next_pid == 0");
    for (text, expected) in [
        (format!("{yes} or {no} and {no}"), true),
        (format!("({yes} or {no}) and {no}"), false),
        (format!("{no} and {no} or {yes}"), true),
        (format!("not {no} and {yes}"), true),
        (format!("not ({no} or {yes})"), false),
        (format!("! ! {yes}"), true),
        (format!("!{no}||{no}"), true),
        (format!("{yes} and (comm starts_with 'rust' or not flags & 4)"), true),
    ] {
        assert_eq!(accepts(&text), expected, "{text}");
    }
}

/// Every combination of three truths, against the language that this is compiled with.
#[test]
fn chains_have_the_truth_of_rusts() {
    for bits in 0..8 {
        let value = |bit: i32| bits >> bit & 1 == 1;
        let text = |bit: i32| if value(bit) { "next_pid == 42" } else { "next_pid != 42" };
        let [a, b, c] = [0, 1, 2].map(value);
        let [first, second, third] = [0, 1, 2].map(text);
        assert_eq!(accepts(&format!("{first} and {second} or {third}")), a && b || c);
        assert_eq!(accepts(&format!("{first} or {second} and {third}")), a || b && c);
        assert_eq!(accepts(&format!("not {first} or {second} and not {third}")), !a || b && !c);
        assert_eq!(accepts(&format!("not ({first} and {second}) and {third}")), !(a && b) && c);
    }
}

#[test]
fn what_cannot_be_read_is_shown_at_its_place() {
    for (text, column, message) in [
        ("", 1, "the name of a field was expected"),
        ("prev_pid", 9, "a comparison was expected behind the field's name"),
        (
            "comm contians 'x'",
            6,
            "a comparison was expected behind the field's name; did you mean `contains`?",
        ),
        (
            "comm start_with 'x'",
            6,
            "a comparison was expected behind the field's name; did you mean `starts_with`?",
        ),
        ("comm unlike 'x'", 6, "a comparison was expected behind the field's name"),
        ("stack[x] == 1", 7, "the number of an element was expected, of which the first is 0"),
        ("stack[1.5] == 1", 7, "the number of an element was expected, of which the first is 0"),
        ("stack[-1] == 1", 7, "an element's number is not negative: the first is 0"),
        ("stack[1 == 1", 9, "`]` was expected behind the element's number"),
        ("stack[1]", 9, "a comparison was expected behind the field's name"),
        ("prev_pid = 1", 10, "`=` means nothing here; did you mean `==`?"),
        ("prev_pid => 1", 10, "`=>` means nothing here; did you mean `>=`?"),
        ("prev_pid =< 1", 10, "`=<` means nothing here; did you mean `<=`?"),
        ("prev_pid <> 1", 10, "`<>` means nothing here; did you mean `!=`?"),
        ("prev_pid === 1", 12, "`=` means nothing here; did you mean `==`?"),
        ("comm =~ 'x'", 6, "`=~` means nothing here; did you mean `~`?"),
        ("prev_pid == 1 | prev_pid == 2", 15, "`|` means nothing here; did you mean `||`?"),
        ("prev_pid == ", 13, "a number, or text in quotes, was expected"),
        ("comm == rust", 9, "a number or text was expected; write text in quotes: 'rust'"),
        ("prev_pid == 1 prev_pid == 2", 15, "`and`, `or` or the end was expected"),
        ("(prev_pid == 1", 1, "the parenthesis is not closed"),
        ("prev_pid == 1)", 14, "there is no parenthesis to close"),
        ("comm == 'rust", 9, "the quote is not closed"),
        ("comm == 'ü' and $", 17, "`$` means nothing here"),
        ("\u{1b}[31m == 1", 1, r"`\u{1b}` means nothing here"),
        ("flags & -1", 9, "a mask is not negative"),
        ("flags & 'a'", 9, "an integer was expected"),
        ("comm ~ 5", 8, "text in quotes was expected"),
        ("bytes == 18446744073709551616", 10, "`18446744073709551616` is no number of 64 bits"),
        ("bytes == -9223372036854775809", 10, "`-9223372036854775809` is no number of 64 bits"),
        ("bytes == 0x", 10, "`0x` is no number of 64 bits"),
        ("bytes == 1e999", 10, "`1e999` is no number of 64 bits"),
        ("bytes == 12pid", 10, "`12pid` is no number of 64 bits"),
        (r"comm == 'a\d'", 11, "a backslash is followed by a quote, a backslash, `n`, `t`, `*` or `?`"),
    ] {
        let error = filter::parse(text).unwrap_err();
        assert_eq!((error.message(), error.column()), (message, column), "{text}");
    }
}

/// However many lines the text has, and however long it is.
#[test]
fn what_is_wrong_is_one_line() {
    let told = |text: &str| filter::parse(text).unwrap_err().to_string();
    assert_eq!(
        told("comm == 'ü' and $x"),
        "the filter `comm == 'ü' and $x`, at column 17, before `$x`: `$` means nothing here"
    );
    assert_eq!(
        told("prev_pid => 1"),
        "the filter `prev_pid => 1`, at column 10, before `=> 1`: `=>` means nothing here; did you mean `>=`?"
    );
    assert_eq!(
        told("prev_pid =="),
        "the filter `prev_pid ==`, at column 12, its end: a number, or text in quotes, was expected"
    );
    assert_eq!(told(" \n"), "the filter is empty: the name of a field was expected");
    assert_eq!(
        told("a == 1\nand\tb = 2\r"),
        "the filter `a == 1 and b = 2 `, at column 14, before `= 2`: `=` means nothing here; did you mean `==`?"
    );
    let long = format!("{}$ {}", "pid == 1 or ".repeat(40), "z".repeat(1000));
    let error = told(&long);
    assert!(
        error.starts_with("the filter `pid == 1 or ") && error.contains("...`, at column 481, before `$ zzz")
    );
    assert!(error.len() < 300 && error.ends_with("zzz...`: `$` means nothing here"), "{error}");
}

#[test]
fn what_does_not_fit_the_format_is_refused_when_compiled() {
    let (format, _) = sample();
    for (text, column, message) in [
        ("prev_pd == 1", 1, "there is no field `prev_pd`; did you mean `prev_pid`?"),
        ("prev_pid == 1 and PID == 1", 19, "there is no field `PID`; did you mean `next_pid` or `prev_pid`?"),
        ("xyzzy == 1", 1, "there is no field `xyzzy`; there are: prev_pid, next_pid, flags"),
        ("pid == 1", 1, "there is no field `pid`; did you mean `next_pid` or `prev_pid`?"),
        ("prev_pid == 'bash'", 13, "`prev_pid` is a number, this is text"),
        ("prev_pid contains '1'", 19, "`prev_pid` is a number, this is text"),
        ("comm == 5", 9, "`comm` is text, this is a number; quote text"),
        ("comm & 5", 8, "`comm` is text, this is a number; quote text"),
        ("ratio & 1", 9, "`ratio` has no bits: it is a floating-point number"),
        (
            "stack == 1",
            1,
            "`stack` is a list of u32, which filters can't compare; name an element, as `stack[0]`",
        ),
        ("stack[2] == 1", 7, "`stack` has 2 elements, the last is [1]"),
        ("stack[4294967296] == 1", 7, "`stack` has 2 elements, the last is [1]"),
        ("stack[0] == -1", 13, "`stack` is a number from 0 to 4294967295, and never -1"),
        ("stack[0] == 'a'", 13, "`stack` is a number, this is text"),
        ("comm[0] == 1", 1, "`comm` is no list of integers whose length is fixed"),
        ("flags[0] == 1", 1, "`flags` is no list of integers whose length is fixed"),
        (
            "prev_pid == 4294967295",
            13,
            "`prev_pid` is a number from -2147483648 to 2147483647, and never 4294967295",
        ),
        ("last != -129", 9, "`last` is a number from -128 to 127, and never -129"),
        ("bytes == -1", 10, "`bytes` is a number from 0 to 18446744073709551615, and never -1"),
        ("last == 1.5", 9, "`last` is a whole number from -128 to 127, and never 1.5"),
        ("prev_pid != 1e30", 13, "`prev_pid` is a whole number from -2147483648 to 2147483647, and never 1"),
        ("flags & 6 == 9", 9, "`flags & 0x6` has bits of 0x6 alone, and is never 0x9"),
        ("flags & 6 != -2", 9, "`flags & 0x6` is never below 0"),
        ("flags & 0x10000", 9, "`flags & 0x10000` is 0 always: the field has no such bits"),
        ("idle == 2", 9, "`idle` is a number from 0 to 1, and never 2"),
        ("from == '10.0.0'", 9, "`10.0.0`: invalid IPv4 address syntax"),
        ("from < '10.0.0.1'", 8, "`from` can only be `==` or `!=` to its text form in quotes"),
        ("provider == 'x'", 13, "`x`: a GUID is 32 hexadecimal digits"),
    ] {
        let error = filter::parse(text).unwrap().compile(&format).unwrap_err();
        assert!(error.message().starts_with(message), "{text}: {error}");
        assert_eq!(error.column(), column, "{text}");
    }
}

#[test]
fn recursion_has_a_bound_and_chains_have_none() {
    let nested = |depth: usize| format!("{}next_pid == 42{}", "(".repeat(depth), ")".repeat(depth));
    assert!(accepts(&nested(MOST_DEPTH)));
    assert!(filter::parse(&nested(MOST_DEPTH + 1)).is_err());
    assert!(filter::parse(&"not ".repeat(100_000)).unwrap_err().message().starts_with("there are too many"));
    let chain = vec!["next_pid == 42"; 10_000].join(" and ");
    assert!(accepts(&chain));
    let chain = vec!["(next_pid == 41)"; 10_000].join(" or ");
    assert!(!accepts(&chain));
}
