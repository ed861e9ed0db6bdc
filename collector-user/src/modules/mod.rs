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
//!
//! Memory without a file is a module of its process: `jit` finds what its code is called.

mod bounded;
mod debug;
mod details;
mod file;
mod image_file;
mod jit;
#[cfg(target_os = "linux")]
pub(crate) mod kernel_modules;
mod layout;
mod local;
mod noted;
mod open;
#[cfg(target_os = "linux")]
mod packed;
mod pdb;
mod probes;
mod recorded;
mod root;
mod store;
mod table;
mod vdso;
#[cfg(target_os = "linux")]
pub(crate) mod vmlinux;

pub(crate) use bounded::{BoundedFile, UNWIND_SECTIONS};
pub(crate) use details::{is_loaded, of_loaded, pdb_of_record};
pub use file::ModuleFile;
#[cfg(feature = "debuginfod")]
pub(crate) use file::build_id_of;
pub(crate) use file::debug_file_of;
pub(crate) use image_file::ImageFile;
pub(crate) use jit::Believed;
pub use layout::Segment;
pub(crate) use local::tell_of_recent_images;
pub use local::{name_from_files, tell_of_images};
#[cfg(target_os = "linux")]
pub(crate) use noted::NotedFile;
pub(crate) use open::{open_chosen, open_regular};
pub(crate) use recorded::MOST_BUILD_IDS;
pub use recorded::RecordedFiles;
pub(crate) use store::Beginning;
pub use store::{MappedFile, Modules, Resolved};
pub use table::{Recorded, Table};
