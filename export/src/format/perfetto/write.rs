//! A [`Profile`] in, a trace out.
//!
//! - Samples of clocks and occurrences are samples of Perfetto's CPU profiler, each kind in a sequence of its own, which readers take
//!   for a profile of its own. A value is how much the CPU's count grows.
//! - Those in nanoseconds are slices that last as long, on a track of their kind below their thread, with their stack; estimates,
//!   which did not last so long, are moments. They are called after their kind, or after the thread's state, if they tell it.
//! - Those in bytes are such moments, too, and a counter of their process, which is their sum until then.
//!
//! - Raw events of the scheduler are rows of CPUs and states of threads, where they are told of all CPUs (`scheduling`).
//!
//! Times are `CLOCK_MONOTONIC`, as recorded, and the trace's own clock, so that no reader has to convert them; snapshots tell
//! the time of day. A process ends by the state of its main thread. What was lost is told as the records that the kernel lost, which
//! readers warn of, and with the rest of the account on the track `recording`. What is told of a process, and the programs that it
//! executed, are on a track `process` below it.

use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::intern::StringId;
use collector_common::record::{
    AttributeValue, ClockAnchor, EventRecordId, ExportMachine, FrameFlags, FrameId, Happened, ProcessId,
    Sample, SampleKind, SampleKindId, Span, Unit,
};

use super::frames::Frames;
use super::packets::{Packets, Sequence};
use super::proto::{
    CPU_CLOCK, Clock, ClockSnapshot, Data, FtraceEventBundle, PERF_CLOCK_MONOTONIC, PerfSample,
    PerfSampleDefaults, ProcessOfTree, ProcessTree, SystemInfo, TASK_DEAD, TaskState, Timebase, Tracepoint,
    TrackDescriptor, TrackEvent, UNWIND_ERROR_UNKNOWN, Utsname, clock, cpu_mode, event_type,
};
use super::scheduling::{self, Scheduling};
use super::tracks::{self, Added, Threads};
use crate::format::account::{account, os_and_release};
use crate::format::duration::duration;
use crate::format::facts::facts;
use crate::format::start::start;
use crate::format::{ExportFormat, Holds, Part, Profile};
use crate::table::Table;

/// The format of Perfetto.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perfetto;

impl ExportFormat for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn ending(&self) -> &'static str {
        ".pftrace"
    }

    fn description(&self) -> &'static str {
        "Perfetto's traces: every sample with its time and stack by thread, times off as slices, bytes as counters"
    }

    fn holds(&self) -> Holds {
        Holds::everything()
            .without(&[Part::FileDetails, Part::Guesses, Part::FrameRules, Part::System, Part::Tables])
            .with_some(&[Part::Cpus, Part::Attributes, Part::Estimates, Part::Mappings, Part::Events])
    }

    fn keeps_events_of(&self, name: &str) -> bool {
        scheduling::EVENTS.contains(&name)
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        Writer::new(profile, out).write()
    }
}

/// Numbers of sequences: of the machine, of events, of the scheduler's, and from there on of kinds.
const MACHINE: u32 = 1;
const EVENTS: u32 = 2;
const SCHEDULING: u32 = 3;
const FIRST_KIND: u32 = 4;

struct Writer<'a> {
    machine: &'a ExportMachine,
    frames: Frames<'a>,
    packets: Packets<'a>,
    of_machine: Sequence,
    events: Sequence,
    of_scheduling: Sequence,
    scheduling: Scheduling<'a>,
    /// `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` of snapshots that have both; one at least.
    since_boot: Vec<[u64; 2]>,
    /// By kind.
    kinds: Vec<Sequence>,
    /// By kind and CPU.
    counts: Table<(SampleKindId, u16), u64>,
    threads: Threads,
    added: Added,
    /// By thread, the name of its last sample.
    names: Vec<Option<StringId>>,
    /// By process, when its last sample was.
    last: Vec<u64>,
    start: u64,
}

impl<'a> Writer<'a> {
    fn new(profile: Profile<'a>, out: &'a mut dyn Write) -> Self {
        let machine = profile.machine;
        let threads = Threads::of(machine);
        let of_kinds = machine.kinds().iter().zip(FIRST_KIND..);
        let kinds = of_kinds.map(|(kind, id)| Sequence::new(id, Some(sampled(machine, kind))));
        Self {
            machine,
            frames: Frames::of(profile),
            packets: Packets::new(out),
            of_machine: Sequence::new(MACHINE, None),
            events: Sequence::new(EVENTS, None),
            of_scheduling: Sequence::new(SCHEDULING, None),
            scheduling: Scheduling::of(machine),
            since_boot: Vec::new(),
            kinds: kinds.collect(),
            counts: Table::default(),
            names: vec![None; threads.list().len()],
            threads,
            added: Added::default(),
            last: vec![0; machine.processes().len()],
            start: tick(start(machine)),
        }
    }

    fn write(mut self) -> io::Result<()> {
        self.clocks()?;
        self.system()?;
        self.tracks()?;
        self.account()?;
        self.lives()?;
        for (time, happened) in self.machine.in_time_order() {
            match happened {
                Happened::Sampled(sample) => self.sample(&sample)?,
                Happened::SampledEvent(sample, id) => {
                    self.sample(&sample)?;
                    self.scheduled(time, id)?;
                }
                Happened::Event(id) => self.scheduled(time, id)?,
                Happened::SpanBegan(_, span) => self.span(span)?,
                _ => {}
            }
        }
        let rest = self.scheduling.rest();
        rest.into_iter().try_for_each(|events| self.of_cpu(events))?;
        self.ends()?;
        self.losses()?;
        self.packets.finish()
    }

    /// The first snapshot stands before all times, since it says which clock is the trace's
    /// (`protos/perfetto/trace/clock_snapshot.proto`).
    fn clocks(&mut self) -> io::Result<()> {
        let clocks = &self.machine.system().clocks;
        let mut anchors: Vec<ClockAnchor> = [clocks.start, clocks.end].into_iter().flatten().collect();
        anchors.dedup();
        let pair = |anchor: &ClockAnchor| Some([anchor.monotonic.0, anchor.boottime?.0]);
        self.since_boot = anchors.iter().filter_map(pair).collect();
        let mut snapshots: Vec<Vec<Clock>> = anchors.iter().map(readings).collect();
        if snapshots.is_empty() {
            snapshots.push(vec![Clock { clock_id: clock::MONOTONIC, timestamp: self.start }]);
        }
        if self.since_boot.is_empty() {
            // The tracer has no clock that is `CLOCK_MONOTONIC`: events are as if the machine had never slept.
            let timestamp = anchors.first().map_or(self.start, |anchor| anchor.monotonic.0);
            self.since_boot.push([timestamp; 2]);
            if self.scheduling.is_there() {
                snapshots[0].push(Clock { clock_id: clock::BOOTTIME, timestamp });
            }
        }
        for clocks in snapshots {
            let snapshot = ClockSnapshot { clocks, primary_trace_clock: clock::MONOTONIC };
            self.packets.write(&mut self.of_machine, None, Data::ClockSnapshot(snapshot))?;
        }
        Ok(())
    }

    /// `CLOCK_BOOTTIME` by the snapshot that a reader goes back by: the last one before.
    fn since_boot(&self, time: u64) -> u64 {
        let before = self.since_boot.iter().rfind(|[monotonic, _]| *monotonic <= time);
        let [monotonic, boottime] = before.or(self.since_boot.first()).copied().unwrap_or_default();
        boottime.wrapping_add(time).wrapping_sub(monotonic)
    }

    fn system(&mut self) -> io::Result<()> {
        let system = self.machine.system();
        let (sysname, release) = os_and_release(&system.kernel);
        let info = SystemInfo {
            utsname: Some(Utsname {
                sysname: sysname.to_owned(),
                release: release.to_owned(),
                machine: system.architecture.clone(),
            }),
            tracing_service_version: concat!("Collector ", env!("CARGO_PKG_VERSION")).to_owned(),
            num_cpus: system.cpus,
            machine_name: system.host.clone(),
        };
        self.of_machine(self.start, Data::SystemInfo(info))
    }

    fn tracks(&mut self) -> io::Result<()> {
        let machine = self.machine;
        for (process, id) in machine.processes().iter().zip((0..).map(ProcessId)) {
            let time = tick(process.start).max(self.start);
            self.descriptor(time, tracks::process(machine, id))?;
            if let Some(parent) = process.parent {
                let process = ProcessOfTree {
                    pid: process.pid.0.cast_signed(),
                    ppid: machine.process(parent).pid.0.cast_signed(),
                    // Readers call the process after it.
                    cmdline: vec![machine.string(process.name).to_owned()],
                    uid: process.user.map(|user| user.0.cast_signed()),
                };
                let tree = ProcessTree { processes: vec![process] };
                self.of_machine(time, Data::ProcessTree(tree))?;
            }
        }
        for position in 0..self.threads.list().len() {
            let thread = self.threads.list()[position];
            let time = tick(machine.process(thread.process).start).max(self.start);
            self.descriptor(time, tracks::thread(machine, position as u32, &thread))?;
        }
        Ok(())
    }

    /// What is told of the recording as a whole, for people.
    fn account(&mut self) -> io::Result<()> {
        let command = &self.machine.system().command;
        let command = (!command.is_empty()).then(|| format!("command: {command}"));
        let lines: Vec<String> = command.into_iter().chain(account(self.machine)).collect();
        if lines.is_empty() {
            return Ok(());
        }
        self.descriptor(self.start, tracks::recording())?;
        lines.into_iter().try_for_each(|name| self.note(tracks::RECORDING, self.start, name))
    }

    /// What is told of processes, and the programs that they executed.
    fn lives(&mut self) -> io::Result<()> {
        let machine = self.machine;
        for id in (0..).take(machine.processes().len()).map(ProcessId) {
            let start = tick(machine.process(id).start).max(self.start);
            let facts = facts(machine, id).into_iter().map(|line| (start, line));
            let mut notes: Vec<(u64, String)> = facts.collect();
            let mut programs: Vec<_> = machine.programs_of(id).map(|id| machine.program(id)).collect();
            programs.reverse();
            notes.extend(programs.into_iter().map(|program| {
                let line = machine.command_line(program);
                let line = if line.is_empty() { machine.string(program.name) } else { &line };
                (tick(program.since).max(start), format!("executed: {line}"))
            }));
            if !notes.is_empty() {
                self.descriptor(start, tracks::about(id))?;
            }
            let track = tracks::about_process(id);
            notes.into_iter().try_for_each(|(time, note)| self.note(track, time, note))?;
        }
        Ok(())
    }

    /// A moment with a text.
    fn note(&mut self, track_uuid: u64, time: u64, name: String) -> io::Result<()> {
        let r#type = event_type::INSTANT;
        self.event(time, TrackEvent { r#type, track_uuid, name, ..TrackEvent::default() })
    }

    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        let Some(kind) = self.machine.kinds().get(usize::from(sample.kind.0)) else { return Ok(()) };
        let process = self.machine.thread(sample.thread).process;
        if let Some(last) = self.last.get_mut(process.0 as usize) {
            *last = tick(sample.time);
        }
        self.rename(sample)?;
        match kind.unit {
            Unit::Count => self.sampled(kind, sample),
            Unit::Nanoseconds => self.slice(kind, sample),
            Unit::Bytes => {
                let name = self.machine.string(kind.name);
                let (track_uuid, sum, descriptor) =
                    self.added.count(process, sample.kind, name, sample.value);
                descriptor.map_or(Ok(()), |descriptor| self.descriptor(tick(sample.time), descriptor))?;
                let counter = TrackEvent {
                    r#type: event_type::COUNTER,
                    track_uuid,
                    counter_value: Some(sum),
                    ..TrackEvent::default()
                };
                self.event(tick(sample.time), counter)?;
                self.slice(kind, sample)
            }
        }
    }

    /// What an event of the scheduler says of its CPU.
    fn scheduled(&mut self, time: Nanos, id: EventRecordId) -> io::Result<()> {
        let time = tick(time);
        let (thread, events) = self.scheduling.take(id, self.since_boot(time));
        let process = thread.map(|thread| self.machine.thread(thread).process.0 as usize);
        if let Some(last) = process.and_then(|process| self.last.get_mut(process)) {
            // A reader may take what is of the same time, and told otherwise, first.
            *last = (*last).max(time.saturating_add(1));
        }
        events.map_or(Ok(()), |events| self.of_cpu(events))
    }

    /// They have times of their own.
    fn of_cpu(&mut self, events: FtraceEventBundle) -> io::Result<()> {
        self.packets.write(&mut self.of_scheduling, None, Data::FtraceEvents(events))
    }

    /// A thread has one name in a trace. That it was called otherwise before is a moment on its track.
    fn rename(&mut self, sample: &Sample) -> io::Result<()> {
        let thread = self.threads.position(sample.thread);
        let name = self.machine.thread(sample.thread).name;
        let before = self.names.get_mut(thread as usize).and_then(|last| last.replace(name));
        if before.is_none_or(|before| before == name) {
            return Ok(());
        }
        let renamed = format!("renamed to {}", self.machine.string(name));
        self.note(tracks::of_thread(thread), tick(sample.time), renamed)
    }

    fn sampled(&mut self, kind: &SampleKind, sample: &Sample) -> io::Result<()> {
        let machine = self.machine;
        let stack = machine.stacks().get(sample.stack);
        let flags = |frame: &FrameId| machine.frames().get(*frame).flags;
        let thread = machine.thread(sample.thread);
        let count = self.counts.entry((sample.kind, sample.cpu)).or_default();
        let grown = sample.value.max(0).unsigned_abs().checked_mul(kind.period);
        let Some(timebase_count) = grown.and_then(|grown| count.checked_add(grown)) else {
            return Err(io::Error::other(
                "the values of a CPU add up to more than 64 bits hold: name a format with all samples, as .jsonl",
            ));
        };
        *count = timebase_count;
        let sequence = &mut self.kinds[usize::from(sample.kind.0)];
        let data = PerfSample {
            cpu: sample.cpu.into(),
            pid: machine.process(thread.process).pid.0,
            tid: thread.tid.0,
            callstack_iid: sequence.interned.stack(&self.frames, sample.stack),
            cpu_mode: match stack.first() {
                None => cpu_mode::UNKNOWN,
                Some(frame) if flags(frame).has(FrameFlags::KERNEL) => cpu_mode::KERNEL,
                Some(_) => cpu_mode::USER,
            },
            timebase_count,
            unwind_error: stack
                .iter()
                .any(|frame| flags(frame).has(FrameFlags::CUT))
                .then_some(UNWIND_ERROR_UNKNOWN),
            kernel_records_lost: 0,
        };
        self.packets.write(sequence, Some(tick(sample.time)), Data::PerfSample(data))
    }

    /// A slice where the sample lasted, else a moment.
    fn slice(&mut self, kind: &SampleKind, sample: &Sample) -> io::Result<()> {
        let machine = self.machine;
        let lasted = duration(machine, sample).filter(|lasted| *lasted > 0);
        let begin = tick(sample.time);
        let end = begin.saturating_add(lasted.unwrap_or(0)).min(tick(Nanos(u64::MAX)));
        let thread = self.threads.position(sample.thread);
        let name = machine.string(kind.name);
        let (track_uuid, descriptor) = self.added.lane(thread, sample.kind, name, (begin, end));
        descriptor.map_or(Ok(()), |descriptor| self.descriptor(begin, descriptor))?;
        let interned = &mut self.events.interned;
        let event = TrackEvent {
            debug_annotations: interned.attributes(&self.frames, sample.attributes),
            r#type: if lasted.is_some() { event_type::SLICE_BEGIN } else { event_type::INSTANT },
            name_iid: interned.event_name(&self.frames, state(machine, sample).unwrap_or(kind.name)),
            track_uuid,
            callstack_iid: interned.stack(&self.frames, sample.stack),
            callstack_weight: Some(sample.value as f64),
            ..TrackEvent::default()
        };
        self.event(begin, event)?;
        if lasted.is_none() {
            return Ok(());
        }
        let event = TrackEvent { r#type: event_type::SLICE_END, track_uuid, ..TrackEvent::default() };
        self.event(end, event)
    }

    /// A slice, which has no end where the span has none.
    fn span(&mut self, span: &Span) -> io::Result<()> {
        let machine = self.machine;
        let Some(timeline) = machine.timeline_of(span) else { return Ok(()) };
        let begin = tick(span.start);
        let end = span.end.map(tick);
        let place = (timeline, &self.threads);
        let name = machine.string(timeline.name);
        let lasts = (begin, end.unwrap_or(u64::MAX));
        let (track_uuid, descriptor) = self.added.nest(span.timeline, place, name, lasts);
        descriptor.map_or(Ok(()), |descriptor| self.descriptor(begin, descriptor))?;
        let interned = &mut self.events.interned;
        let event = TrackEvent {
            debug_annotations: interned.attributes(&self.frames, span.attributes),
            r#type: event_type::SLICE_BEGIN,
            name_iid: interned.event_name(&self.frames, span.name),
            track_uuid,
            ..TrackEvent::default()
        };
        self.event(begin, event)?;
        let Some(end) = end else { return Ok(()) };
        self.event(end, TrackEvent { r#type: event_type::SLICE_END, track_uuid, ..TrackEvent::default() })
    }

    /// Processes end not before their last sample: a reader would take that for one of another process.
    fn ends(&mut self) -> io::Result<()> {
        for (position, process) in self.machine.processes().iter().enumerate() {
            let Some(end) = process.end else { continue };
            let state = TaskState {
                comm: self.machine.string(process.name).to_owned(),
                tid: process.pid.0.into(),
                state: TASK_DEAD,
            };
            let end = tick(end).max(self.last[position]).max(self.start);
            self.of_machine(end, Data::TaskState(state))?;
        }
        Ok(())
    }

    /// On which CPUs it was is not known.
    fn losses(&mut self) -> io::Result<()> {
        let system = self.machine.system();
        let lost = system.lost.filter(|lost| *lost > 0);
        let (Some(sequence), Some(lost)) = (self.kinds.first_mut(), lost) else { return Ok(()) };
        let lost = PerfSample { kernel_records_lost: lost, ..PerfSample::default() };
        self.packets.write(sequence, Some(tick(system.end).max(self.start)), Data::PerfSample(lost))
    }

    fn descriptor(&mut self, time: u64, descriptor: TrackDescriptor) -> io::Result<()> {
        self.of_machine(time, Data::TrackDescriptor(descriptor))
    }

    fn of_machine(&mut self, time: u64, data: Data) -> io::Result<()> {
        self.packets.write(&mut self.of_machine, Some(time), data)
    }

    fn event(&mut self, time: u64, event: TrackEvent) -> io::Result<()> {
        self.packets.write(&mut self.events, Some(time), Data::TrackEvent(event))
    }
}

/// Times have 63 bits in a reader.
fn tick(time: Nanos) -> u64 {
    time.0.min(i64::MAX.unsigned_abs())
}

/// What the sample's thread did meanwhile: `running`, `blocked` or `runnable`.
fn state(machine: &ExportMachine, sample: &Sample) -> Option<StringId> {
    let list = machine.attributes().get(sample.attributes);
    let (_, value) = list.iter().find(|(name, _)| machine.string(*name) == "state")?;
    match *value {
        AttributeValue::Label(state) => {
            matches!(machine.string(state), "running" | "blocked" | "runnable").then_some(state)
        }
        AttributeValue::Number(_) => None,
    }
}

fn readings(anchor: &ClockAnchor) -> Vec<Clock> {
    let reading = |clock_id, timestamp| Clock { clock_id, timestamp };
    let boottime = anchor.boottime.map(|time| reading(clock::BOOTTIME, time.0));
    let others = [reading(clock::MONOTONIC, anchor.monotonic.0), reading(clock::REALTIME, anchor.realtime)];
    others.into_iter().chain(boottime).collect()
}

/// What samples of a kind are.
fn sampled(machine: &ExportMachine, kind: &SampleKind) -> PerfSampleDefaults {
    let name = machine.string(kind.name).to_owned();
    // Readers that do not know names of counters go by these.
    let tracepoint = name.contains(':').then(|| Tracepoint { name: name.clone() });
    let counter = (kind.period > 1).then_some(CPU_CLOCK).filter(|_| tracepoint.is_none());
    let timebase =
        Timebase { period: kind.period, tracepoint, counter, name, timestamp_clock: PERF_CLOCK_MONOTONIC };
    PerfSampleDefaults { timebase: Some(timebase) }
}
