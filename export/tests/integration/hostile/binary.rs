//! Files of formats with tables that much may refer to, each time to all of it.

use super::made::{Expected, Hostile};
use crate::jfr_made::Bytes;
use crate::nettrace_foreign::{block, number, sized, text, trace, words};

pub(super) fn all() -> Vec<Hostile> {
    let files = [
        ("labels of many events", labels_of_many_events(), Expected::Read),
        ("a long type of many frames", long_type_of_many_frames(), Expected::Read),
        ("lists of nothing", lists_of_nothing(), Expected::Read),
    ];
    let hostile = |(name, bytes, expected)| Hostile { name, plain_len: Vec::len(&bytes), bytes, expected };
    files.map(hostile).into()
}

/// A `.nettrace`: each event has all labels.
fn labels_of_many_events() -> Vec<u8> {
    const LABELS: usize = 1_000_000;
    const EVENTS: usize = 20_000;
    // An opcode each, the last of them marked.
    let mut labels = [7, 1].repeat(LABELS);
    labels[2 * (LABELS - 1)] |= 0x80;
    // A type without fields, of the number 1.
    let row = [number(1), text("P"), number(1), text("E"), vec![0; 2], vec![0; 2]].concat();
    let types = block(3, &[vec![0; 2], sized(&row)]);
    let threads = [(0, 0), (1, 400)]
        .map(|(at, id)| sized(&[number(at), vec![2], number(id), vec![3], number(id)].concat()));
    let stacks = block(5, &[words(&[1, 1, 8]), 0x40_1010_u64.to_le_bytes().to_vec()]);
    // Its type, thread, stack and labels, that no time went by, and no bytes.
    let event = [vec![223], [1, 0, 0, 0, 1, 1, 0, 1, 0].map(number).concat()].concat();
    let events = event.repeat(EVENTS);
    let header = [words(&[0x14 | 1 << 16]), [0_u64; 2].map(u64::to_le_bytes).concat()].concat();
    [
        b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec(),
        trace(0),
        types,
        stacks,
        block(6, &threads),
        block(8, &[words(&[1, 1]), labels]),
        block(2, &[header, events]),
        block(0, &[]),
    ]
    .concat()
}

/// A `.jfr`: each frame has the same type, which is a long text.
fn long_type_of_many_frames() -> Vec<u8> {
    const LETTERS: u32 = 500_000;
    const FRAMES: u32 = 60_000;
    let mut bytes = Bytes::new(true);
    bytes.types(&[
        (7, "long", false, &[]),
        (10, "java.lang.String", false, &[]),
        (11, "jdk.types.FrameType", false, &["description:10"]),
        (12, "jdk.types.Method", false, &["name:10"]),
        (14, "frame", false, &["method:12#", "type:11#"]),
        (15, "jdk.types.StackTrace", false, &["frames:14[]"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7", "stackTrace:15#"]),
    ]);
    bytes.event(1, |out| {
        out.long(1).long(0).long(0).byte(1).int(3);
        // In units of UTF-16.
        out.long(11).int(1).long(1).byte(4).int(LETTERS);
        (0..LETTERS).for_each(|_| {
            out.short(0x61);
        });
        out.long(12).int(1).long(1).text("f");
        out.long(15).int(1).long(1).int(FRAMES);
        (0..FRAMES).for_each(|_| {
            out.long(1).long(1);
        });
        out
    });
    bytes.event(20, |out| out.long(1).long(1));
    bytes.chunk()
}

/// A `.jfr`: each constant is a list of as many values as there are bytes behind it, which take none.
fn lists_of_nothing() -> Vec<u8> {
    const LISTS: u32 = 300_000;
    let mut bytes = Bytes::new(true);
    bytes.types(&[
        (7, "long", false, &[]),
        (13, "empty", false, &[]),
        (14, "list", false, &["all:13[]"]),
        (20, "jdk.ExecutionSample", true, &["startTime:7"]),
    ]);
    bytes.event(1, |out| {
        out.long(1).long(0).long(0).byte(1).int(1);
        out.long(14).int(LISTS);
        for at in 0..LISTS {
            out.long(at.into()).int(LISTS - at - 1);
        }
        out
    });
    bytes.event(20, |out| out.long(1));
    bytes.chunk()
}
