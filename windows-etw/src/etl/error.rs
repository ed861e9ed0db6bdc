//! What keeps a file from being read, and what to do about it. Damage behind its beginning is none of it: that is told as a loss.

use std::io;

use collector_common::remedy;
use thiserror::Error;

/// A file can't be read as an `.etl` file.
#[derive(Debug, Error)]
pub enum EtlError {
    /// The file could not be read.
    #[error("the .etl file can't be read at byte {at}: {source}")]
    Io {
        /// Where.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// It has no byte.
    #[error("the .etl file is empty")]
    Empty,
    /// It ends within its first buffer, before the record of the trace is whole.
    #[error(
        "the .etl file is cut short: it ends at byte {at}, in its first buffer, at least {missing} bytes too early"
    )]
    Cut {
        /// Where it ends.
        at: u64,
        /// Bytes that its first buffer, or the header of it, lacks.
        missing: u64,
    },
    /// It is none, or its beginning is damaged.
    #[error("it is not an .etl file, or its beginning is damaged: at byte {at}, {why}")]
    NotEtl {
        /// Where.
        at: u64,
        /// What there should be.
        why: &'static str,
    },
    /// What was read before is no longer there.
    #[error("the .etl file changed while it was read")]
    Changed,
    /// So many buffers are of one time that they had to be read again and again.
    #[error("the buffers of the .etl file overlap in time more than {memory} bytes of memory allow for")]
    Overlapping {
        /// Bytes of buffers that may be in memory.
        memory: usize,
    },
}

impl EtlError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => remedy::of_reading(source),
            Self::Empty => remedy::EMPTY,
            Self::Cut { .. } => remedy::CUT,
            Self::NotEtl { .. } => remedy::DAMAGED,
            Self::Changed => "read it once its session has ended: `logman query -ets` lists those that go on",
            Self::Overlapping { .. } => remedy::TOO_LARGE,
        }
    }
}
