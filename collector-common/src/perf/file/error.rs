//! Why a `perf.data` could not be read or written, and what to do about it.

use std::fmt;

use thiserror::Error;

use super::Feature;
use crate::perf::{AttrError, RecordKind, WriteError};
use crate::remedy;

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
    #[error("an event's attributes at byte {at} of the perf.data can't be read: {source}")]
    Attr {
        /// Where they begin, or the record with them.
        at: u64,
        /// Why.
        source: AttrError,
    },
    /// A part of the file ends before it should.
    #[error("the perf.data is cut off in its {part} at byte {at}: {len} bytes of {size}")]
    CutOff {
        /// Which part.
        part: FilePart,
        /// Where it begins.
        at: u64,
        /// What it should have.
        size: u64,
        /// What there was.
        len: u64,
    },
    /// The list of events is not one of whole entries.
    #[error(
        "the list of events at byte {at} of the perf.data has {size} bytes, which are no entries of {entry_size} each"
    )]
    Entries {
        /// Where it begins.
        at: u64,
        /// What it has.
        size: u64,
        /// What the header says that each has.
        entry_size: u64,
    },
    /// A record's size makes no sense.
    #[error("a record of type {kind} at {at} of the perf.data says that it has {size} bytes")]
    RecordSize {
        /// Where it begins.
        at: Place,
        /// The record's type.
        kind: u32,
        /// What it says.
        size: u16,
    },
    /// The records are packed, and what is packed is damaged.
    #[error("packed records can't be unpacked, as far as byte {at} of the perf.data: {what}")]
    Packed {
        /// Where the newest of the records begins in which they are.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

impl FileError {
    /// What to do about it, for who can't read the file at all: what was read before it is good for all that.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io(error) => remedy::of_reading(error),
            Self::Magic(_) => {
                "name a file that `perf record` or `collector run -o FILE.perf.data` has written"
            }
            Self::FirstVersion => "record it again with perf of Linux 2.6.36 or newer",
            Self::NotAStream(_) => "name the file in place of a stream",
            Self::CutOff { .. } => remedy::CUT,
            Self::Attr { .. } | Self::Entries { .. } | Self::RecordSize { .. } | Self::Packed { .. } => {
                remedy::DAMAGED
            }
        }
    }
}

/// A part of a `perf.data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePart {
    /// The header.
    Header,
    /// The attributes of all events.
    Events,
    /// The ids of one of them.
    Ids,
    /// Where the features are.
    Features,
    /// One of them.
    Feature(Feature),
    /// The records.
    Records,
    /// What follows a record outside of it.
    Payload,
    /// Records that are packed.
    PackedRecords,
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Events => "list of events",
            Self::Ids => "ids of an event",
            Self::Features => "list of features",
            Self::Feature(feature) => return write!(f, "feature {feature}"),
            Self::Records => "records",
            Self::Payload => "data behind a record",
            Self::PackedRecords => "packed records",
        })
    }
}

/// Where a record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this byte of the file.
    File(u64),
    /// At this byte of what was unpacked.
    Unpacked(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(at) => write!(f, "byte {at}"),
            Self::Unpacked(at) => write!(f, "byte {at} of the unpacked records"),
        }
    }
}

/// Features that the header tells of and that are not in the file, or not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFeatures {
    /// Which, in the order of the header.
    pub features: Vec<Feature>,
    /// Why the first of them could not be read.
    pub why: String,
}

impl fmt::Display for MissingFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// So many are named.
        const NAMED: usize = 8;
        f.write_str("what these features tell of the recording is missing: ")?;
        for (place, feature) in self.features.iter().take(NAMED).enumerate() {
            write!(f, "{}{feature}", if place > 0 { ", " } else { "" })?;
        }
        let more = self.features.len().saturating_sub(NAMED);
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        write!(f, "; {}", self.why)
    }
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
