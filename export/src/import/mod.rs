//! Recordings of other tools in, whose stacks are unwound already; a machine and the names of its frames out, for any format.
//!
//! - `interface`: what a reader is given, and what it gives; `registry`: all readers, and which of them a file is for.
//! - [`nettrace`]: what .NET's runtime writes, and whoever writes `Universal` events.
//! - [`jfr`]: what the JDK's flight recorder and async-profiler write.
//! - [`pprof`], [`folded`], [`firefox`]: profiles.
//! - `frames`, `room`, `unpack`, `digits`, `missing_end`: what readers have in common: frames that have names and perhaps an address,
//!   limits of what stacks have together, files that may be compressed, bytes as digits, and how a file that is cut is told of.

mod digits;
pub mod firefox;
pub mod folded;
mod frames;
mod interface;
pub mod jfr;
mod missing_end;
pub mod nettrace;
pub mod pprof;
mod registry;
mod room;
mod unpack;

pub use interface::{Begin, ImportError, ImportFormat, Imported, Input};
pub use registry::{BEGIN, importers, of};
pub use room::checked;
