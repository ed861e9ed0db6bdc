//! Symbols and output formats: reads a [`collector_common::record::ExportMachine`], writes files.
//!
//! - [`symbolize`]: names for frames, found once per distinct frame.
//! - [`import`]: recordings of other tools.
//! - [`mod@format`]: one file or folder per format; [`format::formats`] lists them.
//! - [`graph`]: the calls as a tree, for formats that want one.
//! - [`hottest`]: the functions that most was counted in.
//! - `functions`: what formats and tables that show functions have in common; `file_name`, `lists`, `leb128`, `over_time`, `prefix_tree`,
//!   `table`: what many of them are made with.
//!
//! Architecture invariant: nothing here changes a record, and nothing here knows how it was recorded.

mod file_name;
pub mod format;
mod functions;
pub mod graph;
pub mod hottest;
pub mod import;
mod leb128;
mod lists;
mod over_time;
mod prefix_tree;
pub mod symbolize;
mod table;

pub use file_name::is_of_windows;
