//! Files of formats with tables that much may refer to, each time to all of it.

use super::made::{Expected, Hostile};
use crate::jfr_made::Bytes;
use crate::nettrace_foreign::{block, number, sized, text, trace, words};

pub(super) fn all() -> Vec<Hostile> {
    let files = [
        ("labels of many events", labels_of_many_events(), Expected::Read),
        ("a long type of many frames", long_type_of_many_frames(), Expected::Read),
        ("lists of nothing", lists_of_nothing(), Expected::Read),
        ("events of many classes", events_of_many_classes(), Expected::Read),
        ("a class behind much else", class_behind_much_else(), Expected::Read),
        ("events of many fields", events_of_many_fields(), Expected::Read),
    ];
    let hostile = |(name, bytes, expected)| Hostile { name, plain_len: Vec::len(&bytes), bytes, expected };
    files.map(hostile).into()
}

/// A `.nettrace`: each event has all labels.
fn labels_of_many_events() -> Vec<u8> {
    const LABELS: usize = 1_000_000;
    // An opcode each, the last of them marked.
    let mut labels = [7, 1].repeat(LABELS);
    labels[2 * (LABELS - 1)] |= 0x80;
    nettrace("P", &[0; 2], &labels, 20_000)
}

/// A `.nettrace`: each event's type has all fields, which take no bytes, and each event is of 2 bytes.
fn events_of_many_fields() -> Vec<u8> {
    const FIELDS: u16 = 10_000;
    // Of an object without fields, and without a name.
    let field = sized(&[text(""), vec![1, 0, 0]].concat());
    let fields = [FIELDS.to_le_bytes().to_vec(), field.repeat(FIELDS.into())].concat();
    nettrace("Universal.Events", &fields, &[0x87, 1], 300_000)
}

/// A `.nettrace` of one type of events, with its fields, one stack, one list of labels, and so many events that have all of these.
fn nettrace(provider: &str, fields: &[u8], labels: &[u8], events: usize) -> Vec<u8> {
    let row = [number(1), text(provider), number(1), text("E"), fields.to_vec(), vec![0; 2]].concat();
    let types = block(3, &[vec![0; 2], sized(&row)]);
    let threads = [(0, 0), (1, 400)]
        .map(|(at, id)| sized(&[number(at), vec![2], number(id), vec![3], number(id)].concat()));
    let stacks = block(5, &[words(&[1, 1, 8]), 0x40_1010_u64.to_le_bytes().to_vec()]);
    // The first has its type, thread, stack and labels, that no time went by, and no bytes; the others are as the one before.
    let first = [vec![223], [1, 0, 0, 0, 1, 1, 0, 1, 0].map(number).concat()].concat();
    let events = [first, [0, 0].repeat(events - 1)].concat();
    let header = [words(&[0x14 | 1 << 16]), [0_u64; 2].map(u64::to_le_bytes).concat()].concat();
    [
        b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
        trace(0),
        types,
        stacks,
        block(6, &threads),
        block(8, &[words(&[1, 1]), labels.to_vec()]),
        block(2, &[header, events]),
        block(0, &[]),
    ]
    .concat()
}

/// Types of a `.jfr`, by number.
type Types<'a> = [(u64, &'a str, bool, &'a [&'a str])];

/// A `.jfr` of types, constants of so many of them, and so many events that are samples, of such numbers.
fn jfr(
    types: &Types<'_>,
    (pools, constants): (u32, impl FnOnce(&mut Bytes)),
    (events, numbers): (usize, &[u64]),
) -> Vec<u8> {
    const SAMPLE: u64 = 20;
    let mut bytes = Bytes::new(true);
    bytes.types(types);
    bytes.event(1, |out| {
        out.long(1).long(0).long(0).byte(1).int(pools);
        constants(out);
        out
    });
    for _ in 0..events {
        bytes.event(SAMPLE, |out| numbers.iter().fold(out, |out, number| out.long(*number)));
    }
    bytes.chunk()
}

/// A `.jfr`: each frame has the same type, which is a long text.
fn long_type_of_many_frames() -> Vec<u8> {
    const LETTERS: u32 = 500_000;
    const FRAMES: u32 = 60_000;
    let types: &Types<'_> = &[
        (7, "long", false, &[]),
        (10, "java.lang.String", false, &[]),
        (11, "jdk.types.FrameType", false, &["description:10"]),
        (12, "jdk.types.Method", false, &["name:10"]),
        (14, "frame", false, &["method:12#", "type:11#"]),
        (15, "jdk.types.StackTrace", false, &["frames:14[]"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7", "stackTrace:15#"]),
    ];
    let constants = |out: &mut Bytes| {
        // In units of UTF-16.
        out.long(11).int(1).long(1).byte(4).int(LETTERS);
        for _ in 0..LETTERS {
            out.short(0x61);
        }
        out.long(12).int(1).long(1).text("f");
        out.long(15).int(1).long(1).int(FRAMES);
        for _ in 0..FRAMES {
            out.long(1).long(1);
        }
    };
    jfr(types, (3, constants), (1, &[1, 1]))
}

/// A `.jfr`: short events with as many classes as a type has fields, which take no bytes.
fn events_of_many_classes() -> Vec<u8> {
    const FIELDS: usize = 4_000;
    let names: Vec<String> = (0..FIELDS).map(|at| format!("c{at}:12")).collect();
    let fields: Vec<&str> = names.iter().map(String::as_str).collect();
    let types: &Types<'_> =
        &[(12, "java.lang.Class", false, &[]), (20, "jdk.ExecutionSample", true, &fields)];
    jfr(types, (0, |_: &mut Bytes| {}), (100_000, &[]))
}

/// A `.jfr`: each event is of a class whose name is behind a long list.
fn class_behind_much_else() -> Vec<u8> {
    const BYTES: u32 = 500_000;
    let types: &Types<'_> = &[
        (5, "byte", false, &[]),
        (7, "long", false, &[]),
        (10, "java.lang.String", false, &[]),
        (12, "java.lang.Class", false, &["rest:5[]", "name:10"]),
        (20, "jdk.ObjectAllocationSample", true, &["startTime:7", "objectClass:12#", "weight:7"]),
    ];
    let constants = |out: &mut Bytes| {
        out.long(12).int(1).long(1).int(BYTES);
        for _ in 0..BYTES {
            out.byte(0);
        }
        out.text("A");
    };
    jfr(types, (1, constants), (100_000, &[1, 1, 1]))
}

/// A `.jfr`: each constant is a list of as many values as there are constants behind it, which take no bytes.
fn lists_of_nothing() -> Vec<u8> {
    const LISTS: u32 = 300_000;
    let types: &Types<'_> = &[
        (7, "long", false, &[]),
        (13, "empty", false, &[]),
        (14, "list", false, &["all:13[]"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7"]),
    ];
    let constants = |out: &mut Bytes| {
        out.long(14).int(LISTS);
        for at in 0..LISTS {
            out.long(at.into()).int(LISTS - at - 1);
        }
    };
    jfr(types, (1, constants), (1, &[1]))
}
