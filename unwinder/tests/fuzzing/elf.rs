//! Input: an ELF file or object. Its table is made, all of it is compiled, and stacks are walked in it.

use unwinder::{CopiedStack, Mapping, UnwindTable, Unwinder};

use super::{Everywhere, FRAMES, STACK, registers_at, within_memory};

/// How many times its size a packed section may unpack to, and room for the unpacking.
const MOST_UNPACKED: u64 = 1200;

/// What the decoders need for themselves.
const DECODERS: u64 = 3 << 20;

/// Bytes held for each byte of unwind section: its copy, the index, and a row for each of the shortest instructions.
const PER_SECTION_BYTE: u64 = 64;

/// Addresses that are looked up.
const PROBES: u64 = 64;

pub(crate) fn run(data: &[u8]) {
    let has = |name: &[u8]| data.windows(name.len()).any(|window| window == name);
    let packed = if has(b".gnu_debugdata") || has(b".debug_frame") {
        DECODERS + data.len() as u64 * MOST_UNPACKED
    } else {
        0
    };
    let bound =
        |section: &Option<usize>| packed + (data.len() + section.unwrap_or(0)) as u64 * PER_SECTION_BYTE;
    within_memory(|| use_file(data), bound);
}

/// Where an object's sections are loaded: apart, and the last ones out of reach.
fn place(section: usize, _name: &str) -> Option<u64> {
    (section as u64).checked_mul(0x1000_0000)
}

/// The size of the file's unwind sections, if it has usable ones.
fn use_file(data: &[u8]) -> Option<usize> {
    let table = <UnwindTable>::from_elf(data).or_else(|_| UnwindTable::from_object(data, place)).ok()?;
    let mut unwinder = Unwinder::new();
    let stack: Vec<u8> = (0..512_u64).flat_map(|word| (STACK + word * 24).to_le_bytes()).collect();
    let stack = CopiedStack::new(STACK, &stack, 0);
    let space = Everywhere(Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(&table) });
    let report = table.size_report();
    for probe in 0..PROBES {
        let ip = probe * (report.text_bytes as u64).div_ceil(PROBES);
        let mut frames = 0;
        unwinder.unwind(&space, &registers_at(ip), &stack, |_| frames += 1);
        assert!(FRAMES.contains(&frames), "{frames} frames");
    }
    table.compile_all();
    let report = table.size_report();
    assert!(report.functions_compiled == report.functions && report.rules <= report.rows, "{report:?}");
    Some(report.section_bytes)
}
