//! Reads `.etl` files, on every system: what ETW writes where a session has a file, and what merging such files makes.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use windows_etw::etl::EtlFile;
//!
//! let mut file = EtlFile::open(std::fs::File::open("trace.etl")?)?;
//! let clock = file.header().clock;
//! while let Some(record) = file.next_record()? {
//!     println!("{} ns: {} {}", clock.nanos(record.ticks), record.provider, record.descriptor.opcode);
//! }
//! println!("{} events were lost", file.losses().events);
//! # Ok(())
//! # }
//! ```
//!
//! A file is a row of buffers as the session had them in memory, each of one CPU, in the order in which they were full. A
//! buffer is a header (`WMI_BUFFER_HEADER`), records at multiples of 8 bytes, and padding. The first record of the first
//! buffer tells of the trace (`TRACE_LOGFILE_HEADER`). Buffers may be packed, each for itself. All is little-endian.
//!
//! Layouts and their sources are told where they are read: `buffer.rs`, `header.rs`, `frame.rs`, `parse.rs`, `extended.rs`,
//! `message.rs`, `xpress.rs`. Those are of Windows 7 and later.

mod buffer;
mod bytes;
mod clock;
mod error;
pub(crate) mod extended;
mod file;
mod frame;
mod header;
mod index;
mod kernel_groups;
mod loaded;
mod losses;
mod merge;
mod message;
mod parse;
mod source;
mod xpress;

pub use clock::{Clock, ClockKind};
pub use error::EtlError;
pub use file::EtlFile;
pub use header::{TimeZone, TraceHeader, TraceVersion};
pub use kernel_groups::EVENT_TRACE;
pub use losses::{Damage, DamageKind, Losses};
