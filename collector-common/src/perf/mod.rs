//! The records of `perf_event_open`: every type that the kernel writes, every part of a sample, in either byte order,
//! read in place and written.
//!
//! - [`Attr`] is a `perf_event_attr`; [`ParseConfig`] is what it says about the layout of its event's records.
//! - [`records`] goes over a buffer. A [`RawRecord`] is a record's bytes, in one piece or in the two that it has where it
//!   wraps around a ring's end; [`RawRecord::parse`] reads its fields, [`Parsed::write`] writes them.
//! - [`Record`] has a struct for each type. What is long in it ([`Callchain`], [`Registers`], [`UserStack`] and others)
//!   is a view, decoded as it is asked for: nothing is allocated.
//! - [`Visitor`] has a method for each type.
//! - [`mod@file`] reads and writes the files of `perf record`.
//!
//! Layouts: `include/uapi/linux/perf_event.h`, `enum perf_event_type`, and the functions of `kernel/events/core.c` that
//! write the records, where the two differ.
//!
//! ```
//! use collector_common::perf::{ByteOrder, ParseConfig, Record, SampleType, records};
//!
//! # let header = [&9_u32.to_ne_bytes()[..], &2_u16.to_ne_bytes(), &16_u16.to_ne_bytes()];
//! # let ring = [header.concat(), vec![7; 8]].concat();
//! let config = ParseConfig { sample_type: SampleType::IP, ..ParseConfig::default() };
//! for raw in records(&ring, ByteOrder::NATIVE) {
//!     let parsed = raw?.parse(&config)?;
//!     if let Record::Sample(sample) = parsed.record {
//!         println!("{:?} {:?}", parsed.misc.cpu_mode(), sample.ip);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attr;
mod bits;
mod bytes;
mod config;
mod fields;
pub mod file;
mod record;
mod sample;
mod words;
mod write;

pub use crate::byte_order::ByteOrder;
pub use attr::{Attr, AttrError, AttrFlags};
pub use bytes::{Bytes, Text};
pub use config::{BranchSampleType, ParseConfig, ReadFormat, SampleType};
pub use record::{
    Aux, AuxFlags, AuxOutputHwId, BpfEvent, CallchainDeferred, Cgroup, Comm, Context, CpuMode, ItraceStart,
    Ksymbol, KsymbolFlags, Lost, LostSamples, MappedFile, Misc, Mmap, Mmap2, Namespace, Namespaces,
    OwnedRecord, ParseError, Parsed, RawRecord, Read, Record, RecordKind, Records, RecordsError, SampleId,
    Switch, SwitchCpuWide, Task, TextPoke, Throttling, Visitor, records,
};
pub use sample::{
    BranchEntry, BranchFlags, BranchStack, Callchain, ChainContext, ChainEntry, Counters, DataSource,
    GroupValues, ReadValue, ReadValues, Registers, RegistersAbi, Sample, Transaction, UserStack, Weight,
};
pub use words::{Words, WordsIter};
pub use write::WriteError;
