//! Why no unwind table could be made from a file.

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
    /// An unwind section of 256 MiB or more, or one that says it unpacks to an implausible size.
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
