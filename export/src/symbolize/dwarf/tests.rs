//! DWARF made up by hand, most of it hostile. (DWARF 4, 7.5: abbreviations and units; ELF gABI, chapter 4.)

use std::io::{Cursor, Write};

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
fn found(file: Vec<u8>) -> Result<Vec<(Option<String>, u32)>, LineError> {
    let mut answer = Answer::new(&[START]);
    look_up(&NoFiles, ModuleId(1), Some(Cursor::new(file)), || None, &mut answer)?;
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
    let bytes = file(&[(".debug_info", 0, units), (".debug_abbrev", 0, abbreviations)]);
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
