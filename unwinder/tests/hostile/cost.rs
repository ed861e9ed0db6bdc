//! Files that are made to cost more than their size: what is read many times, and what unpacks to much.

use std::time::{Duration, Instant};

use unwinder::UnwindTable;

use crate::fuzzing::image::{SECTION_ADDRESS, with_sections};

/// Far more than a file of some megabytes takes in a debug build, and far less than where time grows with the square of the
/// size.
const LONG: Duration = Duration::from_secs(20);

fn assert_quick(use_it: impl FnOnce()) {
    let start = Instant::now();
    use_it();
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

/// An entry of `.eh_frame`, at a multiple of 4.
fn entry(section: &mut Vec<u8>, mut body: Vec<u8>) -> usize {
    let at = section.len();
    body.resize(body.len().next_multiple_of(4), 0);
    section.extend((body.len() as u32).to_le_bytes());
    section.extend(body);
    at
}

/// A CIE of version 1 with this augmentation, whose data are none: CFA `rsp + 8`, return address below it.
fn cie(section: &mut Vec<u8>, augmentation: &[u8]) -> usize {
    let body = [&[0, 0, 0, 0, 1], augmentation, b"\0\x01\x78\x10\0\x0c\x07\x08\x90\x01"].concat();
    entry(section, body)
}

/// An FDE of such a CIE, with absolute addresses.
fn fde(section: &mut Vec<u8>, cie: usize, start: u64, length: u64, instructions: &[u8]) {
    let back = (section.len() + 4 - cie) as u32;
    let mut body = back.to_le_bytes().to_vec();
    body.extend(start.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.push(0);
    body.extend(instructions);
    entry(section, body);
}

fn functions(file: &[u8]) -> usize {
    let table = <UnwindTable>::from_elf(file).unwrap();
    table.compile_all();
    table.size_report().functions
}

/// 100,000 functions whose CIEs, in turns, have an augmentation of so many letters.
fn functions_of_long_cies(letters: usize) -> usize {
    let augmentation = [b"z", vec![b'B'; letters - 1].as_slice()].concat();
    let mut section = Vec::new();
    let cies = [cie(&mut section, &augmentation), cie(&mut section, &augmentation)];
    for (number, cie) in (0..100_000).zip(cies.into_iter().cycle()) {
        fde(&mut section, cie, 0x1000 + number * 16, 16, &[]);
    }
    functions(&with_sections(&[(".eh_frame", SECTION_ADDRESS, &section)]))
}

#[test]
fn a_cie_with_more_letters_than_mean_anything_is_none() {
    assert_quick(|| {
        assert_eq!(functions_of_long_cies(16), 100_000);
        assert_eq!(functions_of_long_cies(17), 0);
        assert_eq!(functions_of_long_cies(1_000_000), 0);
    });
}

#[test]
fn rules_under_a_long_expression_do_not_read_it_each() {
    // DW_CFA_val_expression of rbp, rsp and the return address; then a rule for each byte.
    let mut instructions = Vec::new();
    for register in [6, 7, 16] {
        instructions.extend([0x16, register, 0xe0, 0xd4, 0x03]);
        instructions.extend(vec![0x96; 60_000]);
    }
    for row in 0..100_000_u32 {
        instructions.extend([
            0x41,
            0x0e,
            0x80 | row as u8,
            0x80 | (row >> 7) as u8,
            (row >> 14) as u8 & 0x7f,
        ]);
    }
    let mut section = Vec::new();
    let cie = cie(&mut section, b"z");
    fde(&mut section, cie, 0x1000, 0x10_0000, &instructions);
    let file = with_sections(&[(".eh_frame", SECTION_ADDRESS, &section)]);
    assert_quick(|| assert_eq!(functions(&file), 1));
}
