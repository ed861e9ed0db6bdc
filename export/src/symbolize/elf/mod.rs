//! Addresses as linked in, names out, from the symbol tables of an ELF file.
//!
//! The file is read, never mapped, so that one that is cut short while it is read costs an error and not the
//! process; and it is read in pieces, so that a large one costs no memory. Only the wanted addresses are kept
//! in mind: one pass over the symbols finds the best for each, nothing is sorted.
//!
//! - `layout`: headers and section headers, parsed by `object`.
//! - `stream`: tables of fixed-size entries, and strings, read piece by piece.
//! - `symtab`: the pass over a symbol table.
//! - `debug_data`: the file of symbols that is packed in a stripped one.
//! - `plt`: names of procedure linkage stubs, which have no symbols.

mod debug_data;
mod layout;
mod plt;
mod stream;
mod symtab;
#[cfg(test)]
mod tests;

use std::io::{self, Cursor, Read, Seek};

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, SHT_DYNSYM, SHT_SYMTAB};
use object::read::elf::FileHeader;

pub(super) use layout::{DebugSection, Layout};
pub(super) use stream::each_entry;

use super::answer::Answer;
use super::dwarf::LineError;
use super::pdb::PdbError;
use super::pe::AheadMapError;

/// Why symbols of a module could not be read, or not all of them.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// There is nothing to read.
    #[error("its file could not be opened")]
    Missing,
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// The headers are not those of an ELF file, or lead outside of the file.
    #[error("not a whole ELF file: {0}")]
    Malformed(object::read::Error),
    /// The headers are not those of a PE image, or a table of it leads outside of it.
    #[error("not a whole PE image")]
    Image,
    /// Its PDB could not be read, or not all of it.
    #[error("its PDB can't be read: {0}")]
    Pdb(#[from] PdbError),
    /// The map of what .NET compiled ahead could not be read, or not all of it.
    #[error("its map of what was compiled ahead can't be read: {0}")]
    AheadMap(#[from] AheadMapError),
    /// The symbols that are packed in the file can't be unpacked.
    #[error("its .gnu_debugdata can't be unpacked: {0}")]
    Packed(io::Error),
    /// Lines and inlined functions could not be read, or not all of them.
    #[error(transparent)]
    Lines(#[from] LineError),
    /// Names are longer, or take longer to be made readable, than those of any real file.
    #[error(
        "{left_out} names and paths are left out, and {as_written} are not made readable: together they have more than {limit} bytes, or take \
         longer than those of any real file"
    )]
    Names {
        /// How many there was no room for.
        left_out: u64,
        /// How many there was no time or room to make readable for.
        as_written: u64,
        /// How many bytes there is room for.
        limit: u64,
    },
    /// A table is larger than any real one.
    #[error("its {what} claims {size} entries, more than the {limit} of any real file")]
    TooLarge {
        /// What the table holds.
        what: &'static str,
        /// Its size by the file's account.
        size: u64,
        /// The largest that is read.
        limit: u64,
    },
}

/// Finds names for the addresses of `answer` that have none, or guesses. What was found before an error stays.
///
/// `.symtab` lacks no symbols. `.dynsym` has those that other files can see, and `.gnu_debugdata` the others that are functions.
pub(super) fn look_up<R: Read + Seek>(file: &mut R, answer: &mut Answer<'_>) -> Result<(), SymbolError> {
    let (layout, file) = Layout::read(file)?;
    let own = look_up_by_class(&layout, file, answer);
    if own.is_ok() && layout.tables(SHT_SYMTAB).any(|(_, table)| table.has_bytes()) {
        answer.set_seen_all();
    }
    let Some(section) = layout.debug_data().filter(|_| !answer.is_complete()) else { return own };
    let packed = debug_data::unpack(file, section).and_then(|inner| {
        let (layout, mut inner) = Layout::read(Cursor::new(inner))?;
        look_up_by_class(&layout, &mut inner, answer)
    });
    own.and(packed)
}

fn look_up_by_class<R>(layout: &Layout, file: &mut R, answer: &mut Answer<'_>) -> Result<(), SymbolError>
where
    R: Read + Seek,
{
    if layout.is_64 {
        look_up_in::<FileHeader64<Endianness>, R>(layout, file, answer)
    } else {
        look_up_in::<FileHeader32<Endianness>, R>(layout, file, answer)
    }
}

fn look_up_in<Elf, R>(layout: &Layout, file: &mut R, answer: &mut Answer<'_>) -> Result<(), SymbolError>
where
    Elf: FileHeader<Endian = Endianness>,
    R: Read + Seek,
{
    let stubs = plt::stubs::<Elf, R>(layout, file, answer)?;
    let mut targets: Vec<u64> = stubs.resolvers().collect();
    targets.sort_unstable();
    targets.dedup();
    let mut resolvers = Answer::new(&targets);
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        for (_, table) in layout.tables(kind) {
            symtab::look_up::<Elf, R>(layout, table, file, answer)?;
            symtab::look_up::<Elf, R>(layout, table, file, &mut resolvers)?;
        }
    }
    resolvers.settle_starts();
    stubs.name(&resolvers, answer);
    Ok(())
}
