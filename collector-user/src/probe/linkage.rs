//! Functions of a file that its own code calls by way of what the dynamic linker fills in, so that another file's may take their place.
//!
//! In: an ELF file. Out: which function is behind a word that the linker writes to, and behind a piece of code that jumps to where
//! such a word says. Source: ELF gABI, relocations; the psABIs of x86-64 and of Arm (AAELF64), procedure linkage tables.

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
    /// Pieces of code that jump to where such a word says: addresses, and bytes.
    stubs: Vec<(u64, &'d [u8])>,
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
        for section in sections.iter() {
            if sections.section_name(endian, section)?.starts_with(b".plt") {
                linkage.stubs.push((section.sh_addr(endian), section.data(endian, file)?));
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
        Ok(linkage)
    }

    /// The function of the file that a word stands for.
    pub(super) fn behind_slot(&self, slot: u64) -> Option<u64> {
        self.slots.get(&slot).copied()
    }

    /// The function of the file that the code at `address` does nothing but jump to.
    pub(super) fn behind_stub(&self, machine: Machine, address: u64) -> Option<u64> {
        let stub = self.stubs.iter().find_map(|(start, code)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            code.get(at..).filter(|code| !code.is_empty())
        })?;
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
