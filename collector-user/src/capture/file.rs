//! The file.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use collector_common::loss::Ledger;
use collector_common::perf::file::{
    BuildIdOfFile, ClockData, Feature, FileWriteError, FileWriter, SampleTimes, TracepointFormat,
    write_tracepoint_formats,
};
use collector_common::perf::{
    ByteOrder, Bytes, Comm, LostSamples, MappedFile, Misc, Mmap, Mmap2, Parsed, Record, SampleId, Text,
};
use collector_common::record::ExportMachine;

use super::attributes::{clock, dummy, event};
use super::kernel;
use super::sample::Encoder;
use crate::modules::Modules;
use crate::procfs::Identity;
use crate::recorder::Found;
use crate::source::{EventIndex, Hook, Settings, SourceRecord, Trigger};
use crate::tracefs::{Tracefs, TracefsError};

/// A recording's file, while it is made.
pub(crate) struct Capture {
    writer: FileWriter<BufWriter<File>>,
    encoder: Encoder,
    period: Nanos,
    /// By [`EventIndex`]: the event of the file; `None` for what `perf` has no records for.
    events: Vec<Option<usize>>,
    /// Records of those.
    left_out: u64,
    /// The event of the sideband.
    dummy: usize,
    times: Option<SampleTimes>,
    /// Nothing is written any more after it.
    failure: Option<FileWriteError>,
}

impl Capture {
    /// A file in `file`, which is empty. It has the sampling clock, if there is one, and the hooks' events.
    pub(crate) fn new(file: File, settings: &Settings, hooks: &[Hook]) -> Result<Self, FileWriteError> {
        let mut writer = FileWriter::new(BufWriter::with_capacity(1 << 20, file), ByteOrder::NATIVE)?;
        let mut add = |attr, name: &str| {
            let id = id_of(writer.events().len());
            writer.add_event(&attr, vec![id], Some(name.to_owned()))
        };
        let period = settings.period();
        let of_clock = settings.clock.then(|| add(clock(period.0), "cpu-clock")).transpose()?;
        let mut events = vec![of_clock];
        for hook in hooks {
            events.push(match hook.trigger.plain() {
                Trigger::Program(_) => None,
                trigger => Some(add(event(trigger), hook.event.name())?),
            });
        }
        let dummy = add(dummy(), "dummy")?;
        let mut capture = Self {
            writer,
            encoder: Encoder::default(),
            period,
            events,
            dummy,
            left_out: 0,
            times: None,
            failure: None,
        };
        capture.set_formats(hooks)?;
        capture.write_kernel();
        Ok(capture)
    }

    /// Formats of tracepoints: without them `perf` does not read the file.
    fn set_formats(&mut self, hooks: &[Hook]) -> Result<(), FileWriteError> {
        let names: Vec<_> = hooks.iter().filter_map(Hook::tracefs_name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let tracefs = Tracefs::open().map_err(io::Error::other)?;
        let formats = names.iter().map(|name| {
            let (system, _) = name.split_once(':').unwrap_or_default();
            Ok(TracepointFormat { system: system.into(), text: tracefs.format(name)? })
        });
        let formats: Vec<_> = formats.collect::<Result<_, TracefsError>>().map_err(io::Error::other)?;
        let header = |name: &str| tracefs.read(&format!("events/{name}")).unwrap_or_default();
        let (page, event) = (header("header_page"), header("header_event"));
        let section = write_tracepoint_formats(&page, &event, &formats, ByteOrder::NATIVE)?;
        self.writer.features().set_section(Feature::TRACING_DATA, section);
        Ok(())
    }

    /// Where the kernel lies: a mapping of nobody's.
    fn write_kernel(&mut self) {
        let Some((symbol, start)) = kernel::beginning() else { return };
        let name = format!("[kernel.kallsyms]{symbol}");
        let mmap = Mmap {
            pid: Pid(u32::MAX),
            tid: Tid(0),
            start: Avma(start),
            len: u64::MAX - start,
            file_offset: FileOffset(start),
            path: Text::new(name.as_bytes()),
        };
        self.write_told(Misc::KERNEL, &Record::Mmap(mmap), Nanos(0));
    }

    /// Takes a record of the sideband. One that tells of lost ones tells of others of the sideband: samples that are lost are told in
    /// the end.
    pub(crate) fn sideband(&mut self, parsed: &Parsed<'_>) {
        let sample_id = SampleId { identifier: Some(id_of(self.dummy)), ..parsed.sample_id };
        self.write(self.dummy, &Parsed { sample_id, ..*parsed });
    }

    /// Takes what was found in `/proc`.
    pub(crate) fn found(&mut self, found: Found) {
        match found {
            Found::Thread { pid, tid, name } => {
                let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                let comm = Comm { pid, tid, name: Text::new(&name[..len]) };
                self.write_told(Misc::USER, &Record::Comm(comm), Nanos(0));
            }
            Found::Mapping { pid, tid, start, end, file_offset, executable, identity, path, since } => {
                let Identity { major, minor, inode, generation } = identity;
                let protection = if executable { libc::PROT_READ | libc::PROT_EXEC } else { libc::PROT_READ };
                let mmap = Mmap2 {
                    pid,
                    tid,
                    start,
                    len: end.0.saturating_sub(start.0),
                    file_offset,
                    file: MappedFile::Inode { major, minor, inode, generation },
                    protection: protection as u32,
                    flags: libc::MAP_PRIVATE as u32,
                    path: Text::new(&*path),
                };
                self.write_told(Misc::USER, &Record::Mmap2(mmap), since);
            }
        }
    }

    /// Takes a sample, or another occurrence of an event.
    pub(crate) fn sample(&mut self, record: &SourceRecord<'_>) {
        let Some(event) = self.events.get(usize::from(record.event.0)).copied().flatten() else {
            self.left_out += 1;
            return;
        };
        let time = Nanos(record.header.time);
        let times = self.times.get_or_insert(SampleTimes { first: time, last: time });
        (times.first, times.last) = (times.first.min(time), times.last.max(time));
        let tick = (record.event == EventIndex::CLOCK).then_some(self.period);
        let id = id_of(event);
        let mut encoder = std::mem::take(&mut self.encoder);
        self.write(event, &encoder.encode(record, id, tick));
        self.encoder = encoder;
    }

    /// Records that are not in the file.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// All rings were drained.
    pub(crate) fn finish_round(&mut self) {
        let result = if self.failure.is_none() { self.writer.finish_round() } else { Ok(()) };
        self.note(result);
    }

    /// Puts the file together. What the ledger has as lost is missing in it: `perf` knows the sum alone.
    pub(crate) fn finish(
        mut self,
        machine: &ExportMachine,
        modules: &Modules,
        ledger: &Ledger,
    ) -> Result<(), FileWriteError> {
        let count = ledger.total_lost();
        if count > 0 {
            self.write_told(Misc(0), &Record::LostSamples(LostSamples { count }), Nanos(0));
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let features = self.writer.features();
        let system = machine.system();
        let version = concat!("collector ", env!("CARGO_PKG_VERSION"));
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        for (feature, text) in [
            (Feature::HOSTNAME, system.host.as_str()),
            (Feature::OSRELEASE, &kernel),
            (Feature::VERSION, version),
            (Feature::ARCH, &system.architecture),
        ] {
            features.set_text(feature, text)?;
        }
        features.set_cpus(system.cpus, system.cpus);
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        features.set_command_line(&words)?;
        if let Some(anchor) = system.clocks.start {
            features.set_clock_data(ClockData {
                clockid: libc::CLOCK_MONOTONIC as u32,
                wall_clock: anchor.realtime,
                clock: anchor.monotonic,
            });
        }
        if let Some(times) = self.times {
            features.set_sample_times(times);
        }
        features.set_span((system.start, system.end));
        features.set_losses(ledger.causes().map(|(cause, count)| (cause.name(), count)))?;
        features.set_build_ids(&build_ids(machine, modules))?;
        self.writer.finish()?.flush()?;
        Ok(())
    }

    /// Writes what no record tells.
    fn write_told(&mut self, misc: Misc, record: &Record<'_>, time: Nanos) {
        let (pid, tid, cpu) = (Some(Pid(0)), Some(Tid(0)), Some(0));
        let identifier = Some(id_of(self.dummy));
        let sample_id = SampleId { pid, tid, time: Some(time), cpu, identifier, ..SampleId::default() };
        self.write(self.dummy, &Parsed { misc, record: *record, sample_id, rest: Bytes::default() });
    }

    fn write(&mut self, event: usize, parsed: &Parsed<'_>) {
        if self.failure.is_none() {
            let result = self.writer.write(event, parsed);
            self.note(result);
        }
    }

    fn note(&mut self, result: Result<(), FileWriteError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

/// Each event has one.
fn id_of(event: usize) -> u64 {
    event as u64 + 1
}

/// The build ids of all files, and the kernel's.
fn build_ids(machine: &ExportMachine, modules: &Modules) -> Vec<BuildIdOfFile> {
    let of_nobody = Pid(u32::MAX);
    let of_kernel = kernel::build_id().map(|id| BuildIdOfFile {
        misc: Misc::KERNEL,
        pid: of_nobody,
        build_id: Some(id),
        path: "[kernel.kallsyms]".to_owned(),
    });
    let of_files = modules.build_ids(machine).map(|(path, id)| BuildIdOfFile {
        misc: Misc::USER,
        pid: of_nobody,
        build_id: Some(id),
        path: path.to_owned(),
    });
    of_kernel.into_iter().chain(of_files).collect()
}
