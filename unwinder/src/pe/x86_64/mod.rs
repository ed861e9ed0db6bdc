//! Unwind information of x64 images.
//!
//! Source: Microsoft, "x64 exception handling" and "x64 prolog and epilog"; for version 2 and for which instructions
//! make an epilogue, the behaviour of `RtlVirtualUnwind`, which the .NET runtime publishes with its own unwinder.

mod coded_epilogue;
mod epilogue;
mod function;
mod prologue;
mod runtime_function;
mod unwind_info;

use object::pe::IMAGE_FILE_MACHINE_AMD64;

use super::{Functions, Image, PeMachine, PlacedRow};
use crate::table::Traits;
use crate::x86_64::X86_64;
use prologue::Frame;
use runtime_function::RuntimeFunction;

type Row = crate::table::Row<X86_64>;

impl PeMachine for X86_64 {
    const PE_MACHINE: u16 = IMAGE_FILE_MACHINE_AMD64.0;

    type Entry = RuntimeFunction;

    fn at_entry() -> (Row, Traits) {
        Frame::at_entry().row()
    }

    fn compile(
        image: &Image,
        functions: &Functions<RuntimeFunction>,
        number: usize,
        rows: &mut Vec<PlacedRow<Self>>,
    ) -> u32 {
        function::compile(image, functions, number, rows)
    }
}
