//! Files that are made here byte by byte, of either byte order.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A file as it is written.
struct Made {
    bytes: Vec<u8>,
    big: bool,
}

impl Made {
    fn new(big: bool, flags: u64) -> Self {
        let mut this = Self { bytes: Vec::new(), big };
        this.u32s(&[0x4a69_5444, 1, 40, 62, 0, 7]);
        this.u64s(&[0, flags]);
        this
    }

    fn u32s(&mut self, numbers: &[u32]) {
        let bytes = |number: &u32| if self.big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.extend(numbers.iter().flat_map(bytes));
    }

    fn u64s(&mut self, numbers: &[u64]) {
        let bytes = |number: &u64| if self.big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.bytes.extend(numbers.iter().flat_map(bytes));
    }

    /// Adds a record of what `fill` adds.
    fn record(mut self, id: u32, time: u64, fill: impl FnOnce(&mut Self)) -> Self {
        let at = self.bytes.len();
        self.u32s(&[id, 0]);
        self.u64s(&[time]);
        fill(&mut self);
        let size = (self.bytes.len() - at) as u32;
        let size = if self.big { size.to_be_bytes() } else { size.to_le_bytes() };
        self.bytes[at + 4..at + 8].copy_from_slice(&size);
        self
    }

    fn load(self, time: u64, start: u64, size: u64, index: u64, name: &str) -> Self {
        self.record(0, time, |made| {
            made.u32s(&[7, 8]);
            made.u64s(&[start, start, size, index]);
            made.bytes.extend(name.as_bytes());
            made.bytes.push(0);
            made.bytes.extend(std::iter::repeat_n(0x90, size as usize));
        })
    }

    fn moved(self, time: u64, from: u64, to: u64, size: u64, index: u64) -> Self {
        self.record(1, time, |made| {
            made.u32s(&[7, 8]);
            made.u64s(&[to, from, to, size, index]);
        })
    }

    /// `entries`: address, line, column, file.
    fn lines(self, start: u64, entries: &[(u64, u32, u32, &[u8])]) -> Self {
        self.record(2, 0, |made| {
            made.u64s(&[start, entries.len() as u64]);
            for &(address, line, column, file) in entries {
                made.u64s(&[address]);
                made.u32s(&[line, column]);
                made.bytes.extend(file);
                made.bytes.push(0);
            }
        })
    }
}

fn read<'a>(made: &'a Made, wanted: &[u64]) -> JitDump<Cursor<&'a [u8]>> {
    JitDump::read(Cursor::new(made.bytes.as_slice()), wanted).unwrap()
}

/// All that held an address: names, with since when and until when.
fn held(dump: &mut JitDump<Cursor<&[u8]>>, position: usize) -> Vec<(String, u64, u64)> {
    let codes: Vec<u32> = dump.codes_at(position).collect();
    let of = |code| {
        let JitCode { since, until, .. } = *dump.code(code).unwrap();
        (dump.name(code).unwrap(), since.0, until.0)
    };
    codes.into_iter().map(of).collect()
}

const EVER: u64 = u64::MAX;

#[test]
fn code_is_known_by_place_and_time_in_either_byte_order() {
    for big in [false, true] {
        let made = Made::new(big, 0)
            .load(10, 0x1000, 0x100, 1, "first one")
            .record(4, 15, |made| made.bytes.extend([1, 2, 3]))
            .load(20, 0x1080, 0x10, 2, "inside")
            .load(5, 0x1000, 0x10, 3, "before")
            .record(99, 30, |_| {});
        let mut dump = read(&made, &[0xfff, 0x1000, 0x1080, 0x10ff, 0x1100]);
        assert!(dump.has_system_clock() && dump.damage().is_none());
        let found: Vec<_> = (0..5).map(|position| held(&mut dump, position)).collect();
        let of = |name: &str, since| (name.to_owned(), since, EVER);
        let first = || of("first one", 10);
        assert_eq!(
            found,
            [vec![], vec![of("before", 5), first()], vec![first(), of("inside", 20)], vec![first()], vec![]]
        );
    }
    assert!(!read(&Made::new(false, 1), &[]).has_system_clock());
}

#[test]
fn code_that_is_moved_is_known_at_both_places() {
    let made = Made::new(false, 0)
        .lines(0x1000, &[(0x1000, 3, 1, b"a.x")])
        .load(10, 0x1000, 0x100, 1, "moves")
        .moved(20, 0x1000, 0x9000, 0x100, 1)
        .moved(25, 0x7777, 0x8000, 0x100, 1)
        .moved(30, 0x9000, 0x5000, 0x100, 1)
        .moved(40, 0x1000, 0x6000, 0x100, 2);
    let mut dump = read(&made, &[0x1010, 0x5010, 0x6010, 0x8010, 0x9010]);
    let found: Vec<_> = (0..5).map(|position| held(&mut dump, position)).collect();
    let of = |since, until| vec![("moves".to_owned(), since, until)];
    assert_eq!(found, [of(10, 20), of(30, EVER), vec![], vec![], of(20, 30)]);
    let code = dump.codes_at(1).next().unwrap();
    assert_eq!(dump.lines(code, &[0x5010]).unwrap()[0].as_ref().unwrap().line, 3);
}

#[test]
fn lines_are_those_of_the_next_code() {
    let file: &[u8] = b"/src/a b.x";
    for skew in [0, 0x40] {
        let entries =
            [(0x1000 + skew, 10, 5, file), (0x1020 + skew, 12, 0, b"\xff"), (0x1010 + skew, 11, 7, b"b.x")];
        let made = Made::new(true, 0)
            .lines(0x1000, &entries)
            .load(10, 0x1000, 0x100, 1, "f")
            .load(20, 0x2000, 0x100, 2, "none")
            .lines(0x3000, &[(0x3080, 1, 1, b"x")])
            .load(30, 0x4000, 0x100, 3, "others");
        let mut dump = read(&made, &[0x1000, 0x2000, 0x4000]);
        let mut lines = |position, addresses: &[u64]| {
            let code = dump.codes_at(position).next().unwrap();
            let found = dump.lines(code, addresses).unwrap().into_iter();
            found.map(|line| line.map(|at| (at.file, at.line, at.column))).collect::<Vec<_>>()
        };
        let at = |file: &str, line, column| Some((file.to_owned(), line, column));
        assert_eq!(
            lines(0, &[0x1000, 0x100f, 0x1010, 0x1020, 0x10ff]),
            [
                at("/src/a b.x", 10, 5),
                at("/src/a b.x", 10, 5),
                at("b.x", 11, 7),
                at("/src/a b.x", 12, 0),
                at("/src/a b.x", 12, 0)
            ]
        );
        assert_eq!(lines(1, &[0x2000]), [None]);
        assert_eq!(lines(2, &[0x4000]), [None]);
    }
}

#[test]
fn lines_of_which_some_lie_elsewhere_are_not_believed() {
    // As V8 13 writes the names of files that it has freed meanwhile.
    let entries: [(u64, u32, u32, &[u8]); 2] =
        [(0x1040, 1, 1, b"\x86\x2a\x04\0\0\0\0\0\x10\xbd\xc2\x84\x31\xc9\xe0\xfct.js"), (0x1050, 2, 1, b"x")];
    let made = Made::new(false, 0).lines(0x1000, &entries).load(1, 0x1000, 0x100, 1, "f");
    let mut dump = read(&made, &[0x1000]);
    assert_eq!(dump.lines(0, &[0x1000]).unwrap(), [None]);
}

#[test]
fn a_file_ends_with_the_last_whole_record() {
    let whole = Made::new(false, 0).load(10, 0x1000, 0x10, 1, "first");
    let len = whole.bytes.len();
    let both = whole.load(20, 0x2000, 0x10, 2, "second");
    for end in 40..=both.bytes.len() {
        let made = Made { bytes: both.bytes[..end].to_vec(), big: false };
        let mut dump = read(&made, &[0x1000, 0x2000]);
        assert!(dump.damage().is_none(), "{end}");
        assert_eq!(held(&mut dump, 0).len(), usize::from(end >= len), "{end}");
        assert_eq!(held(&mut dump, 1).len(), usize::from(end == both.bytes.len()), "{end}");
    }
    let closed = Made::new(false, 0).record(3, 5, |_| {}).load(10, 0x1000, 0x10, 1, "behind the end");
    assert_eq!(held(&mut read(&closed, &[0x1000]), 0), []);
}

#[test]
fn what_is_no_dump_is_told() {
    let error = |bytes: &[u8]| JitDump::read(Cursor::new(bytes), &[]).unwrap_err().to_string();
    assert!(error(b"").contains("reading failed"), "{}", error(b""));
    assert!(error(&[b'x'; 40]).contains("begins with 0x78787878"));
    let mut made = Made::new(false, 0);
    made.bytes[4] = 2;
    assert!(error(&made.bytes).contains("version 2"));
    made.bytes[4] = 1;
    made.bytes[8] = 8;
    assert!(error(&made.bytes).contains("byte 0 claims 8 bytes"));
}

#[test]
fn records_of_impossible_sizes_end_a_file() {
    for size in [0_u32, 15, 16, 56] {
        let mut made = Made::new(false, 0).load(10, 0x1000, 0x10, 1, "first");
        let at = made.bytes.len();
        made = made.load(20, 0x2000, 0x10, 2, "second");
        made.bytes[at + 4..at + 8].copy_from_slice(&size.to_le_bytes());
        let mut dump = read(&made, &[0x1000, 0x2000]);
        let damage = dump.damage().unwrap().to_string();
        assert_eq!(damage, format!("what begins at byte {at} claims {size} bytes"));
        assert_eq!((held(&mut dump, 0).len(), held(&mut dump, 1).len()), (1, 0));
    }
}

#[test]
fn a_name_does_not_run_into_the_code() {
    let made = Made::new(false, 0).record(0, 1, |made| {
        made.u32s(&[7, 8]);
        made.u64s(&[0x1000, 0x1000, 4, 1]);
        made.bytes.extend(b"name without an end");
        made.bytes.extend(b"CODE");
    });
    assert_eq!(held(&mut read(&made, &[0x1000]), 0)[0].0, "name without an end");
}

#[test]
fn codes_that_hold_everything_are_bounded() {
    let wanted: Vec<u64> = (0..10_000).collect();
    let load = Made::new(false, 0).record(0, 1, |made| {
        made.u32s(&[7, 8]);
        made.u64s(&[0, 0, u64::MAX, 1]);
        made.bytes.extend(b"f\0");
    });
    let (header, record) = load.bytes.split_at(40);
    let bytes = [header, &record.repeat(2000)].concat();
    let dump = JitDump::read(Cursor::new(bytes.as_slice()), &wanted).unwrap();
    assert!(matches!(dump.damage(), Some(JitDumpError::TooMany { .. })), "{:?}", dump.damage());
    assert!(dump.pairs.len() <= MOST_PAIRS);
}

/// Everything that can be asked.
fn ask(bytes: &[u8], wanted: &[u64]) {
    let Ok(mut dump) = JitDump::read(Cursor::new(bytes), wanted) else { return };
    for position in 0..wanted.len() {
        for code in dump.codes_at(position).collect::<Vec<_>>() {
            let _ = dump.name(code);
            let _ = dump.lines(code, wanted);
        }
    }
}

proptest! {
    #[test]
    fn spoilt_files_are_survived(
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Made::new(false, 0)
            .lines(0x1000, &[(0x1000, 1, 1, b"a"), (0x1004, 2, 1, b"\xff")])
            .load(1, 0x1000, 0x10, 1, "f")
            .moved(2, 0x1000, 0x2000, 0x10, 1)
            .bytes;
        for (at, byte) in places {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        ask(&bytes, &[0, 0x1004, 0x2004, u64::MAX]);
        ask(&bytes[..end.index(bytes.len())], &[0, 0x1004, 0x2004, u64::MAX]);
    }
}
