//! What is made to cost more than its size: files of which much is read many times or that unpack to much, and code that leads
//! guesses nowhere.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::process::Command;
use std::time::{Duration, Instant};

use unwinder::x86_64::Registers;
use unwinder::{
    AddressSpace, CopiedStack, Mapping, SectionProblem, StopReason, TableError, UnreadSection, UnwindTable,
    Unwinder,
};

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

/// Fields of a section's header: where they are, and how many bytes they have.
const NAME: (usize, usize) = (0, 4);
const KIND: (usize, usize) = (4, 4);
pub(super) const FLAGS: (usize, usize) = (8, 8);
pub(super) const OFFSET: (usize, usize) = (24, 8);
const SIZE: (usize, usize) = (32, 8);
const LINK: (usize, usize) = (40, 4);
const INFO: (usize, usize) = (44, 4);

/// Changes fields of a section's header in a file.
pub(super) fn patch(file: &mut [u8], section: usize, fields: &[((usize, usize), usize)]) {
    let headers = u64::from_le_bytes(*file[40..].first_chunk().unwrap()) as usize;
    for &((at, size), value) in fields {
        let field = headers + section * 64 + at;
        file[field..field + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

/// One function.
pub(super) fn eh_frame() -> Vec<u8> {
    let mut section = Vec::new();
    let cie = cie(&mut section, b"z");
    fde(&mut section, cie, 0x1000, 16, &[]);
    section
}

/// Sections of one kind, beside those that matter.
const MANY: usize = 30_000;

#[test]
fn names_without_an_end_are_not_read_for_each_section() {
    let section = eh_frame();
    let mut sections = vec![("x", 0, &[][..]); MANY];
    sections.push((".eh_frame", SECTION_ADDRESS, &section));
    let mut file = with_sections(&sections);
    let names = file.len();
    file.extend(b"\0.eh_frame\0");
    file.resize(names + (4 << 20), b'x');
    let size = file.len() - names;
    for section in 1..=MANY {
        patch(&mut file, section, &[(NAME, 11)]);
    }
    patch(&mut file, MANY + 1, &[(NAME, 1)]);
    patch(&mut file, MANY + 2, &[(OFFSET, names), (SIZE, size)]);
    assert_quick(|| assert_eq!(functions(&file), 1));
}

#[test]
fn tables_of_the_same_relocations_are_read_once() {
    let section = eh_frame();
    let symbols =
        [[0; 24], [1, 0, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    // R_X86_64_64 of the first symbol, at the FDE's address.
    let place = section.len() as u64 - 20;
    let relocation = [place.to_le_bytes(), (1_u64 << 32 | 1).to_le_bytes(), [0; 8]].concat();
    let relocations = relocation.repeat(50_000);
    let mut sections = vec![
        (".text", 0, &[0x90; 64][..]),
        (".eh_frame", 0, &section),
        (".symtab", 0, &symbols),
        ("r", 0, &relocations),
    ];
    sections.resize(MANY, ("r", 0, &[]));
    let mut file = with_sections(&sections);
    file[16] = 1;
    let (frame, names) = (2, MANY + 1);
    patch(&mut file, 1, &[(FLAGS, 6)]);
    patch(&mut file, 3, &[(KIND, 2), (LINK, names), (INFO, 1)]);
    let headers = u64::from_le_bytes(*file[40..].first_chunk().unwrap()) as usize;
    let first = u64::from_le_bytes(*file[headers + 4 * 64 + 24..].first_chunk().unwrap()) as usize;
    for table in 4..=MANY {
        let fields = [(KIND, 4), (OFFSET, first), (SIZE, relocations.len()), (LINK, 3), (INFO, frame)];
        patch(&mut file, table, &fields);
    }
    assert_quick(|| {
        let table = <UnwindTable>::from_object(file.as_slice(), |_, _| Some(0x10_0000)).unwrap();
        assert_eq!(table.size_report().functions, 1);
    });
}

fn tool(folder: &std::path::Path, program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).current_dir(folder).status();
    assert!(status.unwrap_or_else(|error| panic!("{program}: {error}")).success(), "{program} {args:?}");
}

/// `.debug_frame` of `blocks` times 64 KiB that unpack from a fortieth of their size, as a compressed section: its header and
/// a stream of zlib in which equal blocks are equal.
fn packed_debug_frame(blocks: usize) -> Vec<u8> {
    let mut block = Vec::new();
    for piece in 0..32_u64 {
        block.extend(
            (0..4).flat_map(|word| (piece * 4 + word).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()),
        );
        block.resize((piece as usize + 1) * 2048, 0);
    }
    let mut stream = Vec::with_capacity(1 << 20);
    let mut compress = flate2::Compress::new(flate2::Compression::best(), true);
    for number in 0..blocks {
        let flush =
            if number + 1 == blocks { flate2::FlushCompress::Finish } else { flate2::FlushCompress::Full };
        compress.compress_vec(&block, &mut stream, flush).unwrap();
    }
    let header = [1, (blocks * block.len()) as u64, 1].map(u64::to_le_bytes).concat();
    [header, stream].concat()
}

fn is_implausible(error: &TableError) -> bool {
    matches!(error, TableError::Unread(UnreadSection { problem: SectionProblem::Implausible { .. }, .. }))
}

#[test]
fn what_is_packed_twice_does_not_unpack_to_the_product() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file_with = |blocks| {
        let mut file = with_sections(&[(".debug_frame", 0, &packed_debug_frame(blocks))]);
        patch(&mut file, 1, &[(FLAGS, 0x800)]);
        file
    };
    let packed_again = |file: &[u8]| {
        std::fs::write(folder.path().join("file"), file).unwrap();
        tool(folder.path(), "xz", &["--force", "--keep", "file"]);
        with_sections(&[(".gnu_debugdata", 0, &std::fs::read(folder.path().join("file.xz")).unwrap())])
    };
    let unpacked = |file: &[u8]| <UnwindTable>::from_elf(file).map(|table| table.size_report().section_bytes);
    let (one, many) = (file_with(1), file_with(60));
    assert_eq!(unpacked(&one).unwrap(), 64 << 10);
    assert_eq!(unpacked(&many).unwrap(), 60 * (64 << 10));
    assert_eq!(unpacked(&packed_again(&one)).unwrap(), 64 << 10);
    let twice = packed_again(&many);
    assert!(twice.len() * 128 < 60 * (64 << 10), "{} bytes", twice.len());
    let error = unpacked(&twice).unwrap_err();
    assert!(is_implausible(&error), "{error}");
}

#[test]
fn a_section_that_unpacks_to_much_more_than_it_has_is_refused() {
    for (format, ratio, is_refused) in [(1, 40, false), (1, 200, true), (2, 200, true)] {
        let mut packed = packed_debug_frame(10);
        let size = if ratio == 40 { 10 * (64 << 10) } else { packed.len() as u64 * ratio };
        packed[..8].copy_from_slice(&u64::to_le_bytes(format));
        packed[8..16].copy_from_slice(&size.to_le_bytes());
        let mut file = with_sections(&[(".debug_frame", 0, &packed)]);
        patch(&mut file, 1, &[(FLAGS, 0x800)]);
        let table = <UnwindTable>::from_elf(file.as_slice());
        let was_refused = table.as_ref().is_err_and(is_implausible);
        assert!(was_refused == is_refused && table.is_err() == is_refused, "{ratio}: {table:?}");
    }
}

/// Calls of an address in a register, one after the other: each address is a return address, no way leads to a return, and
/// nothing looks like a function's beginning. It counts the bytes that are read, and how often it is asked for a mapping.
struct Calls {
    read: Cell<usize>,
    lookups: Cell<usize>,
    generation: Option<NonZeroU64>,
}

impl Calls {
    const CODE: u64 = 0x100_0000;
    const SIZE: u64 = 1 << 20;

    fn new(generation: Option<NonZeroU64>) -> Self {
        Calls { read: Cell::new(0), lookups: Cell::new(0), generation }
    }
}

impl AddressSpace for Calls {
    fn lookup(&self, address: u64) -> Option<Mapping<'_>> {
        self.lookups.set(self.lookups.get() + 1);
        let (start, end) = (Self::CODE, Self::CODE + Self::SIZE);
        (start..end).contains(&address).then_some(Mapping { start, end, bias: 0, table: None })
    }

    fn generation(&self) -> Option<NonZeroU64> {
        self.generation
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.read.set(self.read.get() + buffer.len());
        for (at, byte) in (address..).zip(buffer.iter_mut()) {
            *byte = if at % 2 == 0 { 0xff } else { 0xd0 };
        }
        buffer.len()
    }
}

#[test]
fn guesses_of_a_walk_read_so_much_code_and_no_more() {
    const STACK: u64 = 0x7000_0000;
    /// What a walk may read, and beside that each frame.
    const OF_WALK: usize = 256 << 10;
    const OF_FRAME: usize = (2 << 10) + 64;
    let words: Vec<u8> =
        (0..4096).flat_map(|word| (Calls::CODE + (128 << 10) + 2 * word).to_le_bytes()).collect();
    let stack = CopiedStack::new(STACK, &words, 0);
    let mut general = [0; 16];
    (general[6], general[7]) = (7, STACK);
    let registers = Registers::new(Calls::CODE + (100 << 10), general);
    let walk = |unwinder: &mut Unwinder, space: &Calls| {
        space.read.set(0);
        let mut frames = 0;
        let stop = unwinder.unwind(space, &registers, &stack, |_| frames += 1);
        (frames, stop, space.read.get())
    };
    for depth_limit in [64, 1024, 4096] {
        let space = Calls::new(None);
        let (frames, stop, read) = walk(&mut Unwinder::with_depth_limit(depth_limit), &space);
        assert_eq!(stop, StopReason::NoRule);
        assert!(read <= OF_WALK + depth_limit * OF_FRAME, "{frames} of {depth_limit} frames, {read} bytes");
        // What a frame costs here is not the whole of it.
        assert!((4..depth_limit).contains(&frames), "{frames} of {depth_limit} frames, {read} bytes");
    }
    // What is remembered need not be read, and nothing is that was not read.
    let space = Calls::new(NonZeroU64::new(1));
    let mut unwinder = Unwinder::new();
    let walks: Vec<usize> = (0..4).map(|_| walk(&mut unwinder, &space).0).collect();
    assert!(walks.is_sorted_by(|shorter, longer| shorter < longer), "{walks:?}");
}

#[test]
fn words_that_may_be_addresses_are_looked_up_so_often_and_no_more() {
    const STACK: u64 = 0x7000_0000;
    const DEPTH_LIMIT: usize = 1024;
    /// What a walk may read, as above, where a look for a mapping counts for 64 bytes; and those of the walk itself, two a frame.
    const MOST: usize = ((256 << 10) + DEPTH_LIMIT * (2 << 10)) / 64 + 2 * DEPTH_LIMIT;
    // One return address, of which all is known soon, and between words that are as near as code may be, and none.
    let (called, near) = (Calls::CODE + (128 << 10), Calls::CODE + (512 << 20));
    let words: Vec<u8> = (0..4096_u64)
        .flat_map(|word| if word % 2 == 0 { called } else { near + word * 0x1000 }.to_le_bytes())
        .collect();
    let stack = CopiedStack::new(STACK, &words, 0);
    let mut general = [0; 16];
    (general[6], general[7]) = (7, STACK);
    let registers = Registers::new(called, general);
    let space = Calls::new(NonZeroU64::new(1));
    let mut unwinder = Unwinder::with_depth_limit(DEPTH_LIMIT);
    for _ in 0..2 {
        space.lookups.set(0);
        let mut frames = 0;
        unwinder.unwind(&space, &registers, &stack, |_| frames += 1);
        let lookups = space.lookups.get();
        assert!(lookups <= MOST, "{lookups} for {frames} frames");
        assert!(frames > 64, "{frames}");
    }
}
