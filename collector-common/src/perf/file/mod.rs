//! `perf.data`: the files that `perf record` writes, and the stream of `perf record -o -`.
//!
//! [`FileReader`] reads either from an [`std::io::Read`]: the events with their attributes ([`FileEvent`]), what is known
//! of the machine ([`Features`]), and then record by record ([`FileRecord`]), each with the event that it is from.
//! The records that `perf` itself makes are [`UserRecord`]s.
//! [`Ordered`] puts the records in the order of their times. [`FileWriter`] writes a file, and [`copy`] writes one
//! recording as another.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt` and `tools/perf/util/header.c` of Linux.

mod bpf;
mod branch_counters;
mod copy;
mod describe;
mod error;
mod events;
mod features;
mod ordered;
mod reader;
mod section;
mod topology;
mod tracing;
mod unpack;
mod user;
mod writer;

pub use bpf::{BpfProgram, BpfTypes};
pub use branch_counters::{BranchCount, BranchCounters};
pub use copy::{Copied, copy};
pub use error::{FileError, FilePart, FileWriteError, MissingFeatures, Place};
pub use events::FileEvent;
pub use features::{
    AuxIndexEntry, BuildIdOfFile, ClockData, Compression, EventDescription, Feature, Features,
    GroupDescription, PmuCaps, SampleTimes,
};
pub use ordered::Ordered;
pub use reader::{FileReader, FileRecord};
pub use topology::{CacheLevel, CpuTopology, MemoryNode, MemoryTopology, NumaNode};
pub use tracing::{TracepointFormat, tracepoint_formats, write_tracepoint_formats};
pub use user::{
    Auxtrace, AuxtraceError, AuxtraceInfo, BpfMetadata, BpfMetadataEntry, Compressed, Compressed2, CpuMap,
    EventType, EventUpdate, Guest, HeaderAttr, HeaderBuildId, HeaderFeature, IdIndex, IdIndexEntry, Mark,
    Numbers, ParsedUser, SchedstatCpu, SchedstatDomain, Stat, StatConfig, StatRound, ThreadMap,
    ThreadMapEntry, TimeConv, TimeConvCycles, TracingData, Update, UserRecord,
};
pub use writer::FileWriter;
