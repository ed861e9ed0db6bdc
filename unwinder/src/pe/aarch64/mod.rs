//! Unwind information of ARM64 images.
//!
//! Source: Microsoft, "ARM64 exception handling"; for `save_any_reg`, the frames of traps and contexts, and what is undone
//! where, the .NET runtime's unwinder (`src/coreclr/unwinder/arm64`), which follows Windows' own.

mod codes;
mod frame;
mod full;
mod function;
mod packed;

use object::pe::IMAGE_FILE_MACHINE_ARM64;

use super::{Functions, Image, PeMachine, PlacedRow};
use crate::aarch64::Aarch64;
use crate::table::Traits;
use frame::Frame;
use function::Entry;

type Row = crate::table::Row<Aarch64>;

impl PeMachine for Aarch64 {
    const PE_MACHINE: u16 = IMAGE_FILE_MACHINE_ARM64.0;

    type Entry = Entry;

    fn at_entry() -> (Row, Traits) {
        Frame::at_entry().row()
    }

    fn compile(
        image: &Image,
        functions: &Functions<Entry>,
        number: usize,
        rows: &mut Vec<PlacedRow<Self>>,
    ) -> u32 {
        function::compile(image, functions, number, rows)
    }
}
