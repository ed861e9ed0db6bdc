//! A [`Profile`] in, a compressed processed profile out.
//!
//! Times are from the first thing that is told of, which has its time of day. A process's threads have its start and end: their
//! own are not recorded. A main thread is called after its process, as the format has it; another has the last of its names,
//! with a marker wherever it was sampled under a new one. The attributes and the CPU of samples in the call tree have no place.
//! Addresses of allocations are not recorded: numbers stand for them, so that none seems to be freed.
//!
//! The account of losses, and what else is told of the recording as a whole, are markers at its start; what is told of a process beside
//! its name are markers at the start of its first thread.
//!
//! What is shown lasts from the first sample to the last. The first thread has two more, without a stack and a weight, so that
//! this is all of the recording's time, and there is a thread even if nothing was recorded, without which nothing is shown.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::intern::{StackId, StringId};
use collector_common::record::{ExportMachine, ProcessId, Sample};
use flate2::Compression;
use flate2::write::GzEncoder;
use fxprof_processed_profile::{
    self as fxprof, CounterHandle, CpuDelta, FrameHandle, MarkerTiming, ProcessHandle, ReferenceTimestamp,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};

use super::frames::Frames;
use super::markers::{Markers, Renamed, Told};
use super::roles::{Role, Sampling};
use super::tracks::{Track, TrackSample, Tracks};
use crate::format::account::account;
use crate::format::duration::duration;
use crate::format::facts::facts;
use crate::format::{ExportFormat, Profile};
use crate::table::Table;

/// Bytes that are collected before they are compressed.
const PIECE: usize = 64 << 10;

/// The format of Firefox Profiler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Firefox;

impl ExportFormat for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn ending(&self) -> &'static str {
        ".firefox.json.gz"
    }

    fn description(&self) -> &'static str {
        "threads with samples, allocations and markers in time, for Firefox Profiler"
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let written = Writer::new(profile).profile();
        let mut out = BufWriter::with_capacity(PIECE, GzEncoder::new(out, Compression::fast()));
        serde_json::to_writer(&mut out, &written)?;
        let compressed = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        compressed.finish()?.flush()
    }
}

struct Writer<'a> {
    machine: &'a ExportMachine,
    out: fxprof::Profile,
    roles: Vec<Role>,
    frames: Frames,
    markers: Markers,
    /// What times are counted from.
    origin: Nanos,
    allocations: u64,
}

impl<'a> Writer<'a> {
    fn new(profile: Profile<'a>) -> Self {
        let machine = profile.machine;
        let system = machine.system();
        let roles = Role::of_kinds(machine);
        let origin = origin(machine);
        let since_1970 = Duration::from_nanos(system.clocks.unix_at(origin).unwrap_or(0));
        let period = roles.iter().find_map(|role| match role {
            Role::Sampled(Sampling { period, .. }) if *period > 0 => Some(*period),
            _ => None,
        });
        let mut out = fxprof::Profile::new(
            &title(machine),
            ReferenceTimestamp::from_duration_since_unix_epoch(since_1970),
            SamplingInterval::from_nanos(period.unwrap_or(1_000_000)),
        );
        out.set_os_name(format!("{} {}", system.kernel, system.architecture).trim());
        // What has no name yet has one nowhere else: a symbol server must not be asked on opening.
        out.set_symbolicated(true);
        let frames = Frames::of(profile, &mut out);
        Self { machine, out, roles, frames, markers: Markers::default(), origin, allocations: 0 }
    }

    fn profile(mut self) -> fxprof::Profile {
        let tracks = Tracks::of(self.machine);
        let samples = tracks.samples(self.machine, &self.roles);
        let mut process: Option<(ProcessId, ProcessHandle)> = None;
        let mut first = None;
        for samples in samples.chunk_by(|a, b| a.track == b.track) {
            let Some(track) = tracks.get(samples[0].track) else { continue };
            let known = process.filter(|(id, _)| *id == track.process);
            let handle = known.map_or_else(|| self.add_process(track.process), |(_, handle)| handle);
            process = Some((track.process, handle));
            let thread = self.add_track(&tracks, track, handle, samples);
            if known.is_none() {
                let start = self.timestamp(self.machine.process(track.process).start.max(self.origin));
                self.note(thread, start, "process", facts(self.machine, track.process));
            }
            first.get_or_insert(thread);
        }
        self.add_edges(first);
        self.out
    }

    fn add_edges(&mut self, first: Option<ThreadHandle>) {
        let [start, end] = [self.origin, end(self.machine)].map(|time| self.timestamp(time));
        let thread = first.unwrap_or_else(|| {
            let process = self.out.add_process("nothing recorded", 0, start);
            self.out.add_thread(process, 0, start, true)
        });
        for time in [start, end] {
            self.out.add_sample(thread, time, None, CpuDelta::ZERO, 0);
        }
        self.tell(thread, start);
    }

    /// Tells of the recording as a whole, for which the format has no place: a marker a line.
    fn tell(&mut self, thread: ThreadHandle, start: Timestamp) {
        let machine = self.machine;
        let mut lines = account(machine);
        for (kind, role) in machine.kinds().iter().zip(&self.roles) {
            if let Role::Sampled(Sampling { divisor, is_time: false, .. }) = role
                && *divisor > 1
            {
                lines.push(format!("1 of the weight of {} is {divisor}", machine.string(kind.name)));
            }
        }
        self.note(thread, start, "recording", lines);
    }

    /// Adds a marker a line.
    fn note(&mut self, thread: ThreadHandle, start: Timestamp, name: &str, lines: Vec<String>) {
        for line in lines {
            let [marker, text] = [name, &line].map(|text| self.out.intern_string(text));
            self.out.add_marker(thread, MarkerTiming::Instant(start), Told { marker, text });
        }
    }

    fn add_process(&mut self, id: ProcessId) -> ProcessHandle {
        let process = self.machine.process(id);
        let start = self.timestamp(process.start);
        let handle = self.out.add_process(self.machine.string(process.name), process.pid.0, start);
        if let Some(end) = process.end {
            self.out.set_process_end_time(handle, self.timestamp(end));
        }
        handle
    }

    fn add_track(
        &mut self,
        tracks: &Tracks,
        track: &Track,
        process: ProcessHandle,
        samples: &[TrackSample],
    ) -> ThreadHandle {
        let machine = self.machine;
        let life = machine.process(track.process);
        let start = self.timestamp(life.start);
        let handle = self.out.add_thread(process, track.tid.0, start, track.is_main);
        if let Some(end) = life.end {
            self.out.set_thread_end_time(handle, self.timestamp(end));
        }
        let mut thread = Open {
            process,
            handle,
            name: None,
            stacks: Stacks::default(),
            weights: Weights::default(),
            allocated: None,
        };
        for own in samples {
            let Some(sample) = machine.samples().get(own.at as usize) else { continue };
            if tracks.of_thread(sample.thread) == own.track {
                self.name(&mut thread, &sample);
            }
            self.add_sample(&mut thread, &sample);
        }
        if let Some(name) = thread.name {
            self.out.set_thread_name(handle, machine.string(name));
        }
        handle
    }

    fn name(&mut self, thread: &mut Open, sample: &Sample) {
        let name = self.machine.thread(sample.thread).name;
        if thread.name.is_some_and(|before| before != name) {
            let marker = self.out.intern_string("renamed");
            let renamed = Renamed { marker, name: self.out.intern_string(self.machine.string(name)) };
            let timing = MarkerTiming::Instant(self.timestamp(sample.time));
            self.out.add_marker(thread.handle, timing, renamed);
        }
        thread.name = Some(name);
    }

    fn add_sample(&mut self, thread: &mut Open, sample: &Sample) {
        let time = self.timestamp(sample.time);
        let stack = thread.stacks.get(self, thread.handle, sample.stack);
        match Role::of(&self.roles, sample.kind) {
            Role::Sampled(sampling) => {
                let count = sample.value.max(0).unsigned_abs();
                let on_cpu = CpuDelta::from_nanos(count.saturating_mul(sampling.period));
                let weight = thread.weights.weight(&sampling, sample);
                self.out.add_sample(thread.handle, time, stack, on_cpu, weight);
                if sampling.is_time {
                    self.out.set_thread_samples_weight_type(thread.handle, WeightType::TracingMs);
                    self.mark(thread, sample, stack);
                }
            }
            Role::Allocated => {
                self.allocations += 1;
                self.out.add_allocation_sample(thread.handle, time, stack, self.allocations, sample.value);
                let counter = self.counter(thread, sample);
                self.out.add_counter_sample(counter, time, sample.value as f64, 1);
            }
            Role::Marked => self.mark(thread, sample, stack),
        }
    }

    fn counter(&mut self, thread: &mut Open, sample: &Sample) -> CounterHandle {
        *thread.allocated.get_or_insert_with(|| {
            let kind = self.machine.kinds().get(usize::from(sample.kind.0));
            let name = kind.map_or("", |kind| self.machine.string(kind.name));
            self.out.add_counter(thread.process, name, "Memory", "Bytes that were allocated until then")
        })
    }

    fn mark(&mut self, thread: &Open, sample: &Sample, stack: Option<StackHandle>) {
        let start = self.timestamp(sample.time);
        let timing = match duration(self.machine, sample) {
            Some(_) => MarkerTiming::Interval(start, self.timestamp(end_of(self.machine, sample))),
            None => MarkerTiming::Instant(start),
        };
        if let Some(marker) = self.markers.marker(self.machine, sample, &mut self.out) {
            let marker = self.out.add_marker(thread.handle, timing, marker);
            self.out.set_marker_stack(thread.handle, marker, stack);
        }
    }

    fn timestamp(&self, time: Nanos) -> Timestamp {
        Timestamp::from_nanos_since_reference(time.0.saturating_sub(self.origin.0))
    }
}

/// A thread that is being written.
struct Open {
    process: ProcessHandle,
    handle: ThreadHandle,
    /// Of the last sample.
    name: Option<StringId>,
    stacks: Stacks,
    weights: Weights,
    /// Counts what the process allocates.
    allocated: Option<CounterHandle>,
}

/// Weights of a thread's samples, which are 32 bits in the crate: what is less than 1 of a weight waits for the stack's next sample,
/// so that a stack has all of its own but for the last.
#[derive(Default)]
struct Weights {
    rests: Table<StackId, i64>,
}

impl Weights {
    fn weight(&mut self, sampling: &Sampling, sample: &Sample) -> i32 {
        let weight = if sampling.divisor == 1 {
            sample.value
        } else {
            let rest = self.rests.entry(sample.stack).or_default();
            let value = sample.value.saturating_add(*rest);
            *rest = value % sampling.divisor;
            value / sampling.divisor
        };
        weight.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }
}

/// Stacks that a thread has already.
#[derive(Default)]
struct Stacks {
    stacks: Table<StackId, Option<StackHandle>>,
    /// By position in [`Frames`].
    frames: Table<usize, FrameHandle>,
}

impl Stacks {
    fn get(&mut self, writer: &mut Writer<'_>, thread: ThreadHandle, stack: StackId) -> Option<StackHandle> {
        *self.stacks.entry(stack).or_insert_with(|| {
            let mut handle = None;
            for frame in writer.machine.stacks().get(stack).iter().rev() {
                for (position, info) in writer.frames.get(*frame) {
                    let out = &mut writer.out;
                    let own = self.frames.entry(position);
                    let own = *own.or_insert_with(|| out.intern_frame(thread, info.clone()));
                    handle = Some(out.intern_stack(thread, handle, own));
                }
            }
            handle
        })
    }
}

/// When what a sample tells of was over.
fn end_of(machine: &ExportMachine, sample: &Sample) -> Nanos {
    Nanos(sample.time.0.saturating_add(duration(machine, sample).unwrap_or(0)))
}

/// The recording's start, or what began before it.
fn origin(machine: &ExportMachine) -> Nanos {
    let times = machine.samples().times().iter().copied();
    times.fold(machine.system().start, Nanos::min)
}

/// The recording's end, or that of what lasted longer.
fn end(machine: &ExportMachine) -> Nanos {
    let ends = machine.samples().iter().map(|sample| end_of(machine, &sample));
    ends.fold(machine.system().end, Nanos::max)
}

/// What the profile is called.
fn title(machine: &ExportMachine) -> String {
    let system = machine.system();
    let command = if system.command.is_empty() { "Collector" } else { &system.command };
    if system.host.is_empty() { command.to_owned() } else { format!("{command} on {}", system.host) }
}
