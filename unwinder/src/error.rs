//! Why no unwind table could be made from a file, and why a section of a file could not be used.

use std::fmt;

use thiserror::Error;

/// Why no [`crate::UnwindTable`] could be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The bytes are not an ELF file, or its headers are cut off.
    #[error("not a readable ELF file ({0}); treat its memory as code without unwind information")]
    NotElf(#[from] object::Error),
    /// The bytes are not a PE32+ file, or its headers are cut off.
    #[error("not a readable 64-bit PE file ({0}); treat its memory as code without unwind information")]
    NotPe(#[source] object::Error),
    /// A PE file for another machine.
    #[error("PE machine {machine:#x} (IMAGE_FILE_MACHINE_*) is not that of the table's architecture")]
    OtherPeMachine {
        /// `Machine` of the file header.
        machine: u16,
    },
    /// An ELF file for another machine.
    #[error("ELF machine {machine} (EM_*) is not {wanted}; its stacks need another architecture")]
    OtherMachine {
        /// The name of the table's architecture.
        wanted: &'static str,
        /// `e_machine`.
        machine: u16,
    },
    /// An ELF file that is linked already.
    #[error("an ELF file of type {kind} (ET_*) is no relocatable object; its own addresses hold")]
    NotRelocatable {
        /// `e_type`.
        kind: u16,
    },
    /// No segment or section of the file is executable, or the code that the caller named is empty.
    #[error(
        "there is no code (in a file: no executable segment or section), so no address can have an unwind rule"
    )]
    NoText,
    /// The code spans 4 GiB or more.
    #[error("the code (in an ELF file: the executable segments) spans {span} bytes; tables reach 4 GiB")]
    TextTooLarge {
        /// From the first executable byte to the last.
        span: u64,
    },
    /// Neither `.eh_frame` nor `.debug_frame` is there, or no exception directory in a PE file.
    #[error("there is no .eh_frame, .debug_frame or .pdata; walk its code by frame pointers")]
    NoUnwindSection,
    /// There is an unwind section, but it can't be read, and no other one.
    #[error("{0}; no other section has rules, so walk its code by frame pointers")]
    Unread(#[from] UnreadSection),
    /// More tables were made than identities exist (2^31 - 1).
    #[error("no more table identities are left in this process")]
    TooManyTables,
}

/// A section that a file has unwind rules in, and why they can't be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("section {section} can't be read: {problem}")]
pub struct UnreadSection {
    /// Its name.
    pub section: &'static str,
    /// What is wrong with it.
    pub problem: SectionProblem,
}

/// What is wrong with a section.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionProblem {
    /// The file has fewer bytes than its headers say.
    #[error("the file ends before it does")]
    CutOff,
    /// Neither zlib nor zstd.
    #[error("it is packed by an unknown method, {method} (ELFCOMPRESS_*)")]
    UnknownCompression {
        /// `ch_type`.
        method: u32,
    },
    /// Unwind sections of 256 MiB or more.
    #[error("{size} bytes are implausible")]
    TooLarge {
        /// Its size, or of several together.
        size: u64,
    },
    /// More than can be of so few bytes, or than any such section has.
    #[error("{packed} bytes that state to unpack to {unpacked} are implausible")]
    Implausible {
        /// The section's bytes.
        packed: u64,
        /// What it states.
        unpacked: u64,
    },
    /// The packed data has no end.
    #[error("its {format} data is cut off")]
    PackedCutOff {
        /// What it is packed by.
        format: Compression,
    },
    /// The packed data is none, or other than its checksum says.
    #[error("its {format} data is damaged ({reason})")]
    PackedDamaged {
        /// What it is packed by.
        format: Compression,
        /// What the decoder says.
        reason: String,
    },
    /// It is larger than it says.
    #[error("it unpacks to more than the {stated} bytes that it states")]
    Longer {
        /// What it states.
        stated: u64,
    },
    /// It is smaller than it says.
    #[error("it unpacks to {found} bytes, and states {stated}")]
    Shorter {
        /// What it states.
        stated: u64,
        /// Its size.
        found: u64,
    },
    /// It should unpack to an ELF file of the architecture.
    #[error("it unpacks to no ELF file of the architecture")]
    NoElf,
}

/// What a section is packed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Deflate.
    Zlib,
    /// Zstandard.
    Zstd,
    /// LZMA2.
    Xz,
}

impl Compression {
    pub(crate) fn damaged(self, reason: &impl fmt::Display) -> SectionProblem {
        SectionProblem::PackedDamaged { format: self, reason: reason.to_string() }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Zlib => "zlib",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
        })
    }
}
