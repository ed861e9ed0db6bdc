//! What a reader must know of the kernel to name its functions: where it lies, and which build it is.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};

use collector_common::ids::BuildId;

use crate::kernel::KALLSYMS;

/// Symbols that `perf` takes for the kernel's beginning (`ref_reloc_sym_names` of `tools/perf/util/machine.c`).
const BEGINNINGS: [&str; 2] = ["_text", "_stext"];

/// A symbol at the kernel's beginning, and its address; `None` where the kernel tells no addresses.
pub(crate) fn beginning() -> Option<(&'static str, u64)> {
    let lines = BufReader::new(File::open(KALLSYMS).ok()?).lines().map_while(Result::ok);
    let mut found = lines.filter_map(|line| {
        let mut parts = line.split(' ');
        let address = u64::from_str_radix(parts.next()?, 16).ok()?;
        let name = parts.nth(1)?;
        Some((*BEGINNINGS.iter().find(|beginning| **beginning == name)?, address))
    });
    found.find(|(_, address)| *address != 0)
}

/// The kernel's build id.
pub(crate) fn build_id() -> Option<BuildId> {
    build_id_in(&fs::read("/sys/kernel/notes").ok()?)
}

/// The build id among notes as in an ELF file: sizes of name and description, type, and both filled up to multiples of 4.
pub(crate) fn build_id_in(notes: &[u8]) -> Option<BuildId> {
    const GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let mut word = || {
            let (head, tail) = rest.split_first_chunk()?;
            rest = tail;
            Some(u32::from_ne_bytes(*head))
        };
        let (name_len, len, kind) = (word()? as usize, word()? as usize, word()?);
        let (name, behind) = rest.split_at_checked(name_len.next_multiple_of(4))?;
        let (description, behind) = behind.split_at_checked(len.next_multiple_of(4))?;
        if kind == GNU_BUILD_ID && name.starts_with(b"GNU\0") {
            return BuildId::new(description.get(..len)?);
        }
        rest = behind;
    }
}
