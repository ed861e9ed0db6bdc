//! From a PE image (a Windows program or library) to rules: what `.pdata` and the unwind information it names say of
//! each function, and what the instructions of its epilogues say where that information is silent about them.
//!
//! | file | in | out |
//! |---|---|---|
//! | `image_bytes` | a caller's file or memory | bytes of it, when they are needed |
//! | `image` | those of the headers | the sections by address, the text's range, the exception directory |
//! | `functions` | the exception directory | the functions; a function's rows when it is asked for |
//! | `x86_64/runtime_function` | an entry of that directory | a function |
//! | `x86_64/unwind_info` | a function's unwind information | its header and codes |
//! | `x86_64/prologue` | the codes | a row per step of the prologue |
//! | `x86_64/epilogue` | instructions | the rows of an epilogue without codes of its own |
//! | `x86_64/coded_epilogue` | the codes of version 2 | the rows of the epilogues they name |
//! | `x86_64/function` | all of these | a function's rows |
//! | `aarch64/codes` | bytes | what an instruction of a prologue did |
//! | `aarch64/full`, `aarch64/packed` | a function's record, or packed data | its prologue and epilogues |
//! | `aarch64/frame` | such steps | a row |
//! | `aarch64/function` | an entry of the exception directory | a function's rows |
//!
//! The rows are those that ELF's call frame information is compiled to, so a walk knows no difference. An address is
//! relative to the image's base (an RVA) in here.

mod aarch64;
mod functions;
mod image;
mod image_bytes;
#[cfg(test)]
mod tests;
mod x86_64;

use crate::Architecture;
use crate::table::{Row, Traits};

pub(crate) use functions::{Compile, Entry, Functions, ImageFunctions};
pub(crate) use image::Image;
pub use image_bytes::ImageBytes;

/// An architecture that Windows runs on.
pub(crate) trait PeMachine: Architecture {
    /// `Machine` in the header of its images (`IMAGE_FILE_MACHINE_*`).
    const PE_MACHINE: u16;

    /// What its exception directories consist of.
    type Entry: Entry;

    /// The row at a function's first instruction.
    fn at_entry() -> (Row<Self>, Traits);

    /// Gives the rows of a function of an image, by its number in `functions`, and returns its size in bytes. Each byte of the text
    /// is of one function at most.
    fn compile(
        image: &Image,
        functions: &Functions<Self::Entry>,
        number: usize,
        rows: &mut Vec<PlacedRow<Self>>,
    ) -> u32;
}

/// A row, and the offset from its function's beginning from which it holds.
pub(crate) type PlacedRow<A> = (u32, Row<A>, Traits);
