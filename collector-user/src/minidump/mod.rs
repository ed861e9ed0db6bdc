//! A minidump of Windows (`MDMP`) in, a recording out in which each of its threads is one sample; the same on every system.
//!
//! ```text
//! file ─► source ─► streams: threads, modules, memory, system ─┐
//!                                                              ▼
//! images (files, or `in_memory`) ─► tables, code ─► walk: `context`'s registers, `memory`'s stack ─► machine ─► ExportMachine
//!                                └────────────────────────────────────────────────────────────────► names (`DumpFiles`)
//! ```
//!
//! Layouts are those of Microsoft's `minidumpapiset.h` and `winnt.h`, as its documentation of `MINIDUMP_HEADER` and of what that refers to has
//! them. Why no crate reads them is told in `docs/adr/0028-own-reader-of-minidumps.md`.

mod context;
mod error;
mod format;
mod images;
mod in_memory;
mod machine;
mod memory;
mod source;
mod streams;
mod walk;

pub use format::{Dump, Minidump};
pub use images::DumpFiles;
