//! The way of a file's records.

use std::collections::BTreeSet;
use std::env;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::SystemTime;

use collector_common::ids::Nanos;
use collector_common::perf::file::{
    BuildIdOfFile, ClockData, Feature, Features, FileEvent, FileReader, FileRecord, Ordered,
};
use collector_common::perf::{AttrFlags, OwnedRecord, ParseConfig, RecordKind};
use collector_common::record::{ClockAnchor, Samples};

use super::ReplayError;
use super::events::Events;
use super::folder::{open_first, open_recording};
use super::groups::Groups;
use super::hooked::ReplayedEvent;
use super::late::{self, BuildIds};
use super::taking::{End, Taking};
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::event_clock::{ClockReading, EventClock, EventTimes};
use crate::modules::{Believed, RecordedFiles};
use crate::recorder::{Kept, MOST_EVENTS, Recorder, SampleHook};
use crate::recording::Recording;
use crate::spill::spill_samples;
use crate::this_machine::{has_name, is_kernel, owner, user};

/// `CLOCK_MONOTONIC` of `include/uapi/linux/time.h`.
const MONOTONIC: i32 = 1;

/// `CLOCK_BOOTTIME`, from there, too.
const BOOTTIME: u32 = 7;

/// A recording that is replayed.
pub struct Replay<R> {
    records: Ordered<R>,
    /// What was read to learn the events of a stream.
    ahead: Option<Ahead>,
    events: Events,
    sample_hooks: Vec<SampleHook>,
    event_bytes: u64,
    events_passed_over: BTreeSet<String>,
    sample_bytes: u64,
    event_times: EventTimes,
    origin: Origin,
    /// Build ids that a stream tells, as far as it was read.
    told: BuildIds,
}

/// Where a recording comes from.
#[derive(Clone, Copy)]
struct Origin {
    /// When the file was written last, or by when it was.
    written: SystemTime,
    /// Whether that is about when the recording ended, as far as anyone can tell: not of what comes through a pipe.
    is_dated: bool,
    /// Its owner.
    user: Option<u32>,
}

impl Origin {
    fn of(metadata: io::Result<Metadata>) -> Self {
        let metadata = metadata.ok();
        let written = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let user = metadata.as_ref().and_then(owner);
        let is_dated = written.is_some();
        Self { written: written.unwrap_or_else(SystemTime::now), is_dated, user }
    }
}

/// A record that was read before its turn.
struct Ahead {
    record: OwnedRecord,
    event: Option<usize>,
    config: ParseConfig,
}

impl Replay<BufReader<File>> {
    /// Opens a file of `perf record` or `collector run -o FILE.perf.data`.
    ///
    /// # Errors
    /// When it is none.
    pub fn open(file: File) -> Result<Self, ReplayError> {
        let origin = Origin::of(file.metadata());
        let told = late::build_ids(&file)?;
        Ok(Self { told, ..Self::new(open_first(file)?, origin)? })
    }

    /// Opens what `perf record` or `collector run -o FILE.perf.data` has made: a file, or with `perf record --threads` a folder.
    /// Of a folder, all records are held in memory until the last one has been read.
    ///
    /// # Errors
    /// When it is none, or is not all there.
    pub fn open_path(path: &Path) -> Result<Self, ReplayError> {
        if path.is_dir() {
            return Self::new(open_recording(path)?, Origin::of(path.metadata()));
        }
        Self::open(File::open(path)?)
    }
}

impl<R: Read> Replay<R> {
    /// Reads a stream of `perf record -o -`.
    ///
    /// # Errors
    /// When it is none.
    pub fn stream(reader: R) -> Result<Self, ReplayError> {
        let origin = Origin { written: SystemTime::now(), is_dated: false, user: None };
        Self::new(FileReader::stream(reader)?, origin)
    }

    /// It is a copy that was made just now, as of what comes through a pipe: its date tells nothing of the recording.
    #[must_use]
    pub fn undated(mut self) -> Self {
        self.origin.is_dated = false;
        self
    }

    fn new(reader: FileReader<R>, origin: Origin) -> Result<Self, ReplayError> {
        let mut records = Ordered::new(reader);
        let mut formats = records.file().features().section(Feature::TRACING_DATA).map(<[u8]>::to_vec);
        let mut ahead = None;
        let mut told = BuildIds::default();
        while let Some(record) = records.next_record()? {
            late::add(&record, &mut told);
            let FileRecord { raw, event, payload, config } = record;
            if raw.kind == RecordKind::HEADER_TRACING_DATA {
                formats = Some(payload.to_vec());
            } else if raw.kind.is_of_kernel() {
                ahead = Some(Ahead { record: raw.into(), event, config });
                break;
            }
        }
        let named = records.file().events().len();
        if named > MOST_EVENTS {
            return Err(ReplayError::Events { named, most: MOST_EVENTS });
        }
        let file = records.file();
        let events = Events::of(file.events(), formats.as_deref(), file.byte_order());
        Ok(Self {
            records,
            ahead,
            events,
            sample_hooks: Vec::new(),
            event_bytes: 0,
            events_passed_over: BTreeSet::new(),
            sample_bytes: Samples::LIMIT,
            event_times: EventTimes::default(),
            origin,
            told,
        })
    }

    /// The events of the recording beside the sampling clock, in the file's order: they can be given closures and filters.
    pub fn hooks_mut(&mut self) -> &mut [ReplayedEvent] {
        &mut self.events.hooks
    }

    /// Has closures told times in a clock: as `SessionSettings::event_clock` of `session` does.
    ///
    /// # Errors
    /// When the recording does not tell what that showed. The date of a file, by which its times of day are told without, is no clock.
    pub fn set_event_clock(&mut self, clock: EventClock) -> Result<(), ReplayError> {
        let mut times = EventTimes::in_clock(clock);
        if let Some(ClockData { clockid, wall_clock: realtime, clock: monotonic }) =
            self.records.file().features().clock_data()
        {
            let boottime = (clockid == BOOTTIME).then_some(monotonic);
            let anchor = ClockAnchor { monotonic, realtime, boottime };
            times.take(ClockReading { anchor, off_by: Nanos(0) });
        }
        if !times.are_known() {
            return Err(ReplayError::NoClock { clock: times.clock() });
        }
        self.event_times = times;
        Ok(())
    }

    /// Adds a hook that sees each sample before it is recorded, and may change or drop it.
    pub fn add_sample_hook(&mut self, hook: SampleHook) {
        self.sample_hooks.push(hook);
    }

    /// Keeps raw events, too, in so many bytes of memory: as `SessionSettings::event_bytes` of `session` does.
    pub fn keep_events(&mut self, bytes: u64) {
        self.event_bytes = bytes;
    }

    /// Keeps those of some names as samples alone, whatever [`Self::keep_events`] says.
    pub fn pass_over_events(&mut self, names: BTreeSet<String>) {
        self.events_passed_over = names;
    }

    /// Keeps samples in so many bytes of memory, and those beyond them in a temporary file: see [`crate::spill`]. It is
    /// [`Samples::LIMIT`] without.
    pub fn keep_samples(&mut self, bytes: u64) {
        self.sample_bytes = bytes;
    }

    /// Takes in all records. A file that is cut off, or was never completed, gives what is there, with a warning.
    pub fn run(self) -> Recording {
        let Self { mut records, ahead, events, sample_hooks, sample_bytes, origin, told, .. } = self;
        let kept = Kept { bytes: self.event_bytes, passed_over: &self.events_passed_over };
        let (features, order) = (records.file().features(), records.file().byte_order());
        let mut recorder = Recorder::of_recording(recorded_files(features, records.file().events(), origin));
        recorder.add_sample_hooks(sample_hooks);
        recorder.set_event_times(self.event_times);
        spill_samples(recorder.machine_mut(), sample_bytes);
        let groups = Groups::of(records.file().events());
        let mut taking = Taking::new(features, order, events, groups, kept, recorder);
        for (path, id) in &told {
            taking.file_is(path, *id);
        }
        if let Some(Ahead { record, event, config }) = ahead {
            taking.record(&FileRecord { raw: record.as_raw(), event, payload: &[], config });
        }
        let mut cut_off = None;
        loop {
            match records.next_record() {
                Ok(Some(record)) => taking.record(&record),
                Ok(None) => break,
                // What was read before, and waited for what could be older, comes after it.
                Err(error) => {
                    cut_off.get_or_insert(error);
                }
            }
        }
        let file = records.file();
        let missing_features = file.missing_features().cloned();
        let out_of_order = records.out_of_order();
        let end = End { cut_off, is_unfinished: file.is_unfinished(), missing_features, out_of_order };
        taking.finish(file.features(), origin.is_dated.then_some(origin.written), &end)
    }
}

/// Where its files are looked for.
fn recorded_files(features: &Features, events: &[FileEvent], origin: Origin) -> RecordedFiles {
    let release = features.text(Feature::OSRELEASE);
    let architecture = features.text(Feature::ARCH);
    let of_this_kernel = is_kernel(release.as_deref(), architecture.as_deref());
    let mut files = RecordedFiles::new(origin.written, of_this_kernel);
    if has_name(features.text(Feature::HOSTNAME).as_deref()) {
        // Who converts it, for whom, and who recorded it.
        let caller = env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
        let users = [user(), caller, origin.user].into_iter().flatten().collect();
        let is_monotonic = |event: &FileEvent| {
            event.attr.flags.contains(AttrFlags::USE_CLOCKID) && event.attr.clockid == MONOTONIC
        };
        let has_system_clock = !events.is_empty() && events.iter().all(is_monotonic);
        files.believe(Believed { users, started: None }, has_system_clock);
    }
    #[cfg(feature = "debuginfod")]
    files.ask_servers(Servers::of_environment());
    for BuildIdOfFile { build_id, path, .. } in features.build_ids().unwrap_or_default() {
        if let Some(id) = build_id {
            files.set_build_id(path.as_bytes(), id);
        }
    }
    files
}

#[cfg(test)]
mod grouped;
#[cfg(test)]
mod tests;
