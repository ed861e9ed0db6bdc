//! Code without a file, made at run time: where its names may be, held from when the code is first met, and read when the
//! recording ends. The formats are read by `export`.
//!
//! ```text
//! executable memory without a file ─► process known ─► its user, its own pid and its /tmp are noted (they go with it)
//!                                                         └─► /tmp/perf-PID.map, when it ends and when the recording does
//! executable mapping of jit-N.dump ─► the file is opened ─► read when the recording ends ─► `settle`: what lay where, when
//! ```
//!
//! - `files`: what was found, by process.
//! - `owner`: whose files are believed.
//! - `settle`: frames of one address that was different code at different times are told apart.

mod files;
mod owner;
mod settle;

pub(super) use files::JitFiles;
pub(crate) use owner::Believed;
