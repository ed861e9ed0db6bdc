//! From a PE image (a Windows program or library) to rules: what `.pdata` and the unwind information it names say of
//! each function, and what the instructions of its epilogues say where that information is silent about them.
//!
//! | file | in | out |
//! |---|---|---|
//! | `image` | the file's bytes | its sections by address, its text's range, its exception directory |
//! | `x86_64/runtime_function` | the exception directory | the functions |
//! | `x86_64/unwind_info` | a function's unwind information | its header and codes |
//! | `x86_64/prologue` | the codes | a row per step of the prologue |
//! | `x86_64/epilogue` | instructions | the rows of an epilogue without codes of its own |
//! | `x86_64/coded_epilogue` | the codes of version 2 | the rows of the epilogues they name |
//! | `x86_64/function` | all of these | a function's rows |
//! | `aarch64/codes` | bytes | what an instruction of a prologue did |
//! | `aarch64/full`, `aarch64/packed` | a function's record, or packed data | its prologue and epilogues |
//! | `aarch64/frame` | such steps | a row |
//! | `aarch64/function` | the exception directory | the functions' rows |
//!
//! The rows are those that ELF's call frame information is compiled to, so a walk knows no difference. An address is
//! relative to the image's base (an RVA) in here.

mod aarch64;
mod image;
#[cfg(test)]
mod tests;
mod x86_64;

use crate::Architecture;
use crate::table::{Row, Traits};

pub(crate) use image::Image;

/// An architecture that Windows runs on.
pub(crate) trait PeMachine: Architecture {
    /// `Machine` in the header of its images (`IMAGE_FILE_MACHINE_*`).
    const PE_MACHINE: u16;

    /// The row at a function's first instruction.
    fn at_entry() -> (Row<Self>, Traits);

    /// Hands all functions of an image to `add`, in ascending order, each byte of the text in one at most.
    fn compile(image: &Image<'_>, add: impl FnMut(&Function<'_, Self>));
}

/// A row, and the offset from its function's beginning from which it holds.
pub(crate) type PlacedRow<A> = (u32, Row<A>, Traits);

/// A function of an image.
#[derive(Debug)]
pub(crate) struct Function<'r, A: Architecture> {
    /// The RVA of its first byte, which lies in the text.
    pub(crate) start: u32,
    /// Its size in bytes.
    pub(crate) size: u32,
    /// In ascending order.
    pub(crate) rows: &'r [PlacedRow<A>],
}
