//! Input: a byte that says for which machine the code is and which sections the main file has; the lengths of an `.eh_frame`
//! and of its `.eh_frame_hdr`, of two bytes each, little-endian; these sections, and a `.debug_frame` to the end. Tables are
//! made of the bare sections, and of a file that has some of them with a debug file that has the others; stacks are walked in
//! both.

use unwinder::aarch64::{self, Aarch64, ReturnAddressMask};
use unwinder::x86::{self, X86};
use unwinder::x86_64::X86_64;
use unwinder::{
    Architecture, CopiedStack, Mapping, Registers, Section, UnwindSections, UnwindTable, Unwinder,
};

use super::image::{self, Machine, SECTION_ADDRESS, TEXT, for_machine};
use super::{Everywhere, FRAMES, STACK, registers_at, within_memory};

/// Bytes held for each byte of input: two files, and a table of each kind.
const PER_BYTE: u64 = 192;

/// Addresses that are looked up.
const PROBES: u64 = 32;

pub(crate) fn run(data: &[u8]) {
    let Some((&[kind, a, b, c, d], rest)) = data.split_first_chunk() else { return };
    let [frame, hdr] = [[a, b], [c, d]].map(|length| usize::from(u16::from_le_bytes(length)));
    let (frame, rest) = rest.split_at(frame.min(rest.len()));
    let (hdr, debug) = rest.split_at(hdr.min(rest.len()));
    let sections = Sections { kind, frame, hdr, debug };
    let use_it = || match kind % 3 {
        0 => sections.use_all::<X86_64>(Machine::X86_64, registers_at),
        1 => sections.use_all::<X86>(Machine::X86, |ip| x86::Registers::new(ip as u32, [STACK as u32; 8])),
        _ => sections.use_all::<Aarch64>(Machine::Aarch64, |ip| {
            aarch64::Registers::new(ip, STACK, [STACK + 0x100; 31], ReturnAddressMask::of_address_bits(48))
        }),
    };
    within_memory(use_it, |()| data.len() as u64 * PER_BYTE);
}

struct Sections<'a> {
    kind: u8,
    frame: &'a [u8],
    hdr: &'a [u8],
    debug: &'a [u8],
}

impl<'a> Sections<'a> {
    /// Linkers place it just before the section that it is of.
    fn hdr_address(&self) -> u64 {
        SECTION_ADDRESS - self.hdr.len().next_multiple_of(8) as u64
    }

    /// One of the two files that they are in.
    fn file(&self, machine: Machine, is_main: bool) -> Vec<u8> {
        let all = [
            (".eh_frame", SECTION_ADDRESS, self.frame),
            (".eh_frame_hdr", self.hdr_address(), self.hdr),
            (".debug_frame", 0, self.debug),
        ];
        let chosen = [0x20, 0x40, 0x80].map(|bit| (self.kind & bit == 0) == is_main);
        let chosen = all.into_iter().zip(chosen).filter_map(|(section, is_in)| is_in.then_some(section));
        for_machine(machine, &chosen.collect::<Vec<image::Section<'a>>>())
    }

    fn use_all<A: Architecture>(&self, machine: Machine, registers_at: impl Fn(u64) -> Registers<A>) {
        let bare = UnwindSections {
            text: TEXT,
            eh_frame: Some(Section { address: SECTION_ADDRESS, bytes: self.frame }),
            eh_frame_hdr: Some(Section { address: self.hdr_address(), bytes: self.hdr }),
            debug_frame: Some(self.debug),
        };
        if let Ok(table) = UnwindTable::<A>::from_sections(&bare) {
            use_table(&table, &registers_at);
        }
        let [main, debug] = [true, false].map(|is_main| self.file(machine, is_main));
        if let Ok(table) = UnwindTable::<A>::from_elf_with_debug(&*main, || Some(&*debug)) {
            use_table(&table, &registers_at);
        }
    }
}

fn use_table<A: Architecture>(table: &UnwindTable<A>, registers_at: impl Fn(u64) -> Registers<A>) {
    let mut unwinder = Unwinder::new();
    let stack: Vec<u8> = (0..256_u64).flat_map(|word| (STACK + word * 24).to_le_bytes()).collect();
    let stack = CopiedStack::new(STACK, &stack, 0);
    let space = Everywhere(Mapping { start: 0, end: u64::MAX, bias: 0, table: Some(table) });
    for probe in 0..PROBES {
        let mut frames = 0;
        let ip = SECTION_ADDRESS - 0x1000 + probe * 0x80;
        unwinder.unwind(&space, &registers_at(ip), &stack, |_| frames += 1);
        assert!(FRAMES.contains(&frames), "{frames} frames");
    }
    table.compile_all();
    let report = table.size_report();
    assert!(report.functions_compiled == report.functions && report.rules <= report.rows, "{report:?}");
}
