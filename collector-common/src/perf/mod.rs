//! `perf_event` records: the ones of the sideband (mappings, names, forks, exits, kernel symbols, losses).
//!
//! Layouts: `include/uapi/linux/perf_event.h`, `enum perf_event_type`. Records are read in the byte order of the machine.

mod reader;
mod sideband;

pub use sideband::{Identity, Mmap2, ParseError, Record, SAMPLE_ID_TYPE, SampleId, parse};
