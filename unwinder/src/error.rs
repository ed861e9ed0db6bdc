//! Why no unwind table could be made from a file.

use thiserror::Error;

/// Why no [`crate::UnwindTable`] could be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The bytes are not an ELF file, or its headers are cut off.
    #[error("not a readable ELF file ({0}); treat its memory as code without unwind information")]
    NotElf(#[from] object::Error),
    /// An ELF file for another machine.
    #[error("ELF machine {machine} (EM_*) is not {wanted}; its stacks need another architecture")]
    OtherMachine {
        /// The name of the table's architecture.
        wanted: &'static str,
        /// `e_machine`.
        machine: u16,
    },
    /// No segment of the file is executable.
    #[error("the ELF file has no executable segment, so no address in it can have an unwind rule")]
    NoText,
    /// The executable segments span 4 GiB or more.
    #[error("the ELF file's executable segments span {span} bytes; tables reach 4 GiB")]
    TextTooLarge {
        /// From the first executable byte to the last.
        span: u64,
    },
    /// Neither `.eh_frame` nor `.debug_frame` is there.
    #[error("the ELF file has neither .eh_frame nor .debug_frame; walk its code by frame pointers")]
    NoUnwindSection,
    /// An unwind section of 2 GiB or more, or one that says it unpacks to an implausible size.
    #[error(
        "section {section} has (or unpacks to) {size} bytes, which is implausible; the file may be damaged"
    )]
    SectionTooLarge {
        /// The section's name.
        section: &'static str,
        /// Its size in bytes.
        size: u64,
    },
    /// More tables were made than identities exist (2^32 - 1).
    #[error("no more table identities are left in this process")]
    TooManyTables,
}
