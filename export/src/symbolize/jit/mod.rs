//! Names for code that was made at run time, from what its makers write of it.
//!
//! - `perf_map`: text files, of which the last line that holds an address names it.
//! - `jitdump`: files of records with times, and with lines of the source.
//! - `names`: what is found of the addresses of one module.
//! - `readable`: how the names of runtimes read, and which language they are of.
//! - `name`: the way to [`Symbols`](super::Symbols).

mod jitdump;
mod name;
mod names;
mod perf_map;
mod readable;

pub use jitdump::{JitCode, JitDump, JitDumpError, JitLine};
pub(super) use name::name;
pub use names::{JitNames, JitPlace};
pub use perf_map::PerfMap;
pub use readable::Language;
