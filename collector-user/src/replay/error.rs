//! Why a recording could not be replayed.

use collector_common::perf::file::FileError;
use thiserror::Error;

/// Why a recording could not be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is no perf.data, or its beginning is damaged.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is the first file of a folder that `perf record --threads` has made: the records are in the others.
    #[error(
        "its records are in other files of its folder: record without `--threads`, or use `perf script` on the folder"
    )]
    Folder,
    /// More events than a recording has kinds of sample for.
    #[error("it has {named} events, and {most} are the most that can be taken in at once")]
    Events {
        /// How many there are.
        named: usize,
        /// How many there may be.
        most: usize,
    },
}
