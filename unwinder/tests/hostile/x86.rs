//! The same for 32-bit x86, whose addresses wrap at 4 GiB.

use std::sync::OnceLock;

use proptest::prelude::*;
use unwinder::x86::{Registers, X86};
use unwinder::{CopiedStack, Unwinder};

use super::{One, section, use_damaged, walk};
use crate::corpus::{Run, run_on};

fn program() -> Option<&'static Run<X86>> {
    static RUN: OnceLock<Option<Run<X86>>> = OnceLock::new();
    RUN.get_or_init(|| run_on("walks.c", &[])).as_ref()
}

/// Registers that point into the text, into a stack at `0x7000_0000`, and to both ends of the address space.
fn registers() -> impl Strategy<Value = Registers> {
    let ends = prop_oneof![0xffff_ff00..=u32::MAX, 0..0x100_u32];
    let value = prop_oneof![0x7000_0000..0x7000_1000_u32, 0x1000..0x4000_u32, ends, any::<u32>()];
    let ip = prop_oneof![0x1000..0x4000_u32, any::<u32>()];
    (ip, proptest::array::uniform8(value)).prop_map(|(ip, gprs)| Registers::new(ip, gprs))
}

/// Words that look like stack addresses, code addresses, and noise.
fn stack() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![0x7000_0000..0x7000_1000_u32, 0x1000..0x4000_u32, Just(0), any::<u32>()];
    proptest::collection::vec(word, 0..512)
        .prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect())
}

#[test]
fn every_truncation_of_a_file() {
    let Some(run) = program() else { return };
    let module = run.space.modules.iter().find(|module| module.name.ends_with("program")).unwrap();
    let registers = Registers::new(0x1400, [0x7000_0000; 8]);
    for length in (0..module.elf.len()).step_by(61) {
        use_damaged(&module.elf[..length], &registers, &[0; 64]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn flipped_bytes_in_headers_and_unwind_sections(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(run) = program() {
            let module = run.space.modules.iter().find(|module| module.name.ends_with("program")).unwrap();
            let mut damaged = module.elf.to_vec();
            // ELF and program headers are at the file's start.
            let places = [0..0x200, section(&damaged, ".eh_frame"), section(&damaged, ".eh_frame_hdr")];
            for (at, value) in flips {
                let place = &places[at.index(places.len())];
                damaged[place.start + at.index(place.len())] = value;
            }
            use_damaged(&damaged, &registers, &stack);
        }
    }

    #[test]
    fn made_up_registers_and_stacks(registers in registers(), stack in stack()) {
        if let Some(run) = program() {
            for module in &run.space.modules {
                let table = module.table.as_ref().unwrap();
                walk(table, &registers, &stack);
                // Every frame is where a word of 32 bits can point.
                let mapping = unwinder::Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(&**table) };
                let copied = CopiedStack::new(registers.sp(), &stack, 0);
                Unwinder::new().unwind(&One { mapping }, &registers, &copied, |frame| {
                    assert!(frame.address <= u32::MAX.into(), "{:#x}", frame.address);
                });
            }
        }
    }
}
