//! pprof: the gzip-compressed `profile.proto` that `go tool pprof`, Pyroscope, Parca, speedscope and others read.
//!
//! - `proto`: the messages.
//! - `write`: the format; `columns` and `rows` are its parts: what values count, and the samples added up.
//!
//! [`crate::import::pprof`] reads it.

mod columns;
pub(crate) mod proto;
mod rows;
mod write;

pub use write::Pprof;
