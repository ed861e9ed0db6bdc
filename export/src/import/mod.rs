//! Recordings of other tools in, whose stacks are unwound already; a machine and the names of its frames out, for any format.
//!
//! - [`jfr`]: what the JDK's flight recorder and async-profiler write.
//! - [`nettrace`]: what .NET's runtime writes, and whoever writes `Universal` events.

pub mod jfr;
pub mod nettrace;

use collector_common::record::ExportMachine;

use crate::symbolize::Symbols;

/// A recording that was read.
#[derive(Debug)]
pub struct Imported {
    /// What was recorded.
    pub machine: ExportMachine,
    /// The names that the file tells of.
    pub symbols: Symbols,
    /// What of the file is not in the machine, a line each.
    pub left_out: Vec<String>,
}
