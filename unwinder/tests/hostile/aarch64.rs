//! The same for aarch64.

use std::sync::OnceLock;

use proptest::prelude::*;
use unwinder::aarch64::{Aarch64, Registers, ReturnAddressMask};

use super::{section, stack, use_damaged, walk};
use crate::corpus::{Run, run_on};

/// A small program whose return addresses are signed, with its libraries.
fn program() -> Option<&'static Run<Aarch64>> {
    static RUN: OnceLock<Option<Run<Aarch64>>> = OnceLock::new();
    RUN.get_or_init(|| run_on("walks.c", &["-mbranch-protection=standard"])).as_ref()
}

/// Registers that point into the text and into a stack at `0x7000_0000`, some of them signed.
fn registers() -> impl Strategy<Value = Registers> {
    let value = prop_oneof![0x7000_0000..0x7000_1000_u64, 0x1000..0x4000_u64, any::<u64>()];
    let mask = prop_oneof![
        (0_u32..70).prop_map(ReturnAddressMask::of_address_bits),
        any::<u64>().prop_map(ReturnAddressMask::of_highest_address)
    ];
    (0x1000..0x4000_u64, 0_u64..64, proptest::collection::vec(value, 31), mask).prop_map(
        |(pc, above, general, mask)| {
            Registers::new(pc, 0x7000_0000 + above, std::array::from_fn(|register| general[register]), mask)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn flipped_bytes_in_the_unwind_sections(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        registers in registers(),
        stack in stack(),
    ) {
        if let Some(run) = program() {
            let module = run.space.modules.iter().find(|module| module.name.ends_with("program")).unwrap();
            let mut damaged = module.elf.to_vec();
            let frame = section(&damaged, ".eh_frame");
            for (at, value) in flips {
                damaged[frame.start + at.index(frame.len())] = value;
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
}
