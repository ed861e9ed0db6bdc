//! Why a `perf.data` could not be read or written.

use thiserror::Error;

use super::Feature;
use crate::perf::{AttrError, RecordKind, WriteError};

/// Why a `perf.data` could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The bytes could not be read.
    #[error("perf.data could not be read: {0}")]
    Io(#[from] std::io::Error),
    /// It is something else.
    #[error("the file is not a perf.data: it begins with {0:02x?}")]
    Magic([u8; 8]),
    /// It is in the first version's format, which `perf` wrote before Linux 2.6.36.
    #[error("the perf.data is of the first version, which is not read")]
    FirstVersion,
    /// A stream was given where a file is needed that can be positioned: it is not one of `perf record -o -`.
    #[error("the perf.data is a file, which can't be read as a stream; its header has {0} bytes")]
    NotAStream(u64),
    /// An event's attributes make no sense.
    #[error("an event's attributes can't be read: {0}")]
    Attr(#[from] AttrError),
    /// A part of the file ends before it should.
    #[error("the perf.data is cut off in its {part}: {len} bytes of {size}")]
    CutOff {
        /// Which part.
        part: &'static str,
        /// What it should have.
        size: u64,
        /// What there was.
        len: u64,
    },
    /// The list of events is not one of whole entries.
    #[error(
        "the list of events in the perf.data has {size} bytes, which are no entries of {entry_size} each"
    )]
    Entries {
        /// What it has.
        size: u64,
        /// What the header says that each has.
        entry_size: u64,
    },
    /// A record's size makes no sense.
    #[error("a record of type {kind} in the perf.data says that it has {size} bytes")]
    RecordSize {
        /// The record's type.
        kind: u32,
        /// What it says.
        size: u16,
    },
    /// The records are packed, and what is packed is damaged.
    #[error("packed records can't be unpacked: {0}")]
    Packed(String),
}

/// Why a `perf.data` could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileWriteError {
    /// The bytes could not be written.
    #[error("perf.data could not be written: {0}")]
    Io(#[from] std::io::Error),
    /// A record or a feature does not suit what it is written as.
    #[error("perf.data can't have this in it: {0}")]
    Write(#[from] WriteError),
    /// An event's attributes have a size that they can't have.
    #[error("an event's attributes can't be written: {0}")]
    Attr(#[from] AttrError),
    /// There is no event with this index.
    #[error("a record is of event {0}, which was not added to the perf.data")]
    NoEvent(usize),
    /// A record says that other data follows it than does.
    #[error("a record of type {} is followed by {len} bytes and says that it is by {size}", .kind.0)]
    Payload {
        /// The record's type.
        kind: RecordKind,
        /// What it says.
        size: u64,
        /// What there is.
        len: u64,
    },
    /// The header has bits for 256 features.
    #[error("a perf.data has no place for feature {}", .0.0)]
    Feature(Feature),
}
