//! Addresses as linked in, source lines and inlined functions out, from an ELF file's DWARF.
//!
//! DWARF is read by `addr2line` on `gimli`. What is ours is the bytes that they are given:
//!
//! - `file`, `unpack`: a file's sections, read with `read` piece by piece when they are wanted, and never mapped, so that
//!   one that is cut short while it is read costs an error and not the process. Memory is what was touched.
//! - `reader`, `meter`: how `gimli` reads them, and what a file may cost, whatever it says.
//! - `split`: the files that most of it may lie in (`-gsplit-dwarf`), and shared ones (`dwz -m`).
//! - `relocate`: files that were not linked, as modules of the kernel.
//! - `lookup`: the lookup of addresses.
//!
//! Cost, in an unoptimised build, of a recording of an unoptimised program of 57 MB with line tables, of which 3,186
//! stacks were recorded (`perf record -F 4000 -g -- collector convert ...`, then `collector convert`): 0.62 s of user time and
//! 69 MB at the peak, and with `--no-inline` 0.12 s and 15 MB. A test executable of 31 MB with 7,585 stacks: 0.6 s and 59 MB,
//! and 0.2 s and 16 MB. The first program has 31 MB of DWARF: what is held of it and the tables of its units are less than twice that.

mod file;
mod lookup;
mod meter;
mod reader;
mod relocate;
mod split;
#[cfg(test)]
mod tests;
mod unpack;

use std::io;

pub(super) use lookup::{look_up, look_up_placed};

/// Why source lines and inlined functions of a module could not be read, or not all of them.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[from] io::Error),
    /// The file is no ELF file, or has headers that lead outside of it.
    #[error("not a whole ELF file")]
    Unreadable,
    /// It is no DWARF.
    #[error("its DWARF is damaged: {0}")]
    Malformed(gimli::Error),
    /// A section can't be unpacked.
    #[error("a section of its DWARF can't be unpacked: {0}")]
    Packed(io::Error),
    /// More memory is needed than for any real file of its size.
    #[error("its DWARF takes more than {limit} bytes")]
    TooLarge {
        /// The most that it may take.
        limit: u64,
    },
    /// The same is read again and again.
    #[error("its DWARF says to read more of it than that of any real file")]
    Endless,
    /// The time for the DWARF of all files is over.
    #[error("the time for the DWARF of all files was over before all of its was read")]
    Late,
    /// Functions are inlined into each other more often than can be followed.
    #[error("its DWARF is nested too deeply")]
    Deep,
    /// It has more units than any real file.
    #[error("its DWARF has more than {limit} units")]
    TooMany {
        /// The most that are read.
        limit: usize,
    },
    /// It is split into more files than that of any real file.
    #[error("its DWARF is split into more than {limit} files")]
    TooManyFiles {
        /// The most that are read.
        limit: usize,
    },
    /// A file that has a part of its DWARF can't be read.
    #[error("{path}, which has a part of its DWARF, can't be read: {error}")]
    Part {
        /// The file, as the module's own has it.
        path: String,
        /// Why.
        error: Box<LineError>,
    },
    /// Files that were split from it are missing.
    #[error(
        "{count} of the files that its DWARF is split into are missing, or of another compilation, as {example}"
    )]
    SplitMissing {
        /// How many.
        count: usize,
        /// One of them.
        example: String,
    },
    /// The file that it shares DWARF with is missing.
    #[error("the file that it shares DWARF with is missing: {path}")]
    SharedMissing {
        /// Where it should be.
        path: String,
    },
}
