//! Events of JFR files with their fields: of files made by hand in all encodings, and hostile ones.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use export::import::jfr::events::{Chunk, Chunks, ReadError, Value};
use export::import::jfr::import;

use crate::jfr_made::Bytes;

const TYPES: &[(u64, &str, bool, &[&str])] = &[
    (2, "boolean", false, &[]),
    (3, "byte", false, &[]),
    (4, "short", false, &[]),
    (5, "char", false, &[]),
    (6, "int", false, &[]),
    (7, "long", false, &[]),
    (8, "float", false, &[]),
    (9, "double", false, &[]),
    (10, "java.lang.String", false, &[]),
    (11, "jdk.types.Symbol", false, &["string:10"]),
    (12, "pair", false, &["nothing:13", "first:6", "second:11#"]),
    (13, "empty", false, &[]),
    (14, "loop", false, &["next:14#", "name:10"]),
    (
        20,
        "all",
        true,
        &[
            "startTime:7",
            "boolean:2",
            "byte:3",
            "short:4",
            "char:5",
            "int:6",
            "long:7",
            "float:8",
            "double:9",
            "none:10",
            "empty:10",
            "shared:10",
            "utf8:10",
            "chars:10",
            "latin:10",
            "missing:11#",
            "symbol:11#",
            "pairs:12[]",
            "nothing:13",
            "loop:14#",
            "last:6",
        ],
    ),
];

fn all_fields(out: &mut Bytes) -> &mut Bytes {
    out.long(104).byte(1).byte(0xfe).short(0xfffd).short(0xfffc).int(u32::MAX - 4).long(u64::MAX - 5);
    out.bytes.extend(1.5_f32.to_be_bytes());
    out.bytes.extend((-2.25_f64).to_be_bytes());
    out.byte(0).byte(1).byte(2).long(70).text("ñ");
    out.byte(4).int(3).short(0x61).short(0xd83d).short(0xde00);
    out.byte(5).int(2).byte(0x62).byte(0xf1);
    out.long(999).long(5).int(2).int(10).long(5).int(11).long(6).long(1).int(77)
}

/// Two events of constants, the later of which has what the one before has, too, and is written first.
fn file(is_compressed: bool) -> Vec<u8> {
    let mut bytes = Bytes::new(is_compressed);
    bytes.event(1, |out| {
        out.long(5).long(0).long(0).byte(1).int(2);
        out.long(11).int(2).long(5).text("five").long(6).byte(2).long(70);
        out.long(14).int(1).long(1).long(1).text("round")
    });
    bytes.event(20, all_fields).event(999, |out| out.long(1));
    bytes.types(TYPES);
    bytes.event(1, |out| {
        out.long(6)
            .long(0)
            .long((-40_i64).cast_unsigned())
            .byte(0)
            .int(1)
            .long(10)
            .int(1)
            .long(70)
            .text("seventy")
    });
    bytes.chunk()
}

fn chunk(bytes: &[u8]) -> Result<Chunk, ReadError> {
    Chunks::of(bytes).next().unwrap()
}

/// By hand.
#[test]
fn all_types_of_values_in_both_encodings() {
    for is_compressed in [true, false] {
        let chunk = chunk(&file(is_compressed)).unwrap();
        assert_eq!(chunk.events().count(), 1, "of a type that is known");
        let event = chunk.events().next().unwrap();
        assert_eq!((event.name(), event.kind().id(), event.ticks()), ("all", 20, 104));
        assert_eq!((chunk.clock().unix(event.ticks()), chunk.clock().unix(90)), (1_000_002, 999_995));
        let whole = ["boolean", "byte", "short", "char", "int", "long", "last"];
        let whole = whole.map(|name| event.get(name).integer());
        assert_eq!(whole, [1, -2, -3, 0xfffc, -5, -6, 77].map(Some));
        assert!(matches!(event.get("float"), Value::Float(number) if number.to_bits() == 1.5_f64.to_bits()));
        assert!(
            matches!(event.get("double"), Value::Float(number) if number.to_bits() == (-2.25_f64).to_bits())
        );
        let texts = ["none", "empty", "shared", "utf8", "chars", "latin", "missing", "symbol"];
        let texts = texts.map(|name| event.get(name).text().map(Cow::into_owned));
        let expected =
            [None, Some(""), Some("seventy"), Some("ñ"), Some("a😀"), Some("bñ"), None, Some("five")];
        assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
        let Value::List(pairs) = event.get("pairs") else { panic!() };
        let pairs: Vec<_> = pairs
            .map(|pair| (pair.get("first").integer(), pair.get("second").text().map(Cow::into_owned)))
            .collect();
        assert_eq!(pairs, [(Some(10), Some("five".to_owned())), (Some(11), Some("seventy".to_owned()))]);
        assert!(matches!(event.get("not there"), Value::Null));
        // It is followed as far as it is asked for.
        let mut value = event.get("loop");
        for _ in 0..1000 {
            assert_eq!(value.get("name").text().unwrap(), "round");
            value = value.get("next");
        }
    }
}

#[test]
fn chunks_have_their_own_clocks_and_types() {
    let mut other = Bytes::new(true);
    other.types(&[(7, "long", false, &[]), (20, "other", true, &["startTime:7"])]);
    other.event(20, |out| out.long(100));
    let both = [file(false), other.chunk()].concat();
    let names: Vec<_> = Chunks::of(&*both)
        .flat_map(|chunk| chunk.unwrap().events().map(|event| event.name().to_owned()).collect::<Vec<_>>())
        .collect();
    assert_eq!(names, ["all", "other"]);
}

#[test]
fn a_thread_that_a_chunk_does_not_tell_of_is_that_of_one_before() {
    let told = |number: u64, name: Option<&str>| {
        let mut bytes = Bytes::new(true);
        bytes.types(&[
            (7, "long", false, &[]),
            (8, "java.lang.String", false, &[]),
            (9, "java.lang.Thread", false, &["javaName:8", "osThreadId:7"]),
            (20, "jdk.ExecutionSample", true, &["startTime:7", "sampledThread:9#"]),
        ]);
        if let Some(name) = name {
            bytes.event(1, |out| {
                out.long(100).long(0).long(0).byte(0).int(1);
                out.long(9).int(1).long(number).text(name).long(40 + number)
            });
        }
        bytes.event(20, |out| out.long(100).long(number));
        bytes.chunk()
    };
    let file = [told(5, None), told(5, Some("a")), told(6, Some("b")), told(5, None), told(7, None)].concat();
    let machine = import(&*file).unwrap().machine;
    let threads = machine.samples().iter().map(|sample| machine.thread(sample.thread));
    let threads: Vec<_> = threads.map(|thread| (machine.string(thread.name), thread.tid.0)).collect();
    assert_eq!(threads, [("", 0), ("a", 45), ("b", 46), ("a", 45), ("", 0)]);
}

/// Where the error is, and what it says.
fn refused(bytes: &[u8]) -> (u64, &'static str) {
    match chunk(bytes) {
        Err(
            ReadError::Malformed { what, position }
            | ReadError::TooLarge { what, position }
            | ReadError::Cut { what, position, .. },
        ) => (position, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_their_place() {
    let good = file(true);
    for length in (4..good.len()).step_by(512) {
        assert_eq!(refused(&good[..length]).0, length as u64);
        assert!(import(&good[..length]).is_err());
    }
    assert_eq!(refused(b"").0, 0);
    assert_eq!(refused(b"PK\x03\x04").0, 0);
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // The chunk's size: none, as while it is recorded, 4 GB, and more than there is.
    assert_eq!(refused(&with(8, &[0; 8])).0, 8);
    assert_eq!(refused(&with(8, &(1_u64 << 32).to_be_bytes())), (8, "a chunk"));
    assert_eq!(refused(&with(8, &((1_u64 << 32) - 1).to_be_bytes())).0, good.len() as u64);
    // A clock that stands.
    assert_eq!(refused(&with(56, &[0; 8])).0, 56);
    // The first event's size: none, its head's alone, and 256 MB.
    assert_eq!(refused(&with(68, &[0x80, 0x80, 0x80, 0])).0, 68);
    assert_eq!(refused(&with(68, &[0x84, 0x80, 0x80, 0])).0, 68);
    assert_eq!(refused(&with(68, &[0xff, 0xff, 0xff, 0x7f])).0, 73);
    assert!(matches!(chunk(&with(4, &[0, 9])), Err(ReadError::Version { major: 9, minor: 1 })));
}

#[test]
fn types_within_each_other_are_bounded() {
    let of = |types: &[(u64, &str, bool, &[&str])]| {
        let mut bytes = Bytes::new(true);
        bytes.types(types);
        bytes.chunk()
    };
    assert_eq!(refused(&of(&[(5, "itself", true, &["a:5"])])).1, "types that are too deep within each other");
    assert_eq!(
        refused(&of(&[(5, "a", true, &["b:6[]"]), (6, "b", false, &["a:5"])])).1,
        "types that are too deep within each other"
    );
    assert_eq!(refused(&of(&[(5, "a", true, &["b:7"])])).1, "a field of an unknown type");
    // Each has two of the next: the innermost ones would be four billion.
    let names: Vec<_> =
        (0..33).map(|at| (format!("t{at}"), format!("a:{}", at + 3), format!("b:{}", at + 3))).collect();
    let fields: Vec<_> = names.iter().map(|(_, a, b)| [a.as_str(), b.as_str()]).collect();
    let mut types: Vec<(u64, &str, bool, &[&str])> = names
        .iter()
        .zip(&fields)
        .zip(2..)
        .map(|(((name, ..), fields), id)| (id, &**name, true, &fields[..]))
        .collect();
    types.last_mut().unwrap().3 = &[];
    assert_eq!(refused(&of(&types)).1, "types that are too deep within each other");
}

/// Counts that there is no room for, of things that take no bytes, too.
#[test]
fn counts_are_no_reason_to_wait() {
    let start = Instant::now();
    let types: &[(u64, &str, bool, &[&str])] = &[
        (7, "long", false, &[]),
        (13, "empty", false, &[]),
        (20, "many", true, &["startTime:7", "all:13[]"]),
    ];
    for count in [u32::MAX, 1 << 30, 1000] {
        let mut bytes = Bytes::new(true);
        bytes.types(types);
        bytes.event(20, |out| out.long(1).int(count));
        assert_eq!(refused(&bytes.chunk()).1, "more of something than there is room for");
        let mut bytes = Bytes::new(true);
        bytes.types(types);
        bytes.event(1, |out| out.long(1).long(0).long(0).byte(1).int(1).long(13).int(count));
        assert_eq!(refused(&bytes.chunk()).1, "more of something than there is room for");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// How many are called by one long text.
const METHODS: u64 = 5_000;

/// A long text that very many things are called by is made only as many names of as there is room for.
#[test]
fn names_are_not_made_without_end() {
    let mut bytes = Bytes::new(true);
    bytes.types(&[
        (6, "int", false, &[]),
        (7, "long", false, &[]),
        (10, "java.lang.String", false, &[]),
        (11, "jdk.types.Symbol", false, &["string:10"]),
        (12, "java.lang.Class", false, &["name:11#"]),
        (13, "jdk.types.Method", false, &["type:12#", "name:11#", "descriptor:11#"]),
        (14, "frame", false, &["method:13#", "lineNumber:6"]),
        (15, "jdk.types.StackTrace", false, &["frames:14[]"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7", "stackTrace:15#"]),
    ]);
    bytes.event(1, |out| {
        out.long(1).long(0).long(0).byte(1).int(4);
        out.long(11).int(METHODS as u32 + 2).long(1).text(&"x".repeat(100_000)).long(2).text("()V");
        for at in 0..METHODS {
            out.long(at + 10).text(&at.to_string());
        }
        out.long(12).int(1).long(1).long(1);
        out.long(13).int(METHODS as u32);
        for at in 0..METHODS {
            out.long(at + 1).long(1).long(at + 10).long(2);
        }
        out.long(15).int(1).long(1).int(METHODS as u32);
        for at in 0..METHODS {
            out.long(at + 1).int(3);
        }
        out
    });
    bytes.event(20, |out| out.long(1).long(1));
    let file = bytes.chunk();
    let start = Instant::now();
    let mut imported = None;
    let used = allocation_counter::measure(|| imported = import(&*file).ok());
    assert!(used.bytes_max < 64 << 20, "{}", used.bytes_max);
    assert!(start.elapsed() < Duration::from_secs(10));
    let imported = imported.unwrap();
    assert!(imported.left_out.iter().any(|line| line.contains("names of methods are left out")));
    assert_eq!(imported.machine.samples().len(), 1);
}
