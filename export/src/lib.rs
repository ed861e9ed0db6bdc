//! Symbols and output formats: reads a [`collector_common::record::ExportMachine`], writes files.
//!
//! - [`symbolize`]: names for frames, found once per distinct frame.
//! - [`mod@format`]: one file or folder per format; [`format::formats`] lists them.
//! - [`hottest`]: the functions that most was counted in.
//!
//! Architecture invariant: nothing here changes a record, and nothing here knows how it was recorded.

pub mod format;
pub mod hottest;
pub mod symbolize;
