//! DWARF made up by hand, most of it hostile. (DWARF 4, 7.5: abbreviations and units; ELF gABI, chapter 4.)

use std::io::{Cursor, Write};
use std::time::{Duration, Instant};

use collector_common::record::ModuleId;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{LineError, look_up};
use crate::symbolize::ModuleFiles;
use crate::symbolize::answer::Answer;

struct NoFiles;

impl ModuleFiles for NoFiles {
    type File = Cursor<Vec<u8>>;

    fn open(&self, _: ModuleId) -> Option<Self::File> {
        None
    }
}

/// A section by name, flags and bytes.
type Section<'a> = (&'a str, u64, Vec<u8>);

const COMPRESSED: u64 = 1 << 11;

/// A 64-bit little-endian file.
fn file(sections: &[Section<'_>]) -> Vec<u8> {
    let mut names = vec![0];
    let mut headers = vec![[0; 10]];
    let mut bytes = vec![0; 64];
    let mut add = |name: &str, kind: u64, flags: u64, content: &[u8]| {
        let start = names.len() as u64;
        names.extend(name.bytes().chain([0]));
        let content = if name == ".names" { names.clone() } else { content.to_owned() };
        headers.push([start, kind, flags, 0, bytes.len() as u64, content.len() as u64, 0, 0, 1, 0]);
        bytes.extend(content);
    };
    for (name, flags, content) in sections {
        add(name, 1, *flags, content);
    }
    add(".names", 3, 0, &[]);
    let table = bytes.len() as u64;
    for header in &headers {
        for (index, field) in header.iter().enumerate() {
            let width = if [0, 1, 6, 7].contains(&index) { 4 } else { 8 };
            bytes.extend(&field.to_le_bytes()[..width]);
        }
    }
    let count = headers.len() as u16;
    bytes[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for (at, half) in [(16, 3), (18, 62), (52, 64), (58, 64), (60, count), (62, count - 1)] {
        bytes[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    bytes[20] = 1;
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes
}

/// 1: a unit; 2: a function; 3: an inlined one with a name; 4: an inlined one by its origin. All but the last have an
/// address and a size, and all have children.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x0b, 0, 0, // DW_TAG_compile_unit: DW_AT_low_pc, DW_AT_high_pc
    2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x0b, 0, 0, // DW_TAG_subprogram: DW_AT_name, and the same
    3, 0x1d, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x0b, 0x59, 0x0b, 0,
    0, // DW_TAG_inlined_subroutine: and DW_AT_call_line
    4, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x0b, 0x59, 0x0b, 0,
    0, // the same by DW_AT_abstract_origin
    0,
];

const START: u64 = 0x1000;

fn range() -> Vec<u8> {
    [&START.to_le_bytes()[..], &[0x10]].concat()
}

/// A unit of DWARF 4 with these entries.
fn unit(entries: &[u8]) -> Vec<u8> {
    let length = (entries.len() + 7) as u32;
    [&length.to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 8], entries].concat()
}

/// A function with functions inlined in it, one into the other.
fn nested(depth: usize) -> Vec<u8> {
    let inlined = [&b"\x03in\0"[..], &range(), &[7]].concat().repeat(depth);
    let entries = [&[1][..], &range(), b"\x02out\0", &range(), &inlined, &vec![0; depth + 2]].concat();
    unit(&entries)
}

fn with_info(info: Vec<u8>) -> Vec<u8> {
    file(&[(".debug_info", 0, info), (".debug_abbrev", 0, ABBREVIATIONS.to_owned())])
}

/// Names of what is found for the address, innermost first, and lines.
type Outcome = Result<Vec<(Option<String>, u32)>, LineError>;

fn found(file: Vec<u8>) -> Outcome {
    found_in(Some(file), None, Duration::from_mins(1))
}

/// The same in a program or its debug file, within a time.
fn found_in(own: Option<Vec<u8>>, debug: Option<Vec<u8>>, time: Duration) -> Outcome {
    let mut answer = Answer::new(&[START]);
    let (own, debug) = (own.map(Cursor::new), debug.map(Cursor::new));
    look_up(&NoFiles, ModuleId(1), own, || debug, Instant::now() + time, &mut answer)?;
    let names: Vec<&str> = answer.names().collect();
    let levels = answer.list(0).and_then(|list| answer.lists().nth(list)).unwrap_or_default();
    let name = |name: Option<u32>| name.map(|name| names[name as usize].to_owned());
    Ok(levels.iter().map(|level| (name(level.name), level.line)).collect())
}

#[test]
fn nested_functions_are_followed_as_far_as_real_ones_go() {
    let named = |name: &str, line| (Some(name.to_owned()), line);
    let expected = [named("in", 0), named("in", 7), named("in", 7), named("out", 7)];
    assert_eq!(found(with_info(nested(3))).unwrap(), expected);
    assert_eq!(found(with_info(nested(60))).unwrap().len(), 61);
    // Each takes some of the stack.
    assert!(matches!(found(with_info(nested(200_000))), Err(LineError::Deep)));
}

#[test]
fn an_origin_that_is_its_own_has_no_name() {
    let mut entries = [&[1][..], &range(), b"\x02out\0", &range()].concat();
    let own = (entries.len() + 11) as u32;
    entries.extend([&[4][..], &own.to_le_bytes(), &range(), &[7, 0, 0, 0]].concat());
    let found = found(with_info(unit(&entries))).unwrap();
    assert_eq!(found, [(None, 0), (Some("out".to_owned()), 7)]);
}

#[test]
fn more_units_than_any_file_has_are_refused() {
    let many = unit(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).repeat(super::lookup::MAX_UNITS + 1);
    assert!(matches!(found(with_info(many)), Err(LineError::TooMany { .. })));
}

#[test]
fn what_is_read_again_and_again_is_refused() {
    // Each unit has abbreviations of its own, which are all up to the end of the section.
    let mut abbreviations = Vec::new();
    for code in 0x80_u16..0x3f80 {
        let code = [code as u8 | 0x80, (code >> 7) as u8];
        abbreviations.extend([&code[..], &[0x2e, 0, 0, 0]].concat());
    }
    abbreviations.push(0);
    let unit = |at: u32| [&8_u32.to_le_bytes()[..], &[4, 0], &at.to_le_bytes(), &[8, 0]].concat();
    let units: Vec<u8> = (0..16_000).flat_map(|index| unit(index * 6)).collect();
    // What nobody reads is no reason to read more of the others.
    let unread = (".debug_line", 0, vec![0; 256 << 20]);
    let bytes = file(&[(".debug_info", 0, units), (".debug_abbrev", 0, abbreviations), unread]);
    assert!(matches!(found(bytes), Err(LineError::Endless)));
}

/// A section that is compressed as ELF has it.
fn packed(content: &[u8], stated: u64) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    let header = [1_u64.to_le_bytes(), stated.to_le_bytes(), 1_u64.to_le_bytes()].concat();
    [header, encoder.finish().unwrap()].concat()
}

#[test]
fn a_section_unpacks_to_what_it_says() {
    let info = nested(3);
    let size = info.len() as u64;
    let with = |section: Vec<u8>| {
        let abbreviations = (".debug_abbrev", 0, ABBREVIATIONS.to_owned());
        found(file(&[(".debug_info", COMPRESSED, section), abbreviations]))
    };
    assert_eq!(with(packed(&info, size)).unwrap().len(), 4);
    assert!(matches!(with(packed(&info, u64::MAX)), Err(LineError::TooLarge { .. })));
    for wrong in [size - 1, size + 1, size * 300] {
        assert!(matches!(with(packed(&info, wrong)), Err(LineError::Packed(_))), "{wrong}");
    }
    let zeros = vec![0; 64 << 20];
    assert!(matches!(with(packed(&zeros, zeros.len() as u64)), Err(LineError::Packed(_))), "a bomb");
    let mut cut = packed(&info, size);
    cut.truncate(40);
    assert!(matches!(with(cut), Err(LineError::Packed(_))));
}

#[test]
fn sections_outside_of_the_file_are_an_error() {
    let mut bytes = with_info(nested(3));
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let size = table + 64 + 32;
    bytes[size..size + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    assert!(matches!(found(bytes), Err(LineError::Read(_))));
}

/// 5: a unit with lines; 6: a function without children and with an address; 7: an inlined one of which nothing is said.
fn more_abbreviations() -> Vec<u8> {
    let mut all = ABBREVIATIONS[..ABBREVIATIONS.len() - 1].to_vec();
    // DW_TAG_compile_unit: DW_AT_low_pc, DW_AT_high_pc, DW_AT_stmt_list.
    all.extend([5, 0x11, 0, 0x11, 0x01, 0x12, 0x0b, 0x10, 0x17, 0, 0]);
    // DW_TAG_inlined_subroutine.
    all.extend([6, 0x1d, 0, 0, 0, 0]);
    all
}

/// Bytes at the most that a lookup in a file holds, beside the file, and its outcome.
fn held(file: Vec<u8>) -> (u64, Outcome) {
    let mut result = None;
    let used = allocation_counter::measure(|| result = Some(found(file)));
    (used.bytes_max, result.unwrap())
}

#[test]
fn what_is_made_of_a_small_file_takes_little_memory() {
    // A program of lines of version 4, nearly all of which are rows that take a byte each (6.2.5.1): an address first.
    let header = [1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, b'a', 0, 0, 0, 0, 0];
    let address = [&[0, 9, 2][..], &START.to_le_bytes()].concat();
    let rows = vec![0x20; 20 << 20];
    let end = [0, 1, 1];
    let body = [&(header.len() as u32).to_le_bytes()[..], &header, &address, &rows, &end].concat();
    let lines = [&(body.len() as u32 + 2).to_le_bytes()[..], &[4, 0], &body].concat();
    let entries = [&[5][..], &range(), &[0; 4]].concat();
    let info = unit(&entries).repeat(3);
    // As small as a section may be that unpacks to so much.
    let mut packed = packed(&lines, lines.len() as u64);
    packed.resize(lines.len() / 127, 0);
    let bytes = file(&[
        (".debug_info", 0, info),
        (".debug_abbrev", 0, more_abbreviations()),
        (".debug_line", COMPRESSED, packed),
    ]);
    let (held, result) = held(bytes);
    assert!(matches!(result, Err(LineError::TooLarge { .. })), "{result:?}");
    assert!(held < 256 << 20, "{held}");

    // Inlined functions of which nothing is said but that they are.
    let entries = [&[1][..], &range(), b"\x02out\0", &range(), &vec![6; 8 << 20], &[0; 2]].concat();
    let bytes = file(&[(".debug_info", 0, unit(&entries)), (".debug_abbrev", 0, more_abbreviations())]);
    let (held, result) = self::held(bytes);
    assert!(matches!(result, Err(LineError::TooLarge { .. })), "{result:?}");
    assert!(held < 256 << 20, "{held}");
}

#[test]
fn time_is_bounded_whatever_costs_it() {
    // DW_FORM_flag_present takes no byte.
    let flags = [0x27, 0x19].repeat(200_000);
    let abbreviations =
        [&[1, 0x11, 1, 0x11, 0x01, 0x12, 0x0b, 0, 0, 2, 0x34, 0][..], &flags, &[0; 3]].concat();
    let entries = [&[1][..], &range(), &vec![2; 20_000], &[0]].concat();
    let bytes = file(&[(".debug_info", 0, unit(&entries)), (".debug_abbrev", 0, abbreviations)]);
    let start = Instant::now();
    let result = found_in(Some(bytes), None, Duration::from_millis(300));
    assert!(matches!(result, Err(LineError::Late)), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_good_debug_file_is_asked_where_the_program_has_a_bad_section() {
    let good = with_info(nested(3));
    let bad = file(&[(".debug_line", COMPRESSED, vec![9; 40])]);
    let minute = Duration::from_mins(1);
    assert_eq!(found_in(Some(bad.clone()), Some(good), minute).unwrap().len(), 4);
    for debug in [None, Some(bad.clone())] {
        assert!(matches!(found_in(Some(bad.clone()), debug, minute), Err(LineError::Packed(_))));
    }
}
