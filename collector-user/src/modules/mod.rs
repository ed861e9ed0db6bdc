//! The files that processes execute: found once per identity, opened while they can be, read when a stack or a
//! name wants them.
//!
//! ```text
//! mapping (pid, range, identity, path) ─► identity known? ── yes ─► module
//!                                              │ no
//!                                              └─► open through map_files ─► module ─► unwind table (at the
//!                                                  or by path, checked         │       first stack in it)
//!                                                                              └─► symbols (at export)
//! ```

mod bounded;
mod debug;
mod details;
mod file;
mod layout;
mod open;
mod probes;
mod recorded;
mod store;
mod table;
mod vdso;

pub(crate) use bounded::{BoundedFile, UNWIND_SECTIONS};
pub use file::ModuleFile;
pub(crate) use file::debug_file_of;
pub use layout::Segment;
pub use recorded::RecordedFiles;
pub use store::{MappedFile, Modules};
pub use table::{Recorded, Table};
