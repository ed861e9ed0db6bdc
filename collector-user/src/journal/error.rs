//! Why a journal could not be replayed.

use std::io;

use thiserror::Error;

use crate::event_clock::EventClock;

/// Why a journal could not be replayed. Positions are those of its bytes, as they are read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It can't be read.
    #[error("it can't be read at byte {at}: {source}")]
    Io {
        /// Where.
        at: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// It does not begin as one.
    #[error("it is no journal: a session writes one with `SessionSettings::journal`")]
    NoJournal,
    /// It was written by another version.
    #[error(
        "it is a journal of version {version} with records of version {wire}; this one reads {own} with {own_wire} alone: record it anew"
    )]
    Version {
        /// Its version.
        version: u32,
        /// That of the records in it.
        wire: u16,
        /// [`VERSION`](super::VERSION).
        own: u32,
        /// [`collector_common::wire::VERSION`].
        own_wire: u16,
    },
    /// It ends before its end was written.
    #[error("it ends at byte {at}, in the middle: the session that wrote it was not finished, or it was cut")]
    Cut {
        /// Where.
        at: u64,
    },
    /// Something in it is not what it may be there.
    #[error("it is damaged: what begins at byte {at} is no {what}")]
    Damaged {
        /// Where that begins.
        at: u64,
        /// What should be there.
        what: &'static str,
    },
    /// It does not tell what the clock showed that closures are to be told times in.
    #[error(
        "closures can't be told times in {clock}: the journal is of before journals told what that showed; record it anew, or take \
         `EventClock::Monotonic`"
    )]
    NoClock {
        /// The clock.
        clock: EventClock,
    },
    /// It is replayed with other events than those that were recorded.
    #[error("its events are {recorded:?}, and {named:?} are to have their records: take `Journal::settings`")]
    Events {
        /// Those that were recorded.
        recorded: Vec<String>,
        /// Those of the settings.
        named: Vec<String>,
    },
}
