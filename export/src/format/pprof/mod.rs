//! pprof: the gzip-compressed `profile.proto` that `go tool pprof`, Pyroscope, Parca, speedscope and others read.
//!
//! - `proto`: the messages.
//! - `write`: the format; `columns` and `rows` are its parts: what values count, and the samples added up.
//! - `read`: a reader for any writer's profiles; `wire` takes their bytes apart.

mod columns;
mod proto;
mod read;
mod rows;
mod wire;
mod write;

pub use read::{ReadError, Recorded, RecordedFunction, RecordedSample, ValueType, read};
pub use write::Pprof;
