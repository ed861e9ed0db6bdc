//! Functions of a file that its own code calls by way of what the dynamic linker fills in, so that another file's may take their place.
//!
//! In: an ELF file. Out: which function is behind a word that the linker writes to, and behind a piece of code that jumps to where
//! such a word says. Source: ELF gABI, relocations; the psABIs of x86-64 and of Arm (AAELF64), procedure linkage tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;

use object::Endianness;
use object::elf::{self, FileHeader64, RelocationType};
use object::read::elf::{FileHeader, Rela as _, SectionHeader as _, Sym as _};
use rustc_hash::FxHashMap;

use super::machine::Machine;
use crate::modules::BoundedFile;

/// Bytes of a piece of code that jumps to a function, at most.
const LONGEST_STUB: usize = 16;

/// What a file's code goes by.
#[derive(Debug, Default)]
pub(super) struct Linkage<'d> {
    /// Functions of the file by the addresses of the words that say where they are.
    slots: FxHashMap<u64, u64>,
    stubs: Stubs<'d>,
}

/// Sections with pieces of code that jump to where such a word says: addresses, and bytes.
type Section<'d> = (u64, &'d [u8]);

/// What such sections have at which addresses: of several at one, the first.
#[derive(Debug, Default)]
struct Stubs<'d> {
    sections: Vec<Section<'d>>,
    /// From which address on which section is there, if any, up to where the next one begins. In the order of addresses.
    from: Vec<(u128, Option<usize>)>,
}

impl<'d> Stubs<'d> {
    /// ```text
    /// sections   0:     [=========]
    ///            1: [========]        [====]
    /// from          1   0         -   1     -
    /// ```
    fn new(sections: Vec<Section<'d>>) -> Self {
        let range =
            |&(start, code): &Section<'_>| (u128::from(start), u128::from(start) + code.len() as u128);
        let mut begins: Vec<_> = (0..).zip(&sections).map(|(index, it)| (range(it).0, index)).collect();
        begins.sort_unstable();
        let mut bounds: Vec<u128> =
            sections.iter().map(range).flat_map(|(start, end)| [start, end]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut begins = begins.into_iter().peekable();
        let mut open = BinaryHeap::new();
        let mut from: Vec<(u128, Option<usize>)> = Vec::new();
        for at in bounds {
            while let Some((_, index)) = begins.next_if(|(start, _)| *start <= at) {
                open.push(Reverse(index));
            }
            while open.peek().is_some_and(|Reverse(first)| range(&sections[*first]).1 <= at) {
                open.pop();
            }
            from.push((at, open.peek().map(|Reverse(first)| *first)));
        }
        Self { sections, from }
    }

    /// The code at `address`, up to the end of its section.
    fn code_at(&self, address: u64) -> Option<&'d [u8]> {
        let behind = self.from.partition_point(|(start, _)| *start <= address.into());
        let (_, section) = self.from.get(behind.checked_sub(1)?)?;
        let (start, code) = self.sections.get((*section)?)?;
        code.get(usize::try_from(address - start).ok()?..)
    }
}

impl<'d> Linkage<'d> {
    /// Reads a file of 64 bits; of another one, or of one that has none, there is nothing.
    pub(super) fn read(file: &'d BoundedFile<File>) -> Self {
        Self::parse(file).unwrap_or_default()
    }

    fn parse(file: &'d BoundedFile<File>) -> object::read::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(file)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, file)?;
        let symbols = sections.symbols(endian, file, elf::SHT_DYNSYM)?;
        let mut linkage = Self::default();
        let mut stubs = Vec::new();
        for section in sections.iter() {
            if sections.section_name(endian, section)?.starts_with(b".plt") {
                stubs.push((section.sh_addr(endian), section.data(endian, file)?));
            }
            let Some((relocations, _)) = section.rela(endian, file)? else { continue };
            for relocation in relocations.iter().filter(|it| names_function(it.r_type(endian, false))) {
                let symbol = relocation.symbol(endian, false).and_then(|index| symbols.symbol(index).ok());
                let address = symbol.map_or(0, |symbol| symbol.st_value(endian));
                if address != 0 {
                    linkage.slots.insert(relocation.r_offset(endian), address);
                }
            }
        }
        linkage.stubs = Stubs::new(stubs);
        Ok(linkage)
    }

    /// The function of the file that a word stands for.
    pub(super) fn behind_slot(&self, slot: u64) -> Option<u64> {
        self.slots.get(&slot).copied()
    }

    /// The function of the file that the code at `address` does nothing but jump to.
    pub(super) fn behind_stub(&self, machine: Machine, address: u64) -> Option<u64> {
        let stub = self.stubs.code_at(address)?;
        let stub = &stub[..stub.len().min(LONGEST_STUB)];
        machine.slots(stub, address).next().and_then(|slot| self.behind_slot(slot))
    }
}

/// Whether a relocation puts a function's address into a word.
fn names_function(kind: RelocationType) -> bool {
    let kinds = if cfg!(target_arch = "aarch64") {
        [elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_GLOB_DAT]
    } else {
        [elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT]
    };
    kinds.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first section that has the address, looked for one by one.
    fn first<'d>(sections: &[Section<'d>], address: u64) -> Option<&'d [u8]> {
        sections.iter().find_map(|(start, code)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            code.get(at..).filter(|code| !code.is_empty())
        })
    }

    #[test]
    fn code_is_that_of_the_first_section_with_its_address() {
        let bytes: Vec<u8> = (0..64).collect();
        let section = |start, from: usize, len: usize| (start, &bytes[from..from + len]);
        let of_linkers = vec![section(0x1020, 0, 16), section(0x1000, 16, 32), section(0x1040, 48, 8)];
        let overlapping = vec![
            section(0x1010, 0, 16),
            section(0x1000, 16, 40),
            section(0x1018, 8, 32),
            section(0x1010, 20, 16),
            section(0x1030, 0, 0),
        ];
        let at_the_end = vec![section(u64::MAX - 3, 0, 64), section(u64::MAX - 8, 8, 2), section(0, 0, 4)];
        for sections in [of_linkers, overlapping, at_the_end, Vec::new()] {
            let stubs = Stubs::new(sections.clone());
            let addresses = (0..0x10).chain(0xff8..0x1060).chain(u64::MAX - 0x10..=u64::MAX);
            for address in addresses {
                assert_eq!(
                    stubs.code_at(address),
                    first(&sections, address),
                    "{address:#x} of {sections:x?}"
                );
            }
        }
    }
}
