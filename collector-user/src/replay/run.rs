//! The way of a file's records.

use std::collections::BTreeSet;
use std::env;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::SystemTime;

use collector_common::perf::file::{
    BuildIdOfFile, Feature, Features, FileEvent, FileReader, FileRecord, Ordered,
};
use collector_common::perf::{AttrFlags, OwnedRecord, ParseConfig, RecordKind};
use collector_common::record::Samples;

use super::ReplayError;
use super::events::Events;
use super::folder::{open_first, open_recording};
use super::hooked::ReplayedEvent;
use super::taking::{End, Taking};
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::modules::{Believed, RecordedFiles};
use crate::recorder::{Kept, MOST_EVENTS, Recorder, SampleHook};
use crate::recording::Recording;
use crate::spill::spill_samples;
use crate::this_machine::{has_name, is_kernel, owner, user};

/// `CLOCK_MONOTONIC` of `include/uapi/linux/time.h`.
const MONOTONIC: i32 = 1;

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
    origin: Origin,
}

/// Where a recording comes from.
#[derive(Clone, Copy)]
struct Origin {
    /// When the file was written last.
    written: SystemTime,
    /// Its owner.
    user: Option<u32>,
}

impl Origin {
    fn of(metadata: io::Result<Metadata>) -> Self {
        let metadata = metadata.ok();
        let written = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let user = metadata.as_ref().and_then(owner);
        Self { written: written.unwrap_or_else(SystemTime::now), user }
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
        Self::new(open_first(file)?, origin)
    }

    /// Opens what `perf record` or `collector run -o FILE.perf.data` has made: a file, or with `perf record --threads` a folder.
    /// Of a folder, all records are held in memory until the last one has been read.
    ///
    /// # Errors
    /// When it is none, or is not all there.
    pub fn open_path(path: &Path) -> Result<Self, ReplayError> {
        Self::new(open_recording(path)?, Origin::of(path.metadata()))
    }
}

impl<R: Read> Replay<R> {
    /// Reads a stream of `perf record -o -`.
    ///
    /// # Errors
    /// When it is none.
    pub fn stream(reader: R) -> Result<Self, ReplayError> {
        Self::new(FileReader::stream(reader)?, Origin { written: SystemTime::now(), user: None })
    }

    fn new(reader: FileReader<R>, origin: Origin) -> Result<Self, ReplayError> {
        let mut records = Ordered::new(reader);
        let mut formats = records.file().features().section(Feature::TRACING_DATA).map(<[u8]>::to_vec);
        let mut ahead = None;
        while let Some(FileRecord { raw, event, payload, config }) = records.next_record()? {
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
            origin,
        })
    }

    /// The events of the recording beside the sampling clock, in the file's order: they can be given closures and filters.
    pub fn hooks_mut(&mut self) -> &mut [ReplayedEvent] {
        &mut self.events.hooks
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
        let Self { mut records, ahead, events, sample_hooks, sample_bytes, origin, .. } = self;
        let kept = Kept { bytes: self.event_bytes, passed_over: &self.events_passed_over };
        let (features, order) = (records.file().features(), records.file().byte_order());
        let mut recorder = Recorder::of_recording(recorded_files(features, records.file().events(), origin));
        recorder.add_sample_hooks(sample_hooks);
        spill_samples(recorder.machine_mut(), sample_bytes);
        let mut taking = Taking::new(features, order, events, kept, recorder);
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
        let end = End { cut_off, is_unfinished: records.file().is_unfinished() };
        taking.finish(records.file().features(), origin.written, end)
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
mod tests {
    use std::io::Cursor;
    use std::time::UNIX_EPOCH;

    use collector_common::ids::Nanos;
    use collector_common::loss::LossCause;
    use collector_common::perf::file::FileWriter;
    use collector_common::perf::{
        Attr, ByteOrder, Bytes, Lost, LostSamples, Misc, Parsed, Record, SampleId, SampleType,
    };

    use super::*;
    use crate::replay::UNFINISHED;

    const FILES: [&[u8]; 2] = [
        include_bytes!("../../../collector-common/tests/fuzzing/seeds/perf_data/plain"),
        include_bytes!("../../../collector-common/tests/fuzzing/seeds/perf_data/packed"),
    ];
    const STREAM: &[u8] = include_bytes!("../../../collector-common/tests/fuzzing/seeds/perf_data/stream");

    /// Both ways to a recording; neither may panic.
    fn replayed(bytes: &[u8]) -> Option<Recording> {
        let of_stream = Replay::stream(bytes).ok();
        let of_file = FileReader::open(Cursor::new(bytes)).ok();
        let of_file =
            of_file.and_then(|reader| Replay::new(reader, Origin { written: UNIX_EPOCH, user: None }).ok());
        let of_stream = of_stream.map(Replay::run);
        of_file.map(Replay::run).or(of_stream)
    }

    #[test]
    fn damaged_recordings_give_what_they_have() {
        for whole in FILES.into_iter().chain([STREAM]) {
            assert!(replayed(whole).is_some());
            for at in (0..whole.len()).step_by(41) {
                replayed(&whole[..at]);
                let mut spoilt = whole.to_vec();
                spoilt[at] ^= 0xff;
                replayed(&spoilt);
                spoilt[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff);
                replayed(&spoilt);
            }
        }
    }

    /// The header says where the records are and how many bytes they have, at byte 40; what was killed has nothing behind them.
    #[test]
    fn what_was_killed_is_read_to_its_end() {
        let is_told = |recording: &Recording| recording.warnings.iter().any(|warning| warning == UNFINISHED);
        let mut delivered = 0;
        for whole in FILES {
            let [from, size] =
                [40, 48].map(|at| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize);
            let mut killed = whole[..from + size].to_vec();
            killed[48..56].fill(0);
            let (whole, killed) = (replayed(whole).unwrap(), replayed(&killed).unwrap());
            assert_eq!((is_told(&whole), is_told(&killed)), (false, true), "{:?}", killed.warnings);
            delivered += killed.ledger.delivered();
            assert_eq!(killed.ledger.delivered(), whole.ledger.delivered());
            assert_eq!(killed.machine.samples().len(), whole.machine.samples().len());
        }
        assert!(delivered > 0, "one of them has samples");
    }

    /// The header says how large the list of events is, at byte 32.
    #[test]
    fn samples_of_no_event_are_lost() {
        for whole in FILES {
            let delivered = replayed(whole).unwrap().ledger.delivered();
            let mut spoilt = whole.to_vec();
            spoilt[32..40].fill(0);
            let ledger = replayed(&spoilt).unwrap().ledger;
            assert_eq!((ledger.delivered(), ledger.lost(LossCause::Malformed)), (0, delivered));
        }
    }

    #[test]
    fn any_number_of_lost_samples_can_be_told() {
        let mut bytes = STREAM.to_vec();
        for kind in [RecordKind::LOST, RecordKind::LOST_SAMPLES] {
            for _ in 0..2 {
                // An id and a count, or a count; then room for the number of the thread and whatever else the event has.
                let body = [u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0];
                bytes.extend(kind.0.to_le_bytes());
                bytes.extend([0, 0]);
                bytes.extend((8 + size_of_val(&body) as u16).to_le_bytes());
                bytes.extend(body.iter().flat_map(|word| word.to_le_bytes()));
            }
        }
        let recording = replayed(&bytes).unwrap();
        assert_eq!(recording.ledger.lost(LossCause::RingFull), u64::MAX);
        assert_eq!(recording.ledger.produced(), u64::MAX);
    }

    #[test]
    fn causes_that_a_file_of_ours_tells() {
        let mut writer = FileWriter::new(Cursor::new(Vec::new()), ByteOrder::NATIVE).unwrap();
        let attr = Attr { sample_type: SampleType::TIME, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        let event = writer.add_event(&attr, vec![1], None).unwrap();
        let sample_id = SampleId { time: Some(Nanos(1)), ..SampleId::default() };
        for record in [Record::Lost(Lost { id: 1, count: 5 }), Record::LostSamples(LostSamples { count: 10 })]
        {
            let parsed = Parsed { misc: Misc(0), record, sample_id, rest: Bytes::default() };
            writer.write(event, &parsed).unwrap();
        }
        let losses = [("not_run", 7), ("ring_full", 1), ("of_later_versions", 2)];
        writer.features().set_losses(losses.into_iter()).unwrap();
        writer.features().set_span((Nanos(0), Nanos(2_100_000_000)));
        let bytes = writer.finish().unwrap().into_inner();
        let recording = replayed(&bytes).unwrap();
        let lost: Vec<(LossCause, u64)> = recording.ledger.causes().filter(|(_, count)| *count > 0).collect();
        let told = [(LossCause::RingFull, 1), (LossCause::NotRun, 7), (LossCause::Unaccounted, 2)];
        assert_eq!(lost, told);
        // Not the time of its only records, which is 1.
        let system = recording.machine.system();
        assert_eq!((system.start, system.end), (Nanos(0), Nanos(2_100_000_000)));
        assert_eq!(recording.stats.duration_ns, 2_100_000_000);
        let of_sideband = "5 records of new mappings and processes were lost";
        assert!(
            recording.warnings.iter().any(|warning| warning.starts_with(of_sideband)),
            "{:?}",
            recording.warnings
        );
    }
}
