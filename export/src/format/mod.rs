//! Formats: each writes one [`Profile`] to an `impl Write`; where the bytes go is the caller's business.
//!
//! - `profile`: what a format is and is given.
//! - `holds`: which parts of a recording a format holds; `contents`: which of them a recording has, and what is left out by that.
//! - `registry`: all formats, by name and by file ending.
//! - `account`, `facts`: what of the recording as a whole, and of a process, is told to people.
//! - `mappings`, `duration`: what was mapped, and how long samples lasted, for the formats that have a place for it.
//! - `paths`: stacks in the order of their frames, for the formats that have a tree; `stacks`: with their names and counts, for those that
//!   have lines of them.
//! - `start`, `calendar`: when a recording starts, and times of day; `printable`: texts for XML; `unique_keys`: attributes with each key once.
//! - One file or folder for each.

mod account;
mod calendar;
mod contents;
mod duration;
mod facts;
pub mod firefox;
pub mod flamegraph;
pub mod folded;
mod holds;
pub mod html;
pub mod jfr;
pub mod jsonl;
mod mappings;
pub mod nettrace;
pub mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
mod paths;
pub mod perfetto;
pub mod perfview;
pub mod pprof;
mod printable;
mod profile;
mod registry;
pub mod speedscope;
mod stacks;
mod start;
mod unique_keys;

pub(crate) use account::lost_in;
pub use contents::Contents;
pub use holds::{Held, Holds, Part};
pub use profile::{ExportFormat, Profile};
pub use registry::{by_name, for_path, formats};
