//! Code that the kernel has in a process for probes: no file has it, and nobody tells its rules
//! (`kernel/events/uprobes.c` and `arch/x86/kernel/uprobes.c`).

use unwinder::{UnwindSections, UnwindTable};

use super::table::Table;

/// What the kernel calls the memory from which it executes probed instructions, and where it traps returns.
pub(super) const SLOTS: &str = "[uprobes]";

/// What it calls the memory with what a probed instruction of five bytes that does nothing becomes a call of, as that costs less than
/// a breakpoint (x86-64, since Linux 6.18).
pub(super) const TRAMPOLINE: &str = "[uprobes-trampoline]";

/// Bytes of either.
const PAGE: u64 = 4096;

/// The rules of [`TRAMPOLINE`] as `.debug_frame`. It pushes three registers, in one byte, two and one, loads a number in seven bytes,
/// makes a system call in two, pops the registers in one, two and one, and returns. The kernel's handlers see the registers of the
/// probed instruction; the rest of the call has these.
#[rustfmt::skip]
const RULES: &[u8] = &[
    // A CIE of version 1: steps of 1 in code and -8 in data, the return address in 16, `DW_CFA_def_cfa rsp 8`, `DW_CFA_offset 16 -8`.
    14, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1,
    // An FDE of it for all of the page from 0 on.
    38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
    // `DW_CFA_advance_loc`, `DW_CFA_def_cfa_offset`
    0x41, 0x0e, 16, 0x42, 0x0e, 24, 0x41, 0x0e, 32, 0x4a, 0x0e, 24, 0x42, 0x0e, 16, 0x41, 0x0e, 8,
];

/// The table of [`TRAMPOLINE`], of addresses from its beginning on.
pub(super) fn trampoline_table() -> Option<Table> {
    let sections = UnwindSections { text: 0..PAGE, debug_frame: Some(RULES), ..UnwindSections::default() };
    UnwindTable::from_sections(&sections).ok().map(Table::X86_64)
}
