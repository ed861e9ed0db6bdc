//! Packed sections that are damaged, lie about their size, or ask for far more memory than they are worth.

use std::io::Write;
use std::process::Command;

use flate2::write::ZlibEncoder;
use unwinder::{Compression, SectionProblem, TableError, UnreadSection, UnwindTable};

use super::cost::{FLAGS, OFFSET, eh_frame, patch};
use crate::fuzzing::image::{SECTION_ADDRESS, with_sections};

const ZLIB: u32 = 1;
const ZSTD: u32 = 2;

/// `.debug_frame` of this many functions, 32 bytes each behind a CIE of 20.
fn debug_frame(functions: u64) -> Vec<u8> {
    let mut section = b"\x10\0\0\0\xff\xff\xff\xff\x01\0\x01\x78\x10\x0c\x07\x08\x90\x01\0\0".to_vec();
    for function in 0..functions {
        section.extend([28, 0, 0, 0, 0, 0, 0, 0]);
        section.extend((0x1000 + function * 16).to_le_bytes());
        section.extend([16, 0, 0, 0, 0, 0, 0, 0, 0x41, 0x0e, 16, 0x86, 2, 0, 0, 0]);
    }
    section
}

const FUNCTIONS: u64 = 100;

/// A section's header, of a method and the size it states, and packed data.
fn packed(method: u32, stated: usize, data: &[u8]) -> Vec<u8> {
    [&u64::from(method).to_le_bytes()[..], &(stated as u64).to_le_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0], data]
        .concat()
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A frame of zstd without a checksum: its window as a descriptor, and blocks of a kind (0: as they are, 1: a byte repeated),
/// a size and content.
fn zstd(window: u8, blocks: &[(u32, usize, &[u8])]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    for (index, (kind, size, content)) in blocks.iter().enumerate() {
        let is_last = u32::from(index + 1 == blocks.len());
        frame.extend(&((*size as u32) << 3 | kind << 1 | is_last).to_le_bytes()[..3]);
        frame.extend(*content);
    }
    frame
}

/// A window of 16 KiB.
const SMALL_WINDOW: u8 = 4 << 3;
/// One of 128 MiB.
const LARGE_WINDOW: u8 = 17 << 3;

fn xz(content: &[u8], options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(folder.path().join("content"), content).unwrap();
    let status = Command::new("xz").args(options).arg("content").current_dir(folder.path()).status();
    assert!(status.unwrap().success(), "{options:?}");
    std::fs::read(folder.path().join("content.xz")).unwrap()
}

/// A file with a packed `.debug_frame`.
fn with_debug_frame(section: &[u8]) -> Vec<u8> {
    let mut file = with_sections(&[(".debug_frame", 0, section)]);
    patch(&mut file, 1, &[(FLAGS, 0x800)]);
    file
}

fn with_debug_data(data: &[u8]) -> Vec<u8> {
    with_sections(&[(".gnu_debugdata", 0, data)])
}

fn functions(file: &[u8]) -> u64 {
    let table = <UnwindTable>::from_elf(file).unwrap();
    assert_eq!(table.unread(), None);
    table.size_report().functions as u64
}

/// Why nothing could be had of a file's only unwind section.
fn unread(file: &[u8]) -> UnreadSection {
    match <UnwindTable>::from_elf(file) {
        Err(TableError::Unread(unread)) => unread,
        other => panic!("{other:?}"),
    }
}

fn damaged(problem: &SectionProblem) -> Option<Compression> {
    match problem {
        SectionProblem::PackedDamaged { format, .. } => Some(*format),
        _ => None,
    }
}

#[test]
fn what_is_wrong_with_a_packed_debug_frame_is_said() {
    let content = debug_frame(FUNCTIONS);
    let size = content.len();
    let whole = [(ZLIB, Compression::Zlib, zlib(&content)), {
        let (first, second) = content.split_at(1000);
        (ZSTD, Compression::Zstd, zstd(SMALL_WINDOW, &[(0, 1000, first), (0, size - 1000, second)]))
    }];
    for (method, format, data) in &whole {
        let problem = |stated, data: &[u8]| {
            let unread = unread(&with_debug_frame(&packed(*method, stated, data)));
            assert_eq!(unread.section, ".debug_frame");
            unread.problem
        };
        assert_eq!(functions(&with_debug_frame(&packed(*method, size, data))), FUNCTIONS);
        for cut in [size / 100, data.len() / 2, data.len() - 1] {
            assert_eq!(
                problem(size, &data[..cut]),
                SectionProblem::PackedCutOff { format: *format },
                "{cut}"
            );
        }
        let found = size as u64;
        assert_eq!(problem(size - 1, data), SectionProblem::Longer { stated: found - 1 });
        assert_eq!(problem(size + 1, data), SectionProblem::Shorter { stated: found + 1, found });
        let (unpacked, packed) = (1 << 20, data.len() as u64);
        assert_eq!(problem(1 << 20, data), SectionProblem::Implausible { packed, unpacked });
        assert_eq!(damaged(&problem(size, &[b"none of it", data.as_slice()].concat())), Some(*format));
    }
    let unknown = unread(&with_debug_frame(&packed(3, size, &whole[0].2)));
    assert_eq!(unknown.problem, SectionProblem::UnknownCompression { method: 3 });
    let mut beyond = with_debug_frame(&packed(ZLIB, size, &whole[0].2));
    patch(&mut beyond, 1, &[(OFFSET, 1 << 40)]);
    assert_eq!(unread(&beyond).problem, SectionProblem::CutOff);
    let mut checksum = whole[0].2.clone();
    *checksum.last_mut().unwrap() ^= 1;
    let checksum = unread(&with_debug_frame(&packed(ZLIB, size, &checksum)));
    assert_eq!(damaged(&checksum.problem), Some(Compression::Zlib));
}

#[test]
fn a_section_of_more_frames_than_it_could_need_is_refused() {
    // A single segment of no bytes, in one raw block.
    const EMPTY: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    const SKIPPED: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    for content in [debug_frame(FUNCTIONS), debug_frame(1000)] {
        let size = content.len();
        let whole = zstd(LARGE_WINDOW, &[(0, size, &content)]);
        let most = 1000 + size / 4096 - 1;
        for empty in [EMPTY.as_slice(), &SKIPPED] {
            let with = |frames: usize| {
                with_debug_frame(&packed(ZSTD, size, &[whole.as_slice(), &empty.repeat(frames)].concat()))
            };
            assert_eq!(functions(&with(most)), (size as u64 - 20) / 32);
            assert_eq!(damaged(&unread(&with(most + 1)).problem), Some(Compression::Zstd));
        }
    }
}

#[test]
fn what_is_wrong_with_gnu_debugdata_is_said() {
    let inner = with_sections(&[(".debug_frame", 0, &debug_frame(FUNCTIONS))]);
    let data = xz(&inner, &[]);
    assert_eq!(functions(&with_debug_data(&data)), FUNCTIONS);
    let problem = |data: &[u8]| {
        let unread = unread(&with_debug_data(data));
        assert_eq!(unread.section, ".gnu_debugdata");
        unread.problem
    };
    let format = Compression::Xz;
    for cut in [0, 1, data.len() / 2, data.len() - 4] {
        assert_eq!(problem(&data[..cut]), SectionProblem::PackedCutOff { format });
    }
    let mut flipped = data.clone();
    flipped[data.len() / 2] ^= 0x10;
    assert_eq!(damaged(&problem(&flipped)), Some(format));
    assert_eq!(problem(&xz(b"no ELF file", &[])), SectionProblem::NoElf);
    let bomb = xz(&vec![0; 80 << 20], &[]);
    let (packed, unpacked) = (bomb.len() as u64, 80 << 20);
    assert_eq!(problem(&bomb), SectionProblem::Implausible { packed, unpacked });
    let mut beyond = with_debug_data(&data);
    patch(&mut beyond, 1, &[(OFFSET, 1 << 40)]);
    assert_eq!(unread(&beyond).problem, SectionProblem::CutOff);
    // The section in the file within is the one that can't be read.
    let inner = with_debug_frame(&packed_as_unknown());
    assert_eq!(unread(&with_debug_data(&xz(&inner, &[]))).section, ".debug_frame");
}

fn packed_as_unknown() -> Vec<u8> {
    packed(77, 100, &[0; 100])
}

#[test]
fn an_error_names_the_section_and_the_cause_and_what_to_do() {
    let error = <UnwindTable>::from_elf(&*with_debug_frame(&packed_as_unknown())).unwrap_err().to_string();
    assert_eq!(
        error,
        "section .debug_frame can't be read: it is packed by an unknown method, 77 (ELFCOMPRESS_*); no other section has \
         rules, so walk its code by frame pointers"
    );
}

#[test]
fn a_table_is_made_without_a_section_that_cannot_be_read() {
    let frame = eh_frame();
    let mut file =
        with_sections(&[(".debug_frame", 0, &packed_as_unknown()), (".eh_frame", SECTION_ADDRESS, &frame)]);
    patch(&mut file, 1, &[(FLAGS, 0x800)]);
    let table = <UnwindTable>::from_elf(&*file).unwrap();
    let expected =
        UnreadSection { section: ".debug_frame", problem: SectionProblem::UnknownCompression { method: 77 } };
    assert_eq!((table.size_report().functions, table.unread()), (1, Some(&expected)));

    // The same of an object: a third section is its code.
    let mut object = with_sections(&[
        (".debug_frame", 0, &packed_as_unknown()),
        (".eh_frame", 0, &frame),
        (".text", 0, &[0x90; 16]),
    ]);
    object[16] = 1;
    patch(&mut object, 1, &[(FLAGS, 0x800)]);
    patch(&mut object, 3, &[(FLAGS, 6)]);
    let table = <UnwindTable>::from_object(&*object, |_, _| Some(0x1000)).unwrap();
    assert_eq!((table.size_report().functions, table.unread()), (1, Some(&expected)));
}

/// What of `file` is held at most while its table is made, beyond 3 MiB that the decoders need.
fn held(file: &[u8]) -> u64 {
    let used = allocation_counter::measure(|| drop(<UnwindTable>::from_elf(file)));
    used.bytes_max.saturating_sub(3 << 20)
}

#[test]
fn a_dictionary_is_as_large_as_what_is_in_it() {
    let inner = with_sections(&[(".debug_frame", 0, &debug_frame(FUNCTIONS))]);
    // 64 MiB, 8 MiB, and a block for each 1,000 bytes.
    for options in [&["-9"][..], &[], &["-9", "--block-size=1000"], &["-9", "--check=crc32"]] {
        let file = with_debug_data(&xz(&inner, options));
        assert_eq!(functions(&file), FUNCTIONS, "{options:?}");
        assert_eq!(held(&file), 0, "{options:?}");
    }
    // One that needs what it asks for: what is at its end is found at its beginning.
    let noise = (0..100_000_u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    let noise: Vec<u8> = noise.flat_map(u64::to_le_bytes).collect();
    let frame = debug_frame(FUNCTIONS);
    let inner = with_sections(&[(".debug_frame", 0, &frame), ("a", 0, &noise), ("b", 0, &frame)]);
    assert_eq!(functions(&with_debug_data(&xz(&inner, &["-9"]))), FUNCTIONS);
}

/// Blocks of no bytes, which an index may have by the million.
#[test]
fn an_index_lists_no_more_blocks_than_there_is_room_for() {
    const RECORDS: usize = 4 << 20;
    let index_size = (1 + 4 + 2 * RECORDS + 4_usize).next_multiple_of(4);
    let mut file = vec![0; 12 + index_size + 12];
    file[13..17].copy_from_slice(&[0x80, 0x80, 0x80, 0x02]);
    let footer = file.len() - 12;
    file[footer + 4..footer + 8].copy_from_slice(&(index_size as u32 / 4 - 1).to_le_bytes());
    file[footer + 10..].copy_from_slice(b"YZ");
    let file = with_debug_data(&file);
    assert_eq!(unread(&file).problem, SectionProblem::PackedCutOff { format: Compression::Xz });
    assert_eq!(held(&file), 0);
}

#[test]
fn a_window_is_no_larger_than_what_is_in_it() {
    let content = debug_frame(FUNCTIONS);
    let size = content.len();
    let (first, second) = content.split_at(1000);
    let frames = [zstd(LARGE_WINDOW, &[(0, 1000, first)]), zstd(LARGE_WINDOW, &[(0, size - 1000, second)])];
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let data = [skipped.as_slice(), &frames[0], &skipped, &frames[1]].concat();
    let file = with_debug_frame(&packed(ZSTD, size, &data));
    assert_eq!(functions(&file), FUNCTIONS);
    assert_eq!(held(&file), 0);
    // 100 MiB of zeros that would not leave their window.
    let bomb = zstd(LARGE_WINDOW, &vec![(1, 128 << 10, &[0][..]); 800]);
    let file = with_debug_frame(&packed(ZSTD, 200, &bomb));
    assert_eq!(unread(&file).problem, SectionProblem::Longer { stated: 200 });
    assert_eq!(held(&file), 0);
}
