//! Damaged files and made-up stacks: no panic, no endless loop, nothing allocated beyond the size of the input.

mod cost;
mod packed;
mod pe;

use std::sync::OnceLock;

use object::{Object, ObjectSection};
use proptest::prelude::*;
use unwinder::x86_64::Registers;
use unwinder::{
    AddressSpace, Architecture, CopiedStack, DEFAULT_DEPTH_LIMIT, Mapping, UnwindTable, Unwinder,
};

use crate::corpus;
use crate::fuzzing::elf::run as use_file;
use crate::fuzzing::image::{SECTION_ADDRESS, with_sections};

mod aarch64;
mod x86;

/// A small program of ours that has been linked with libc's start files, and its runs' stacks.
fn program() -> Option<&'static corpus::Run> {
    static RUN: OnceLock<Option<corpus::Run>> = OnceLock::new();
    RUN.get_or_init(|| corpus::run("walks.c", &[])).as_ref()
}

fn elf() -> Option<&'static [u8]> {
    let run = program()?;
    run.space
        .modules
        .iter()
        .find(|module| module.name.ends_with("program"))
        .map(|module| module.elf.as_slice())
}

struct One<'a, A: Architecture> {
    mapping: Mapping<'a, A>,
}

impl<A: Architecture> AddressSpace<A> for One<'_, A> {
    fn lookup(&self, _address: u64) -> Option<Mapping<'_, A>> {
        Some(self.mapping)
    }
}

/// Compiles all of a damaged file, bounds what it holds, and walks through it.
fn use_damaged<A: Architecture>(data: &[u8], registers: &unwinder::Registers<A>, stack: &[u8]) {
    let Ok(table) = UnwindTable::from_elf(data) else { return };
    let before = table.size_report();
    assert!(before.total_bytes() <= 8 * data.len() + 4096, "{before:?} of {} bytes", data.len());
    table.compile_all();
    let after = table.size_report();
    // A row takes at least one byte of CFI for each function that shares a CIE; a rule is larger than a row.
    assert!(after.functions <= data.len() / 8 && after.rules <= after.rows, "{after:?}");
    walk(&table, registers, stack);
}

fn walk<A: Architecture>(table: &UnwindTable<A>, registers: &unwinder::Registers<A>, stack: &[u8]) {
    let mapping = Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(table) };
    let stack = CopiedStack::new(registers.sp(), stack, 0);
    let mut frames = 0;
    let stop = Unwinder::new().unwind(&One { mapping }, registers, &stack, |_| frames += 1);
    assert!((1..=DEFAULT_DEPTH_LIMIT).contains(&frames), "{frames} frames, {stop:?}");
}

fn section(data: &[u8], name: &str) -> std::ops::Range<usize> {
    let file = object::File::parse(data).unwrap();
    let (start, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    start as usize..(start + size) as usize
}

/// Registers that point into the text and into a stack at `0x7000_0000`.
fn registers() -> impl Strategy<Value = Registers> {
    let value = prop_oneof![0x7000_0000..0x7000_1000_u64, 0x1000..0x4000_u64, any::<u64>()];
    (0x1000..0x4000_u64, proptest::array::uniform16(value)).prop_map(|(ip, mut gprs)| {
        gprs[7] = 0x7000_0000 + gprs[7] % 64;
        Registers::new(ip, gprs)
    })
}

/// Words that look like stack addresses, code addresses, and noise.
fn stack() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![0x7000_0000..0x7000_1000_u64, 0x1000..0x4000_u64, Just(0), any::<u64>()];
    proptest::collection::vec(word, 0..512)
        .prop_map(|words| words.into_iter().flat_map(u64::to_le_bytes).collect())
}

#[test]
fn every_truncation_of_a_file() {
    let Some(data) = elf() else { return };
    let registers = Registers::new(0x1400, [0x7000_0000; 16]);
    for length in (0..data.len()).step_by(61) {
        use_damaged(&data[..length], &registers, &[0; 64]);
    }
}

#[test]
fn every_truncation_of_eh_frame() {
    let Some(data) = elf() else { return };
    let registers = Registers::new(0x1400, [0x7000_0000; 16]);
    let range = section(data, ".eh_frame");
    for cut in range.clone() {
        let mut damaged = data.to_vec();
        damaged[cut..range.end].fill(0);
        use_damaged(&damaged, &registers, &[0; 64]);
        damaged[cut..range.end].fill(0xff);
        use_damaged(&damaged, &registers, &[0; 64]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_in_the_unwind_sections(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        hide_hdr in any::<bool>(),
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(data) = elf() {
            let mut damaged = data.to_vec();
            let (frame, hdr) = (section(data, ".eh_frame"), section(data, ".eh_frame_hdr"));
            for (at, value) in flips {
                damaged[frame.start + at.index(frame.len())] = value;
            }
            if hide_hdr {
                damaged[hdr.start] = 0;
            }
            use_damaged(&damaged, &registers, &stack);
        }
    }

    #[test]
    fn flipped_bytes_anywhere_in_the_headers(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(data) = elf() {
            let mut damaged = data.to_vec();
            let sections = u64::from_le_bytes(*data[40..].first_chunk().unwrap()) as usize;
            for (at, value) in flips {
                // ELF and program headers, .eh_frame_hdr, section headers.
                let hdr = section(data, ".eh_frame_hdr");
                let places = [0..0x40 + 56 * 12, hdr, sections..data.len()];
                let place = &places[at.index(3)];
                damaged[place.start + at.index(place.len())] = value;
            }
            use_damaged(&damaged, &registers, &stack);
        }
    }

    #[test]
    fn made_up_registers_and_stacks(registers in registers(), stack in stack()) {
        if let Some(run) = program() {
            for module in &run.space.modules {
                walk(module.table.as_ref().unwrap(), &registers, &stack);
            }
        }
    }

    #[test]
    fn noise_is_no_elf_file(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(<UnwindTable>::from_elf(data.as_slice()).is_err());
    }
}

/// `.eh_frame` whose FDEs lie within each other, each to the end of the section, and the `.eh_frame_hdr` that names them
/// all. Each steps over the headers of those inside of it as over an expression, and has all their rows.
fn nested_functions(count: usize) -> [Vec<u8>; 2] {
    const CIE: &[u8] = b"\x10\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08";
    // The FDE's header of 17 bytes, and the instructions that follow it.
    const STRIDE: usize = 17 + 9;
    let mut frame = CIE.to_vec();
    frame[0] = (CIE.len() - 4) as u8;
    let mut table = Vec::new();
    let end = CIE.len() + count * STRIDE;
    for index in 0..count {
        let at = frame.len();
        let start = 0x1000 + index as u64;
        frame.extend(((end - at - 4) as u32).to_le_bytes());
        frame.extend((at as u32 + 4).to_le_bytes());
        frame.extend((start.wrapping_sub(SECTION_ADDRESS + at as u64 + 8) as u32).to_le_bytes());
        frame.extend(0x8000_u32.to_le_bytes());
        // DW_CFA_advance_loc and DW_CFA_def_cfa_offset, twice; DW_CFA_val_expression of a vector register.
        frame.extend([0, 0x41, 0x0e, 8, 0x41, 0x0e, 16, 0x16, 20, 17]);
        for address in [start, SECTION_ADDRESS + at as u64] {
            table.extend((address.wrapping_sub(HDR_ADDRESS) as u32).to_le_bytes());
        }
    }
    let mut hdr = vec![1, 0x1b, 0x03, 0x3b];
    hdr.extend((SECTION_ADDRESS.wrapping_sub(HDR_ADDRESS + 4) as u32).to_le_bytes());
    hdr.extend((count as u32).to_le_bytes());
    hdr.extend(table);
    [frame, hdr]
}

const HDR_ADDRESS: u64 = SECTION_ADDRESS - 0x10_0000;

#[test]
fn functions_within_functions_do_not_multiply() {
    let [frame, hdr] = nested_functions(4000);
    let file = with_sections(&[(".eh_frame", SECTION_ADDRESS, &frame), (".eh_frame_hdr", HDR_ADDRESS, &hdr)]);
    let table = <UnwindTable>::from_elf(file.as_slice()).unwrap();
    assert_eq!(table.size_report().functions, 4000);
    use_file(&file);
}
