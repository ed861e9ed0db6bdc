//! What a session is asked for, and what it tells while it runs and when it ends.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::open::Backend;
use crate::event_clock::EventClock;
use crate::recorder::SampleHook;
use crate::source::{Hook, Settings, Source};

/// What and how long to record.
#[derive(Default)]
pub struct SessionSettings {
    /// How to sample, and whom.
    pub sampling: Settings,
    /// Ends the recording after this time; without it a stop, the command's end or the recorded processes' end
    /// does.
    pub duration: Option<Duration>,
    /// Events that are recorded, or handed to closures, beside the sampling clock.
    pub events: Vec<Hook>,
    /// The clock that closures of [`Self::events`] are told times in. The recording itself, [`Self::capture`] and [`Self::journal`] have
    /// those of `CLOCK_MONOTONIC`.
    ///
    /// ```
    /// use collector_user::session::{EventClock, SessionSettings};
    ///
    /// // `data.context()` has nanoseconds since 1970 as its time.
    /// let settings = SessionSettings { event_clock: EventClock::Realtime, ..SessionSettings::default() };
    /// # assert!(settings.events.is_empty());
    /// ```
    pub event_clock: EventClock,
    /// See each sample before it is recorded, and may change or drop it. What they drop or change is in [`Self::capture`] all the same,
    /// as it was.
    pub sample_hooks: Vec<SampleHook>,
    /// Sources of the embedder's own, whose records are events of [`Self::events`] with [`Trigger::OwnSource`].
    ///
    /// [`Trigger::OwnSource`]: crate::source::Trigger::OwnSource
    pub sources: Vec<Box<dyn Source>>,
    /// What records.
    pub backend: Backend,
    /// The most bytes of memory for raw events: occurrences of [`Self::events`] with stacks are kept with the bytes of their fields,
    /// beside their samples. Those for which there is no room are lost, counted as `events_full`. 0 keeps samples alone.
    pub event_bytes: u64,
    /// Names of those of [`Self::events`] that are kept as samples alone, whatever [`Self::event_bytes`] says.
    pub events_passed_over: BTreeSet<String>,
    /// The most bytes of memory for samples, beyond which they go into a temporary file: see [`crate::spill`]. `None` is
    /// [`Samples::LIMIT`].
    ///
    /// [`Samples::LIMIT`]: collector_common::record::Samples::LIMIT
    pub sample_bytes: Option<u64>,
    /// An empty file that gets everything that is recorded, as a `perf.data`: see [`crate::replay`].
    pub capture: Option<File>,
    /// An empty file that gets everything that the session is told, so that the same recording can be made of it without a kernel and
    /// without rights: see [`crate::journal`]. Events of [`Self::sources`], of maps and of functions of the kernel can't be in one.
    pub journal: Option<File>,
    /// When the program was started, for the figure of the time to the first sample.
    pub started: Option<Instant>,
}

/// How a recording is going.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the sampling started.
    pub elapsed: Duration,
    /// Samples delivered so far.
    pub samples: u64,
    /// Samples lost so far.
    pub lost: u64,
    /// Why samples that should be in a temporary file stay in memory, which grows with them: it can't be written.
    pub unwritten: Option<io::ErrorKind>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The time was over.
    Duration,
    /// A stop was asked for.
    Stopped,
    /// The command ended.
    Command(ExitStatus),
    /// All processes that were to be recorded ended.
    Processes,
}
