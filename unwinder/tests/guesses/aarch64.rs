//! aarch64 programs whose rules are taken away: their frame records and calls lead to the frames that they found
//! themselves, in and out of libraries that keep their rules.

use object::{Object, ObjectSegment};
use unwinder::aarch64::Aarch64;
use unwinder::{AddressSpace, FrameKind, Mapping, StopReason, Unwinder};

use crate::corpus::{Module, Run, run_on};

/// The process without the program's own table, and with its code or without.
struct WithoutRules<'a> {
    run: &'a Run<Aarch64>,
    with_code: bool,
}

impl WithoutRules<'_> {
    fn module(&self, address: u64) -> Option<&Module<Aarch64>> {
        self.run.space.modules.iter().find(|module| (module.start..module.end).contains(&address))
    }
}

impl AddressSpace<Aarch64> for WithoutRules<'_> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, Aarch64>> {
        let is_program = self.module(address)?.name.ends_with("program");
        let mapping = self.run.space.lookup(address)?;
        Some(Mapping { table: mapping.table.filter(|_| !is_program), ..mapping })
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        let Some(module) = self.module(address).filter(|_| self.with_code) else {
            return self.run.space.code(address, buffer);
        };
        let file = object::File::parse(module.elf.as_slice()).unwrap();
        let length = buffer.len() as u64;
        let bytes = file
            .segments()
            .find_map(|segment| segment.data_range(address.wrapping_sub(module.bias), length).ok().flatten());
        bytes.map_or(0, |bytes| {
            buffer.copy_from_slice(bytes);
            bytes.len()
        })
    }
}

#[test]
fn frame_records_lead_through_code_without_rules() {
    const NAMES: [&str; 7] = ["recursion", "qsort", "alloca", "huge_frame", "signal", "fault", "thread"];
    for flags in
        [&["-fno-omit-frame-pointer"][..], &["-fno-omit-frame-pointer", "-mbranch-protection=standard"]]
    {
        let Some(run) = run_on::<Aarch64>("walks.c", flags) else { return };
        for (name, with_code) in NAMES.into_iter().flat_map(|name| [(name, false), (name, true)]) {
            if name == "fault" && !with_code {
                // Nothing tells a function that makes no frame from one that does.
                continue;
            }
            let (stack, space) = (run.stack(name), WithoutRules { run: &run, with_code });
            let (mut addresses, mut guessed) = (Vec::new(), 0);
            let stop = Unwinder::new().unwind(&space, &stack.registers, &stack.stack(), |frame| {
                addresses.push(frame.address);
                guessed += usize::from(frame.heuristic && frame.kind == FrameKind::ReturnAddress);
            });
            assert_eq!(addresses, stack.chain, "{name}, {flags:?}, with code: {with_code}");
            assert_eq!(stop, StopReason::Root, "{name}");
            assert!(guessed > 1, "{name}");
        }
    }
}
