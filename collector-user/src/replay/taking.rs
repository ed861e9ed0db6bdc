//! Takes in a file's records one after the other, and puts the recording together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use collector_common::ids::{BuildId, Nanos, Tid};
use collector_common::loss::LossCause;
use collector_common::perf::file::{
    Feature, Features, FileError, FileRecord, HeaderBuildId, MissingFeatures, UserRecord,
};
use collector_common::perf::{
    ByteOrder, Callchain, CallchainDeferred, ChainContext, MappedFile, Misc, Parsed, Record, RecordKind,
    Sample, Words,
};
use collector_common::record::ClockAnchor;
use rustc_hash::FxHashMap;

use super::events::{Events, Role};
use super::groups::{Counted, Groups};
use super::hooked::Hooked;
use super::kernel::{KERNEL, KernelBuild, KernelPlace};
use super::put_off::{Held, PutOff};
#[cfg(feature = "debuginfod")]
use crate::debuginfod::Servers;
use crate::longest_name::name;
use crate::recorder::{Kept, Recorder};
use crate::recording::Recording;
use crate::records::decode::Decoder;
use crate::records::machine_registers::Machine;
use crate::spill;
use crate::stats::{NOT_WALKED, Stats};
use crate::this_machine::{kernel_symbols, own_usage};

/// So much of the recorded time passes, or so many records come, before what only older samples could need is dropped.
const PRUNE_PERIOD: u64 = 100_000_000;
const PRUNE_RECORDS: u32 = 1 << 14;

/// Cgroups whose paths are kept: processes in further ones are in none that is known.
const MOST_CGROUPS: usize = 1 << 16;

/// What is told of a file that was never completed.
pub const UNFINISHED: &str = "the recording was not finished: who made it was killed, or is still recording. What was written is read; names of events, \
     build ids and facts of the machine are not in it";

/// What is told where times of day are by the date of a file.
const BY_DATE: &str =
    "times of day are by when the file was written last: `perf record -k mono` has them recorded";

/// How a file ends.
pub(super) struct End {
    /// Why it could not be read on.
    pub(super) cut_off: Option<FileError>,
    /// Whether it was never completed.
    pub(super) is_unfinished: bool,
    /// What is not there of the features behind its records.
    pub(super) missing_features: Option<MissingFeatures>,
    /// Records that came behind younger ones.
    pub(super) out_of_order: u64,
}

impl End {
    /// What is missing, a line each.
    fn told(&self) -> Vec<String> {
        let unfinished = self.is_unfinished.then(|| UNFINISHED.to_owned());
        let cut_off = self.cut_off.as_ref().map(|error| format!("the end is missing: {error}"));
        let features = self.missing_features.as_ref().map(MissingFeatures::to_string);
        let out_of_order = (self.out_of_order > 0).then(|| {
            format!(
                "{} records are read behind younger ones: the file packs more than can be held, and does not tell how far its processors \
                 have come",
                self.out_of_order
            )
        });
        unfinished.into_iter().chain(cut_off).chain(features).chain(out_of_order).collect()
    }

    /// Whether samples may be missing that nothing tells of.
    fn is_cut(&self) -> bool {
        let counts_are_missing =
            |missing: &MissingFeatures| missing.features.contains(&Feature::COLLECTOR_LOSSES);
        self.is_unfinished
            || self.cut_off.is_some()
            || self.missing_features.as_ref().is_some_and(counts_are_missing)
    }
}

/// A recording as far as it has been taken in.
pub(super) struct Taking {
    /// By the file's events.
    roles: Vec<Option<Role>>,
    recorder: Recorder,
    hooked: Hooked,
    decoder: Decoder,
    /// `None` until that is known.
    machine: Option<Machine>,
    kernel: Option<KernelPlace>,
    /// The kernel's build id, where a record tells it.
    kernel_id: Option<BuildId>,
    /// Times of the first and the last sample.
    samples: Option<(Nanos, Nanos)>,
    /// The same of all records that have a time.
    records: Option<(Nanos, Nanos)>,
    pruned: Nanos,
    /// Records since then.
    unpruned: u32,
    /// What the file has on samples that are missing, where it was made by [`crate::session`].
    losses: Option<Vec<(String, u64)>>,
    lost_records: u64,
    lost_samples: u64,
    malformed: u64,
    /// Samples of ids that no event has.
    of_no_event: u64,
    /// What is wrong with the formats of events.
    formats: Vec<String>,
    /// Events whose formats were not read.
    without_format: u64,
    groups: Groups,
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
    pub(super) fn new(
        features: &Features,
        order: ByteOrder,
        events: Events,
        groups: Groups,
        kept: Kept<'_>,
        mut recorder: Recorder,
    ) -> Self {
        let Events { clock, hooks, roles, warnings: formats, without_format, .. } = events;
        let hooked = Hooked::new(clock, hooks, kept, &mut recorder);
        let machine = features.text(Feature::ARCH).map(|name| Machine::named(&name));
        let mut decoder = Decoder::of_recording(order);
        decoder.set_machine(machine.unwrap_or(Machine::X86_64));
        Self {
            roles,
            recorder,
            hooked,
            decoder,
            machine,
            kernel: None,
            kernel_id: None,
            samples: None,
            records: None,
            pruned: Nanos(0),
            unpruned: 0,
            losses: features.losses(),
            lost_records: 0,
            lost_samples: 0,
            malformed: 0,
            of_no_event: 0,
            formats,
            without_format,
            groups,
            put_off: PutOff::default(),
            abandoned: 0,
            cgroups: FxHashMap::default(),
            chain: Vec::new(),
        }
    }

    /// A stream tells a file's build id, or the kernel's.
    pub(super) fn file_is(&mut self, path: &[u8], id: BuildId) {
        if *path == *KERNEL {
            self.kernel_id = Some(id);
        } else if let Some(files) = self.recorder.modules_mut().recorded_mut() {
            files.set_build_id(path, id);
        }
    }

    pub(super) fn record(&mut self, record: &FileRecord<'_>) {
        if !record.raw.kind.is_of_kernel() {
            if let UserRecord::HeaderBuildId(HeaderBuildId { build_id: Some(id), path, .. }) =
                record.parse_user().record
            {
                self.file_is(&path.bytes().to_cow(), id);
            }
            return;
        }
        // Without its event nobody can tell what is where in a sample.
        if record.raw.kind == RecordKind::SAMPLE && record.event.is_none() {
            self.of_no_event += 1;
            return;
        }
        let Ok(parsed) = record.parse() else {
            self.malformed += 1;
            return;
        };
        let time = parsed.sample_id.time.filter(|time| time.0 != u64::MAX).unwrap_or(Nanos(0));
        self.prune(time);
        if time > Nanos(0) {
            extend(&mut self.records, time);
        }
        match &parsed.record {
            Record::Sample(sample) => {
                let counted = self.groups.counted(record.event, sample);
                match sample.callchain.and_then(|chain| chain.cookie()) {
                    Some(cookie) => self.put_off(record, sample, cookie, counted),
                    None => self.sample(record.event, parsed.misc, sample, &counted),
                }
            }
            // In a file of ours it tells of lost records of the sideband, which the recorder takes.
            Record::Lost(lost) if self.losses.is_none() => {
                self.lost_records = self.lost_records.saturating_add(lost.count);
            }
            Record::LostSamples(lost) => self.lost_samples = self.lost_samples.saturating_add(lost.count),
            Record::CallchainDeferred(deferred) => self.join(parsed.sample_id.tid, deferred),
            Record::Mmap(mmap) if mmap.pid.0 == u32::MAX => {
                self.kernel_at(&mmap.path.bytes().to_cow(), mmap.start.0);
            }
            Record::Mmap2(mmap) if mmap.pid.0 == u32::MAX => {
                let path = mmap.path.bytes().to_cow();
                self.kernel_at(&path, mmap.start.0);
                if let MappedFile::BuildId(Some(id)) = mmap.file
                    && path.starts_with(KERNEL)
                {
                    self.kernel_id = Some(id);
                }
            }
            Record::Cgroup(cgroup) if self.cgroups.len() < MOST_CGROUPS => {
                self.cgroups.insert(cgroup.id, name(&cgroup.path.to_string_lossy()).into());
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
    fn put_off(&mut self, record: &FileRecord<'_>, sample: &Sample<'_>, cookie: u64, counted: Counted) {
        let &FileRecord { raw, event, config, .. } = record;
        let (tid, time) = (sample.tid.unwrap_or(Tid(0)), sample.time.unwrap_or(Nanos(0)));
        let held = Held { record: raw.into(), event, config, cookie, time, counted };
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
        self.sample(held.event, misc, &Sample { callchain, ..sample }, &held.counted);
        self.chain = chain;
    }

    /// Takes in a sample that was put off, without its user part.
    fn abandon(&mut self, held: &Held) {
        if let Ok(Parsed { misc, record: Record::Sample(sample), .. }) =
            held.record.as_raw().parse(&held.config)
        {
            self.abandoned += 1;
            self.sample(held.event, misc, &sample, &held.counted);
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

    fn sample(&mut self, event: Option<usize>, misc: Misc, sample: &Sample<'_>, counted: &Counted) {
        let role_of = |event: usize| self.roles.get(event).copied().flatten();
        let Some(role) = event.and_then(role_of) else { return };
        let others: Vec<_> = counted
            .others
            .iter()
            .filter_map(|&(of, since)| {
                // What a clock counts is no ticks.
                role_of(of).filter(|role| !role.is_tick).map(|role| (role.index, since))
            })
            .collect();
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
        } else if let Some(since) = counted.own {
            record.value = since.max(1);
        } else if sample.period.is_none() {
            record.value = role.value;
        }
        self.hooked.take(&mut self.recorder, &record);
        self.hooked.take_counts(&mut self.recorder, &record, &others);
        if let (Some(path), Some(pid)) = (sample.cgroup.and_then(|id| self.cgroups.get(&id)), sample.pid) {
            self.recorder.set_cgroup(pid, time, path);
        }
        extend(&mut self.samples, time);
    }

    /// `written` is about when the recording ended, where anything tells that.
    pub(super) fn finish(
        mut self,
        features: &Features,
        written: Option<SystemTime>,
        ending: &End,
    ) -> Recording {
        while let Some(sample) = self.put_off.oldest() {
            self.abandon(&sample);
        }
        let (start, end) = self.span(features);
        let (kernel_symbols, is_other_kernel) = self.kernel_symbols(features);
        let losses = self.losses.take();
        let ledger = self.recorder.ledger_mut();
        match &losses {
            Some(losses) => {
                for (name, count) in losses {
                    ledger.lose(LossCause::named(name).unwrap_or(LossCause::Unaccounted), *count);
                }
            }
            // Records that are lost are told by those that come after them, and samples in the end once more.
            None => ledger.lose(LossCause::RingFull, self.lost_records.max(self.lost_samples)),
        }
        ledger.lose(LossCause::Malformed, self.malformed.saturating_add(self.of_no_event));
        self.describe(features, written, (start, end));
        let mut warnings = self.warnings(features, ending, kernel_symbols.is_some(), is_other_kernel);
        #[cfg(feature = "debuginfod")]
        warnings.extend(self.recorder.modules().servers().map(Servers::take_told).unwrap_or_default());
        let (mut machine, modules, ledger, tally) = self.recorder.into_parts();
        warnings.extend(modules.jit().warning(&machine));
        warnings.extend(spill::warnings(&machine));
        let stats = Stats {
            backend: "replay",
            kernel: features.text(Feature::OSRELEASE).unwrap_or_default(),
            duration_ns: end.0.saturating_sub(start.0),
            usage: own_usage(),
            ledger,
            is_cut: ending.is_cut(),
            stacks: tally.ends().collect::<BTreeMap<_, _>>(),
            frames: tally.frames(),
            ..Stats::default()
        };
        let system = machine.system_mut();
        // What was lost with the end nobody knows, so that nothing says that nothing was.
        system.lost = Some(ledger.total_lost()).filter(|lost| *lost > 0 || !stats.is_cut);
        system.account = stats.account();
        system.account.extend(ending.told());
        if features.clock_data().is_none() && system.clocks.start.is_some() {
            system.account.push(BY_DATE.to_owned());
        }
        Recording {
            machine,
            ledger,
            stats,
            warnings,
            capture_failure: None,
            journal_failure: None,
            not_captured: 0,
            modules,
            kernel_symbols,
        }
    }

    /// Where the names of the recorded kernel's functions are: with the running one, or in the copy that `perf` keeps. And whether the
    /// recorded one is known to be another than the running one.
    fn kernel_symbols(&mut self, features: &Features) -> (Option<PathBuf>, bool) {
        let ids = features.build_ids().unwrap_or_default();
        let of_kernel = |path: &str| path.as_bytes() == KERNEL;
        let id = ids.iter().find(|file| of_kernel(&file.path)).and_then(|file| file.build_id);
        let id = id.or(self.kernel_id);
        let [release, architecture] =
            [Feature::OSRELEASE, Feature::ARCH].map(|feature| features.text(feature));
        let build = KernelBuild { id, release: release.as_deref(), architecture: architecture.as_deref() };
        let may_run_here = build.may_run_here();
        let files = self.recorder.modules_mut().recorded_mut();
        let copy = files.zip(id).and_then(|(files, id)| files.copy(&id, "kallsyms"));
        let own = kernel_symbols().filter(|_| may_run_here);
        let found = self.kernel.as_ref().and_then(|place| place.find(own.into_iter().chain(copy)));
        (found, !may_run_here)
    }

    /// When the recording began and ended: as a file of ours tells, and of others with their first and last records; and with all samples
    /// that are in it.
    fn span(&self, features: &Features) -> (Nanos, Nanos) {
        let told = features.span().filter(|(begin, end)| begin <= end).or(self.records);
        let mut span = told.or(self.samples).unwrap_or((Nanos(0), Nanos(0)));
        if let Some((first, last)) = self.samples {
            span = (span.0.min(first), span.1.max(last));
        }
        span
    }

    fn describe(&mut self, features: &Features, written: Option<SystemTime>, (start, end): (Nanos, Nanos)) {
        let length = end.0.saturating_sub(start.0);
        let unix =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let anchor = match features.clock_data() {
            Some(data) => Some((data.clock, data.wall_clock)),
            // A file is whole a moment after its last record.
            None => written.map(|written| (start, unix(written).saturating_sub(length))),
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
        (system.start, system.end) = (start, end);
        system.clocks.start =
            anchor.map(|(monotonic, realtime)| ClockAnchor { monotonic, realtime, boottime: None });
    }

    fn warnings(
        &self,
        features: &Features,
        ending: &End,
        has_kernel_symbols: bool,
        is_other_kernel: bool,
    ) -> Vec<String> {
        let errors = self.hooked.errors();
        let mut warnings: Vec<String> =
            (!errors.is_empty()).then(|| errors.to_string()).into_iter().collect();
        warnings.extend(ending.told());
        warnings.extend_from_slice(&self.formats);
        let machine = self.recorder.machine();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("{count} {text}"));
            }
        };
        warn(
            self.recorder.sideband_lost(),
            "records of new mappings and processes were lost while it was recorded: some stacks may end early",
        );
        let kernel_frames = machine.frames().iter().filter(|frame| frame.is_kernel()).count() as u64;
        warn(
            if has_kernel_symbols { 0 } else { kernel_frames },
            &why_no_kernel(features.text(Feature::OSRELEASE).filter(|_| is_other_kernel)),
        );
        warn(
            self.of_no_event,
            "samples are left out, as their ids are those of no event that the file tells of",
        );
        warn(
            self.groups.of_no_event(),
            "counts that were read with samples are left out, as nothing tells which events they are of",
        );
        warn(
            self.without_format,
            "events have bytes in place of fields: their formats in the file are longer together than those of any kernel",
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
        warn(
            modules.mistaken(machine) as u64,
            "files were mapped before the stream told which builds they are, and other builds were found: stacks and names in them may be \
             wrong; write the stream to a file, and convert that",
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

/// Has a span begin and end with what is in it.
fn extend(span: &mut Option<(Nanos, Nanos)>, time: Nanos) {
    let (first, last) = span.unwrap_or((time, time));
    *span = Some((first.min(time), last.max(time)));
}

/// Why addresses in the kernel have no names, and what can be done: `release` is that of a kernel that is not the running one.
fn why_no_kernel(release: Option<String>) -> String {
    match release {
        Some(release) => format!(
            "addresses in the kernel have no names: it was recorded on another kernel ({release}) than the one that runs here; \
             convert it there, or where `perf record` has kept its symbols (~/.debug)"
        ),
        None => "addresses in the kernel have no names: it was recorded on another kernel, or before the machine was started \
                 anew; `perf record` keeps its symbols in ~/.debug where it may"
            .to_owned(),
    }
}
