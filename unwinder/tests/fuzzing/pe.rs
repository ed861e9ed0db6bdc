//! Input: a PE file for x64 or ARM64. Its table is made, and stacks are walked in it.

use unwinder::aarch64::{self, Aarch64, ReturnAddressMask};
use unwinder::x86_64::X86_64;
use unwinder::{Architecture, CopiedStack, Mapping, Registers, UnwindTable, Unwinder};

use super::{Everywhere, FRAMES, STACK, registers_at, within_memory};

/// Bytes held for each byte of input: a row with a rule of its own for each instruction, while its table grows.
const PER_BYTE: u64 = 256;

/// Addresses that are looked up.
const PROBES: u64 = 64;

/// Where images prefer to lie that the seeds are made of.
pub(crate) const IMAGE_BASE: u64 = 0x1000_0000;

pub(crate) fn run(data: &[u8]) {
    let use_file = || {
        if let Ok(table) = UnwindTable::<X86_64>::from_pe(data.to_vec()) {
            use_table(&table, data.len(), registers_at);
        } else if let Ok(table) = UnwindTable::<Aarch64>::from_pe(data.to_vec()) {
            use_table(&table, data.len(), |ip| {
                let mut general = [STACK + 0x100; 31];
                general[30] = IMAGE_BASE + 0x1004;
                aarch64::Registers::new(ip, STACK, general, ReturnAddressMask::of_address_bits(48))
            });
        }
    };
    within_memory(use_file, |()| data.len() as u64 * PER_BYTE);
}

fn use_table<A: Architecture>(
    table: &UnwindTable<A>,
    size: usize,
    registers_at: impl Fn(u64) -> Registers<A>,
) {
    // As they are asked for, and when all are compiled.
    let frames = walk(table, &registers_at);
    table.compile_all();
    assert_eq!(walk(table, &registers_at), frames);
    let report = table.size_report();
    // Each row but a function's first has a byte of code, and each function an entry; code without one has a rule, too.
    assert!(report.rows <= size + report.functions && report.functions <= size / 8, "{report:?}");
    assert!(report.rules <= report.rows + 1, "{report:?}");
    assert_eq!((report.functions_compiled, report.section_bytes), (report.functions, 0));
}

/// How many frames there are from each of the addresses.
fn walk<A: Architecture>(
    table: &UnwindTable<A>,
    registers_at: impl Fn(u64) -> Registers<A>,
) -> [usize; PROBES as usize] {
    let mut unwinder = Unwinder::new();
    let words =
        (0..512_u64).map(|word| if word % 2 == 0 { STACK + word * 24 } else { IMAGE_BASE + word * 16 });
    let stack: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let stack = CopiedStack::new(STACK, &stack, 0);
    let space = Everywhere(Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(table) });
    let text = table.size_report().text_bytes as u64;
    std::array::from_fn(|probe| {
        let ip = IMAGE_BASE + probe as u64 * text.div_ceil(PROBES);
        let mut frames = 0;
        unwinder.unwind(&space, &registers_at(ip), &stack, |_| frames += 1);
        assert!(FRAMES.contains(&frames), "{frames} frames");
        frames
    })
}
