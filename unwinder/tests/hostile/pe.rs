//! Damaged PE images.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use proptest::prelude::*;
use unwinder::aarch64::{self, Aarch64, ReturnAddressMask};
use unwinder::x86_64::{self, X86_64};
use unwinder::{Architecture, CopiedStack, ImageBytes, Mapping, Registers, UnwindTable, Unwinder};

use super::{One, section};
use crate::fuzzing::pe::{IMAGE_BASE, run as use_file};

/// Small images with every kind of unwind information, for x64 and for ARM64; none, and a line that says so, without a
/// compiler for it.
fn images() -> &'static [Vec<u8>] {
    static IMAGES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let targets = [
            ("x86_64-pc-windows-msvc", "windows_shapes.s", "-fwinx64-eh-unwindv2=disabled"),
            ("x86_64-pc-windows-msvc", "windows_shapes.s", "-fwinx64-eh-unwindv2=best-effort"),
            ("aarch64-pc-windows-msvc", "windows_shapes_arm64.s", "-mbranch-protection=pac-ret"),
        ];
        targets.into_iter().map_while(|(target, shapes, flag)| image(target, shapes, flag)).collect()
    })
}

fn image(target: &str, shapes: &str, flag: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = folder.path().join("image.exe");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut link = Command::new("lld-link-22");
    link.args(["/nodefaultlib", "/entry:entry", "/fixed:no", "/subsystem:console"]);
    link.arg(format!("/base:{IMAGE_BASE}")).arg(format!("/out:{}", image.display()));
    for source in ["windows.c", shapes] {
        let object = folder.path().join(source).with_extension("obj");
        let mut compile = Command::new("clang-22");
        compile.arg(format!("--target={target}")).args(["-w", "-O2", "-ffreestanding", flag]);
        compile.args(["-fasynchronous-unwind-tables", "-c", "-o"]).arg(&object).arg(programs.join(source));
        let Ok(status) = compile.status() else {
            eprintln!("SKIPPED: there is no clang-22");
            return None;
        };
        assert!(status.success(), "{compile:?}");
        link.arg(object);
    }
    assert!(link.status().unwrap().success(), "{link:?}");
    Some(std::fs::read(image).unwrap())
}

/// An image with one section, from 0x1000 to far behind its bytes, which begin with the exception directory.
fn image_of(machine: u16, entries: &[[u32; 3]], entry_words: usize, records: &[u8]) -> Vec<u8> {
    let mut content: Vec<u8> =
        entries.iter().flat_map(|entry| &entry[..entry_words]).flat_map(|word| word.to_le_bytes()).collect();
    let directory = content.len() as u32;
    content.resize(RECORDS, 0);
    content.extend(records);
    let mut file = b"MZ".to_vec();
    file.resize(60, 0);
    file.extend(64_u32.to_le_bytes());
    file.extend(b"PE\0\0");
    for half in [machine, 1, 0, 0, 0, 0, 0, 0, 240, 2, 0x20b] {
        file.extend(half.to_le_bytes());
    }
    let mut optional = [0_u8; 238];
    optional[22..30].copy_from_slice(&IMAGE_BASE.to_le_bytes());
    optional[106] = 16;
    optional[134..138].copy_from_slice(&0x1000_u32.to_le_bytes());
    optional[138..142].copy_from_slice(&directory.to_le_bytes());
    file.extend(optional);
    file.extend(b".text\0\0\0");
    for word in [0x4000_0000, 0x1000, content.len() as u32, 0x400, 0, 0, 0, 0x6000_0020] {
        file.extend(u32::to_le_bytes(word));
    }
    file.resize(0x400, 0);
    file.extend(content);
    file
}

/// Where the records of such an image begin in its section.
const RECORDS: usize = 0x2000;
const RECORDS_RVA: u32 = 0x1000 + RECORDS as u32;

/// Begins of functions: every few bytes of the image, or far behind its bytes.
fn begins(far: bool) -> impl Iterator<Item = u32> {
    (0..600).map(move |index| if far { 0x10_0000 + index * 0x10_0000 } else { 0x1000 + index * 16 })
}

#[test]
fn functions_that_share_hundreds_of_epilogues_make_no_more_rows_than_code() {
    // Version 2, 255 slots: epilogues 8 bytes apart, each of 8 bytes; then pushes.
    let mut shared = vec![2, 0, 255, 0, 8, 0x16];
    for distance in (16..=200 * 8_u32).step_by(8) {
        shared.extend([distance as u8, 6 | (distance >> 8 << 4) as u8]);
    }
    shared.resize(4 + 255 * 2, 0x30);
    for (far, size) in [(true, 0x1000), (false, 16)] {
        let entries: Vec<_> = begins(far).map(|begin| [begin, begin + size, RECORDS_RVA]).collect();
        let image = image_of(0x8664, &entries, 3, &shared);
        assert_eq!(UnwindTable::<X86_64>::from_pe(image.clone()).unwrap().size_report().functions, 600);
        use_file(&image);
    }
}

#[test]
fn functions_that_share_thousands_of_epilogues_make_no_more_rows_than_code() {
    // With the second word: 4,000 epilogues 4 instructions apart, and codes of 4 registers saved.
    let mut shared = vec![0x0003_ffff_u32, 0x2_0000 + 4000];
    shared.extend((0..4000).map(|epilogue| epilogue * 4));
    let mut shared: Vec<u8> = shared.into_iter().flat_map(u32::to_le_bytes).collect();
    shared.extend([0xd0, 0x01, 0xd0, 0x42, 0xd0, 0x83, 0xd5, 0x07]);
    for far in [true, false] {
        let entries: Vec<_> = begins(far).map(|begin| [begin, RECORDS_RVA, 0]).collect();
        let image = image_of(0xaa64, &entries, 2, &shared);
        assert_eq!(UnwindTable::<Aarch64>::from_pe(image.clone()).unwrap().size_report().functions, 600);
        use_file(&image);
    }
}

/// How many of the functions that begin at `begins` have rules at their beginnings.
fn described<A: Architecture>(
    table: &UnwindTable<A>,
    begins: impl Iterator<Item = u32>,
    registers_at: impl Fn(u64) -> Registers<A>,
) -> usize {
    let space = One { mapping: Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(table) } };
    let words = [IMAGE_BASE; 8].map(u64::to_le_bytes);
    let stack = CopiedStack::new(0x7000_0000, words.as_flattened(), 0);
    let has_caller = |&begin: &u32| {
        let mut frames = 0;
        let registers = registers_at(IMAGE_BASE + u64::from(begin));
        Unwinder::with_depth_limit(2).unwind(&space, &registers, &stack, |_| frames += 1);
        frames == 2
    };
    begins.filter(has_caller).count()
}

/// Of 600 functions that share this many codes, those that are described; and the image's size.
fn described_by_shared_codes(codes: u8) -> (usize, usize) {
    // Version 1: pushes.
    let mut shared = vec![1, 0, codes, 0];
    shared.resize(4 + 255 * 2, 0x30);
    let entries: Vec<_> = begins(false).map(|begin| [begin, begin + 16, RECORDS_RVA]).collect();
    let image = image_of(0x8664, &entries, 3, &shared);
    let table = UnwindTable::<X86_64>::from_pe(image.clone()).unwrap();
    assert_eq!(table.size_report().functions, 600);
    let registers_at = |ip| x86_64::Registers::new(ip, [0x7000_0000; 16]);
    (described(&table, begins(false), registers_at), image.len())
}

#[test]
fn functions_that_share_codes_are_compiled_as_far_as_the_image_is_large() {
    assert_eq!(described_by_shared_codes(12).0, 600);
    let (described, size) = described_by_shared_codes(255);
    // An image with two codes for each byte.
    assert!((1..=2 * size / 255).contains(&described), "{described} of {size} bytes");
}

/// The same for ARM64, with codes of registers saved and an end behind them.
fn described_by_shared_codes_of_arm64(words: u32) -> (usize, usize) {
    // With the second word, which has room for more.
    let mut shared = [4_u32, words << 16].map(u32::to_le_bytes).concat();
    shared.resize(8 + words as usize * 4 - 1, 0xe3);
    shared.push(0xe4);
    let entries: Vec<_> = begins(false).map(|begin| [begin, RECORDS_RVA, 0]).collect();
    let image = image_of(0xaa64, &entries, 2, &shared);
    let table = UnwindTable::<Aarch64>::from_pe(image.clone()).unwrap();
    assert_eq!(table.size_report().functions, 600);
    let registers_at = |ip| {
        let mask = ReturnAddressMask::of_address_bits(48);
        aarch64::Registers::new(ip, 0x7000_0000, [IMAGE_BASE; 31], mask)
    };
    (described(&table, begins(false), registers_at), image.len())
}

#[test]
fn functions_of_arm64_that_share_codes_are_compiled_as_far_as_the_image_is_large() {
    assert_eq!(described_by_shared_codes_of_arm64(4).0, 600);
    let (described, size) = described_by_shared_codes_of_arm64(32);
    assert!((1..=2 * size / (32 * 4)).contains(&described), "{described} of {size} bytes");
}

/// A file of 4 GiB, all zeros behind what it holds.
struct Sparse(Vec<u8>);

impl ImageBytes for Sparse {
    fn size(&self) -> u64 {
        1 << 32
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        buffer.fill(0);
        self.0.read_at(offset, buffer);
        buffer.len()
    }
}

#[test]
fn a_function_of_a_gigabyte_is_not_read() {
    // Version 1: a push that is executed at offset 1.
    let record = [1, 1, 1, 0, 1, 0x30];
    let (begin, end) = (0x10_0000, 0x4000_0000);
    let mut image = image_of(0x8664, &[[begin, end, RECORDS_RVA]], 3, &record);
    // The section's size in the file, behind that in memory and its address.
    let at = image.windows(4).position(|word| word == b".tex").unwrap() + 16;
    image[at..at + 4].copy_from_slice(&0x3fff_f000_u32.to_le_bytes());
    let used = allocation_counter::measure(|| {
        let table = UnwindTable::<X86_64>::from_pe(Sparse(image)).unwrap();
        let registers_at = |ip| x86_64::Registers::new(ip, [0x7000_0000; 16]);
        assert_eq!(described(&table, [begin, begin + 1, end - 1].into_iter(), registers_at), 3);
        assert_eq!(table.size_report().rows, 2);
    });
    assert!(used.bytes_max < 1 << 20, "{} bytes were held", used.bytes_max);
}

#[test]
fn every_truncation_of_an_image() {
    for data in images() {
        for length in (0..data.len()).step_by(7) {
            use_file(&data[..length]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_in_an_image(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        place in 0_usize..4,
        image in 0_usize..3,
    ) {
        if let Some(data) = images().get(image) {
            let mut damaged = data.clone();
            // clang's unwind information lies in `.rdata`.
            let places = [section(data, ".pdata"), section(data, ".rdata"), section(data, ".text"), 0..0x400];
            let place = &places[place];
            for (at, value) in &flips {
                damaged[place.start + at.index(place.len())] = *value;
            }
            use_file(&damaged);
        }
    }

    #[test]
    fn noise_behind_the_headers_of_an_image(
        noise in proptest::collection::vec(any::<u8>(), 0x1000..0x4000),
        image in 0_usize..3,
    ) {
        if let Some(data) = images().get(image) {
            use_file(&[&data[..0x400], noise.as_slice()].concat());
        }
    }

    #[test]
    fn noise_is_no_image(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(UnwindTable::<X86_64>::from_pe(data.clone()).is_err());
        prop_assert!(UnwindTable::<Aarch64>::from_pe(data.clone()).is_err());
    }
}
