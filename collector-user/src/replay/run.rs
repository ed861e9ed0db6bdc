//! The way of a file's records.

use std::collections::BTreeMap;
use std::env;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collector_common::ids::{Nanos, Tid};
use collector_common::loss::LossCause;
use collector_common::perf::file::{
    BuildIdOfFile, Feature, Features, FileError, FileEvent, FileReader, FileRecord, Ordered,
};
use collector_common::perf::{
    AttrFlags, Callchain, CallchainDeferred, ChainContext, Misc, OwnedRecord, ParseConfig, Parsed, Record,
    RecordKind, Sample, Words,
};
use collector_common::record::ClockAnchor;
use rustc_hash::FxHashMap;
use rustix::process::geteuid;
use rustix::time::ClockId;

use super::ReplayError;
use super::events::{Events, Role};
use super::folder::{open_first, open_recording};
use super::kernel::KernelPlace;
use super::put_off::{Held, PutOff};
use crate::kernel::KALLSYMS;
use crate::modules::{Believed, RecordedFiles};
use crate::recorder::{Recorder, SampleHook};
use crate::session::Recording;
use crate::session::dispatch::{Dispatch, MOST_EVENTS};
use crate::source::perf::decode::Decoder;
use crate::source::perf::machine_registers::Machine;
use crate::source::{Hook, Settings};
use crate::stats::{NOT_WALKED, Stats};
use crate::sys::usage::own_usage;

/// So much of the recorded time passes, or so many records come, before what only older samples could need is dropped.
const PRUNE_PERIOD: u64 = 100_000_000;
const PRUNE_RECORDS: u32 = 1 << 14;

/// Cgroups whose paths are kept: processes in further ones are in none that is known.
const MOST_CGROUPS: usize = 1 << 16;

/// A recording that is replayed.
pub struct Replay<R> {
    records: Ordered<R>,
    /// What was read to learn the events of a stream.
    ahead: Option<Ahead>,
    events: Events,
    sample_hooks: Vec<SampleHook>,
    event_bytes: u64,
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
        let user = metadata.as_ref().map(MetadataExt::uid);
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
        Ok(Self { records, ahead, events, sample_hooks: Vec::new(), event_bytes: 0, origin })
    }

    /// The events of the recording beside the sampling clock, in the file's order: they can be given closures and filters.
    pub fn hooks_mut(&mut self) -> &mut [Hook] {
        &mut self.events.hooks
    }

    /// Adds a hook that sees each sample before it is recorded, and may change or drop it.
    pub fn add_sample_hook(&mut self, hook: SampleHook) {
        self.sample_hooks.push(hook);
    }

    /// Keeps raw events, too, in so many bytes of memory: see [`SessionSettings::event_bytes`](crate::session::SessionSettings::event_bytes).
    pub fn keep_events(&mut self, bytes: u64) {
        self.event_bytes = bytes;
    }

    /// Takes in all records. A file that is cut off gives what is before that, with a warning.
    pub fn run(self) -> Recording {
        let Self { mut records, ahead, events, sample_hooks, event_bytes, origin } = self;
        let features = records.file().features();
        let mut recorder = Recorder::of_recording(recorded_files(features, records.file().events(), origin));
        recorder.add_sample_hooks(sample_hooks);
        let dispatch =
            Dispatch::new(events.clock, &Settings::default(), events.hooks, event_bytes, &mut recorder);
        let mut taking = Taking {
            roles: events.roles,
            recorder,
            dispatch,
            decoder: Decoder::of_recording(records.file().byte_order()),
            machine: features.text(Feature::ARCH).map(|name| Machine::named(&name)),
            kernel: None,
            first: None,
            last: Nanos(0),
            pruned: Nanos(0),
            unpruned: 0,
            lost_records: 0,
            lost_samples: 0,
            malformed: 0,
            put_off: PutOff::default(),
            abandoned: 0,
            cgroups: FxHashMap::default(),
            chain: Vec::new(),
        };
        taking.decoder.set_machine(taking.machine.unwrap_or(Machine::X86_64));
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
        taking.finish(records.file().features(), origin.written, cut_off)
    }
}

/// Where its files are looked for.
fn recorded_files(features: &Features, events: &[FileEvent], origin: Origin) -> RecordedFiles {
    let release = features.text(Feature::OSRELEASE);
    let architecture = features.text(Feature::ARCH);
    let own = rustix::system::uname();
    let is_own = |told: Option<String>, own: &CStr| told.is_none_or(|told| told.as_bytes() == own.to_bytes());
    let of_this_kernel = is_own(release, own.release()) && is_own(architecture, own.machine());
    let mut files = RecordedFiles::new(origin.written, of_this_kernel);
    if is_own(features.text(Feature::HOSTNAME), own.nodename()) {
        // Who converts it, for whom, and who recorded it.
        let caller = env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
        let users = [Some(geteuid().as_raw()), caller, origin.user].into_iter().flatten().collect();
        let is_monotonic = |event: &FileEvent| {
            event.attr.flags.contains(AttrFlags::USE_CLOCKID)
                && event.attr.clockid == ClockId::Monotonic as i32
        };
        let has_system_clock = !events.is_empty() && events.iter().all(is_monotonic);
        files.believe(Believed { users, started: None }, has_system_clock);
    }
    for BuildIdOfFile { build_id, path, .. } in features.build_ids().unwrap_or_default() {
        if let Some(id) = build_id {
            files.set_build_id(path.as_bytes(), id);
        }
    }
    files
}

/// A recording as far as it has been taken in.
struct Taking {
    /// By the file's events.
    roles: Vec<Option<Role>>,
    recorder: Recorder,
    dispatch: Dispatch,
    decoder: Decoder,
    /// `None` until that is known.
    machine: Option<Machine>,
    kernel: Option<KernelPlace>,
    /// Times of the samples.
    first: Option<Nanos>,
    last: Nanos,
    pruned: Nanos,
    /// Records since then.
    unpruned: u32,
    lost_records: u64,
    lost_samples: u64,
    malformed: u64,
    /// Samples whose user part comes in a record of its own.
    put_off: PutOff,
    /// Those for which it never came.
    abandoned: u64,
    /// Paths of cgroups by their ids.
    cgroups: FxHashMap<u64, Box<str>>,
    /// Addresses of the stack in hand; kept for its memory.
    chain: Vec<u64>,
}

impl Taking {
    fn record(&mut self, record: &FileRecord<'_>) {
        if !record.raw.kind.is_of_kernel() {
            return;
        }
        let Ok(parsed) = record.parse() else {
            self.malformed += 1;
            return;
        };
        let time = parsed.sample_id.time.filter(|time| time.0 != u64::MAX).unwrap_or(Nanos(0));
        self.prune(time);
        match &parsed.record {
            Record::Sample(sample) => match sample.callchain.and_then(|chain| chain.cookie()) {
                Some(cookie) => self.put_off(record, sample, cookie),
                None => self.sample(record.event, parsed.misc, sample),
            },
            Record::Lost(lost) => self.lost_records = self.lost_records.saturating_add(lost.count),
            Record::LostSamples(lost) => self.lost_samples = self.lost_samples.saturating_add(lost.count),
            Record::CallchainDeferred(deferred) => self.join(parsed.sample_id.tid, deferred),
            Record::Mmap(mmap) if mmap.pid.0 == u32::MAX => {
                self.kernel_at(&mmap.path.bytes().to_cow(), mmap.start.0);
            }
            Record::Mmap2(mmap) if mmap.pid.0 == u32::MAX => {
                self.kernel_at(&mmap.path.bytes().to_cow(), mmap.start.0);
            }
            Record::Cgroup(cgroup) if self.cgroups.len() < MOST_CGROUPS => {
                self.cgroups.insert(cgroup.id, cgroup.path.to_string_lossy().into());
            }
            other => {
                if let Record::Exit(task) = other {
                    for sample in self.put_off.take(task.tid) {
                        self.abandon(&sample);
                    }
                }
                self.recorder.apply(&parsed, time);
            }
        }
    }

    /// Keeps a sample until its user part comes.
    fn put_off(&mut self, record: &FileRecord<'_>, sample: &Sample<'_>, cookie: u64) {
        let &FileRecord { raw, event, config, .. } = record;
        let (tid, time) = (sample.tid.unwrap_or(Tid(0)), sample.time.unwrap_or(Nanos(0)));
        let held = Held { record: raw.into(), event, config, cookie, time };
        if let Some(oldest) = self.put_off.hold(tid, held) {
            self.abandon(&oldest);
        }
    }

    /// The thread goes back to user code: its samples have all that they will have. It may be others that asked for its stack.
    fn join(&mut self, tid: Option<Tid>, deferred: &CallchainDeferred<'_>) {
        let left = tid.map(|tid| self.put_off.take(tid));
        for sample in left.into_iter().flatten() {
            if sample.cookie == deferred.cookie {
                self.take_in(&sample, deferred.callchain);
            } else {
                self.abandon(&sample);
            }
        }
    }

    /// Takes in a sample that was put off, with its user part in the place of the mark and the number.
    fn take_in(&mut self, held: &Held, user: Callchain<'_>) {
        let Ok(Parsed { misc, record: Record::Sample(sample), .. }) =
            held.record.as_raw().parse(&held.config)
        else {
            return;
        };
        let mut chain = std::mem::take(&mut self.chain);
        let own = sample.callchain.unwrap_or_default().words;
        chain.clear();
        chain.extend(own.iter().take(own.len().saturating_sub(2)));
        chain.push(ChainContext::USER.0);
        chain.extend(user.words.iter());
        let callchain = Some(Callchain::from(Words::from(chain.as_slice())));
        self.sample(held.event, misc, &Sample { callchain, ..sample });
        self.chain = chain;
    }

    /// Takes in a sample that was put off, without its user part.
    fn abandon(&mut self, held: &Held) {
        if let Ok(Parsed { misc, record: Record::Sample(sample), .. }) =
            held.record.as_raw().parse(&held.config)
        {
            self.abandoned += 1;
            self.sample(held.event, misc, &sample);
        }
    }

    /// Records come in the order of their times, but for those that have none.
    fn prune(&mut self, time: Nanos) {
        self.unpruned += 1;
        if time.0.saturating_sub(self.pruned.0) >= PRUNE_PERIOD || self.unpruned >= PRUNE_RECORDS {
            self.pruned = self.pruned.max(time);
            self.unpruned = 0;
            let needed = self.put_off.since().unwrap_or(self.pruned);
            self.recorder.prune(self.pruned.min(needed));
        }
    }

    fn kernel_at(&mut self, path: &[u8], start: u64) {
        self.kernel = self.kernel.take().or_else(|| KernelPlace::of(path, start));
    }

    fn sample(&mut self, event: Option<usize>, misc: Misc, sample: &Sample<'_>) {
        let Some(role) = event.and_then(|event| self.roles.get(event).copied().flatten()) else { return };
        if self.machine.is_none() {
            self.machine = self.recorder.modules().elf_machine().map(Machine::of_elf);
            self.decoder.set_machine(self.machine.unwrap_or(Machine::X86_64));
        }
        let Some(mut record) = self.decoder.decode(role.index, misc, sample) else {
            self.malformed += 1;
            return;
        };
        let time = Nanos(record.header.time);
        if role.is_tick {
            record.value = 1;
        } else if sample.period.is_none() {
            record.value = role.value;
        }
        self.dispatch.take(&mut self.recorder, &record);
        if let (Some(path), Some(pid)) = (sample.cgroup.and_then(|id| self.cgroups.get(&id)), sample.pid) {
            self.recorder.set_cgroup(pid, time, path);
        }
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
    }

    fn finish(mut self, features: &Features, written: SystemTime, cut_off: Option<FileError>) -> Recording {
        while let Some(sample) = self.put_off.oldest() {
            self.abandon(&sample);
        }
        let start = self.first.unwrap_or(self.last);
        let kernel_symbols = self.kernel_symbols(features);
        // Records that are lost are told by those that come after them, and samples in the end once more.
        let lost = self.lost_records.max(self.lost_samples);
        let ledger = self.recorder.ledger_mut();
        ledger.lose(LossCause::RingFull, lost);
        ledger.lose(LossCause::Malformed, self.malformed);
        self.describe(features, written, start);
        let mut warnings = self.warnings(features, cut_off, kernel_symbols.is_some());
        let (mut machine, modules, ledger, tally) = self.recorder.into_parts();
        warnings.extend(modules.jit().warning(&machine));
        let stats = Stats {
            backend: "replay",
            kernel: features.text(Feature::OSRELEASE).unwrap_or_default(),
            duration_ns: self.last.0.saturating_sub(start.0),
            usage: own_usage(),
            ledger,
            stacks: tally.ends().collect::<BTreeMap<_, _>>(),
            frames: tally.frames(),
            ..Stats::default()
        };
        machine.system_mut().lost = ledger.total_lost();
        machine.system_mut().account = stats.account();
        Recording { machine, ledger, stats, warnings, capture_failure: None, modules, kernel_symbols }
    }

    /// Where the names of the recorded kernel's functions are: with the running one, or in the copy that `perf` keeps.
    fn kernel_symbols(&mut self, features: &Features) -> Option<std::path::PathBuf> {
        let place = self.kernel.as_ref()?;
        let ids = features.build_ids().unwrap_or_default();
        let id = ids.iter().find(|file| file.path == "[kernel.kallsyms]").and_then(|file| file.build_id);
        let files = self.recorder.modules_mut().recorded_mut();
        let copy = files.zip(id).and_then(|(files, id)| files.copy(&id, "kallsyms"));
        place.find([KALLSYMS.into()].into_iter().chain(copy))
    }

    fn describe(&mut self, features: &Features, written: SystemTime, start: Nanos) {
        let length = Duration::from_nanos(self.last.0.saturating_sub(start.0));
        let unix =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let (monotonic, realtime) = match features.clock_data() {
            Some(data) => (data.clock, data.wall_clock),
            // A file is whole a moment after its last sample.
            None => (start, unix(written.checked_sub(length).unwrap_or(written))),
        };
        let text = |feature| features.text(feature).unwrap_or_default();
        let system = self.recorder.machine_mut().system_mut();
        system.host = text(Feature::HOSTNAME);
        // The file tells the release alone.
        system.kernel =
            features.text(Feature::OSRELEASE).map_or_else(String::new, |release| format!("Linux {release}"));
        system.architecture = text(Feature::ARCH);
        system.processor = text(Feature::CPUDESC);
        system.memory = features.total_memory().unwrap_or_default().saturating_mul(1 << 10);
        system.cpus = features.cpus().map_or(0, |(_, online)| online);
        system.command = features.command_line().unwrap_or_default().join(" ");
        (system.start, system.end) = (start, self.last);
        system.clocks.start = Some(ClockAnchor { monotonic, realtime, boottime: None });
    }

    fn warnings(
        &self,
        features: &Features,
        cut_off: Option<FileError>,
        has_kernel_symbols: bool,
    ) -> Vec<String> {
        let errors = self.dispatch.errors();
        let mut warnings: Vec<String> =
            (!errors.is_empty()).then(|| errors.to_string()).into_iter().collect();
        warnings.extend(cut_off.map(|error| format!("the end is missing: {error}")));
        let machine = self.recorder.machine();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("{count} {text}"));
            }
        };
        let kernel_frames = machine.frames().iter().filter(|frame| frame.is_kernel()).count() as u64;
        warn(
            if has_kernel_symbols { 0 } else { kernel_frames },
            "addresses in the kernel have no names: it was recorded on another kernel, or before the machine was started \
             anew; `perf record` keeps its symbols in ~/.debug where it may",
        );
        let not_walked = self.recorder.tally().count_of(NOT_WALKED);
        warn(not_walked.saturating_sub(self.abandoned), &self.why_not_walked(features));
        warn(
            self.abandoned,
            "stacks end in the kernel, as their threads did not come back to user code while they were recorded, or what was \
             recorded then was lost",
        );
        let modules = self.recorder.modules();
        let changed = modules.changed(machine);
        warn(
            changed as u64,
            "recorded files are not there any more as they were: stacks and names in them are incomplete",
        );
        let absent = modules.unreadable(machine).saturating_sub(changed);
        warn(
            absent as u64,
            "recorded files could not be opened: stacks and names in them are incomplete; `perf buildid-cache --add` \
             keeps copies",
        );
        warnings
    }

    /// Why stacks that were copied were not walked, and what can be done.
    fn why_not_walked(&self, features: &Features) -> String {
        let name = features.text(Feature::ARCH).unwrap_or_else(|| "another architecture".to_owned());
        match self.machine {
            Some(Machine::Other) => format!(
                "stacks were copied on {name} and end where they were interrupted, as only those of x86_64 and aarch64 are \
                 walked: let the kernel walk them (`perf record --call-graph fp`), or convert with `perf script` there"
            ),
            _ => "stacks were copied without the registers that a walk begins with, or are of 32-bit programs of aarch64, and \
                  end where they were interrupted: record without `--user-regs`, or let the kernel walk them (`perf record \
                  --call-graph fp`)"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

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
}
