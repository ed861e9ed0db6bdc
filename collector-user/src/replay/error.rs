//! Why a recording could not be replayed.

use collector_common::perf::file::FileError;
use collector_common::remedy::of_reading;
use thiserror::Error;

use crate::event_clock::EventClock;

/// Why a recording could not be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is no perf.data, or its beginning is damaged.
    #[error("{}; {}", .0, .0.remedy())]
    File(#[from] FileError),
    /// It can't be opened.
    #[error("it can't be read: {}; {}", .0, of_reading(.0))]
    Io(#[from] std::io::Error),
    /// It is the first file of a folder that `perf record --threads` has made: the records are in the others.
    #[error("it is one file of a folder that `perf record --threads` has made: name the folder")]
    PartOfFolder,
    /// It is a folder that is none of `perf record`'s.
    #[error(
        "it is a folder without a file `{missing}`, which a recording of `perf record --threads` has: name such a folder, whole, \
         or a file"
    )]
    Folder {
        /// What it lacks.
        missing: &'static str,
    },
    /// It does not tell what the clock showed that closures are to be told times in.
    #[error(
        "closures can't be told times in {clock}: the recording does not tell what that showed (`perf record -k mono` has the time of day \
         recorded, `-k boottime`, which is for events of software alone, the time since boot, too); record it anew, or take `EventClock::Monotonic`"
    )]
    NoClock {
        /// The clock.
        clock: EventClock,
    },
    /// More events than a recording has kinds of sample for.
    #[error(
        "it has {named} events, and {most} are the most that can be taken in at once; record fewer at once"
    )]
    Events {
        /// How many there are.
        named: usize,
        /// How many there may be.
        most: usize,
    },
}
