//! What keeps a file from being read. Damage behind its beginning is none of it: that is told as a loss.

use std::io;

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
