//! What a reader of recordings is: it is given a file and makes an [`Imported`] of it.

use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};

use collector_common::record::ExportMachine;
use collector_common::remedy::{CUT, DAMAGED, EMPTY, TOO_LARGE, of_reading};

use super::unpack::Beyond;
use super::{jfr, unpack};
use crate::format::nettrace;
use crate::symbolize::Symbols;

/// A recording that was read.
#[derive(Debug)]
pub struct Imported {
    /// What was recorded.
    pub machine: ExportMachine,
    /// The names that the file tells of.
    pub symbols: Symbols,
    /// What of the file is not in the machine, a line each.
    pub left_out: Vec<String>,
}

/// A file, as a reader is given it: at its start, which is where [`Seek`] goes back to.
pub trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

/// The first bytes of a file.
#[derive(Debug)]
pub struct Begin<'a> {
    /// As they are.
    pub bytes: &'a [u8],
    /// Uncompressed, where they are of gzip; else as they are.
    pub plain: Cow<'a, [u8]>,
}

impl<'a> Begin<'a> {
    /// Of the first [`BEGIN`](super::BEGIN) bytes of a file, or all if it has fewer.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, plain: unpack::begin(bytes) }
    }
}

/// A way to read a recording.
pub trait ImportFormat: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it is, in a few words.
    fn description(&self) -> &'static str;
    /// Endings that such files usually have, with a blank between them; the first is the usual one.
    fn endings(&self) -> &'static str;
    /// What all such files begin with; nothing where they are told by how they look.
    fn signature(&self) -> &'static [u8];
    /// How one is told, for people.
    fn mark(&self) -> &'static str;
    /// Whether a file that begins so is one.
    fn begins(&self, begin: &Begin<'_>) -> bool;
    /// How many bytes one has at most: a larger one is not read. Most formats have no such limit.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }
    /// Reads the whole file into a machine that has nothing yet but perhaps a limit of what samples take of memory
    /// ([`Samples::spill_beyond`](collector_common::record::Samples::spill_beyond)), and keeps its raw events with their fields in so many
    /// bytes of memory, if it is of a format with such.
    ///
    /// # Errors
    /// When it can't be read, or is no such recording.
    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        event_bytes: u64,
    ) -> Result<Imported, ImportError>;
    /// Reads the whole file, with all samples in memory.
    ///
    /// # Errors
    /// As [`Self::import_into`].
    fn import(&self, input: &mut dyn Input) -> Result<Imported, ImportError> {
        self.import_with_events(input, 0)
    }
    /// The same, and keeps its raw events with their fields in so many bytes of memory, if it is of a format with such.
    ///
    /// # Errors
    /// As [`Self::import_into`].
    fn import_with_events(&self, input: &mut dyn Input, event_bytes: u64) -> Result<Imported, ImportError> {
        self.import_into(ExportMachine::default(), input, event_bytes)
    }
}

/// An error for a file of nothing; any other is at the same place then.
pub(super) fn not_empty(input: &mut dyn Input) -> Result<(), ImportError> {
    let start = input.stream_position()?;
    let read = input.take(1).read_to_end(&mut Vec::new())?;
    input.seek(SeekFrom::Start(start))?;
    if read > 0 { Ok(()) } else { Err(ImportError::Empty) }
}

/// Why a recording could not be read, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Reading or uncompressing failed.
    #[error("reading failed: {}; {}", .0, of_reading(.0))]
    Read(#[source] io::Error),
    /// It has no byte.
    #[error("it is empty; {EMPTY}")]
    Empty,
    /// It ends too early.
    #[error("it is cut short: {0}; {CUT}")]
    Cut(String),
    /// A limit is exceeded.
    #[error("it has more than {limit} {what}, which is the most that is read; {TOO_LARGE}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// The most that is read.
        limit: u64,
    },
    /// At one place it has more than a limit.
    #[error("{place} has more than {limit} {what}, which is the most that is read; {TOO_LARGE}")]
    TooLarge {
        /// Where, as `sample 7`.
        place: String,
        /// Of what.
        what: &'static str,
        /// The most that is read.
        limit: u64,
    },
    /// It is not what it begins as.
    #[error("not a {format}, or a damaged one: {what}; {DAMAGED}")]
    Malformed {
        /// What it should be.
        format: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// It is of a kind that is not read.
    #[error("{what}; {remedy}")]
    Unsupported {
        /// What it is.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// It is no trace.
    #[error("{}; {}", .0, .0.remedy())]
    Nettrace(#[from] nettrace::ReadError),
    /// It is no recording of a Java virtual machine's.
    #[error("{}; {}", .0, .0.remedy())]
    Jfr(#[from] jfr::events::ReadError),
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|within| within.downcast_ref()) {
            Some(&Beyond { what, limit }) => Self::TooMuch { what, limit },
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Cut(error.to_string()),
            None => Self::Read(error),
        }
    }
}
