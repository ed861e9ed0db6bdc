//! A [`Profile`] in, lines out: one that tells of the recording, what was counted in it, then events and samples in the order of time. A
//! sample of a raw event is one line with it. A line is made in memory that is used again for the next: what is held does not grow with
//! their number, but for what the order takes (see [`in_time_order`](collector_common::record::ExportMachine::in_time_order)).

use std::fmt::Write as _;
use std::io::{self, Write};

use collector_common::event::EventData;
use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{
    AttributeListId, AttributeValue, EventKind, EventRecord, Exit, ExportMachine, FrameFlags, Happened,
    Process, ProcessId, Sample, Span, ThreadId, TimelineOwner,
};

use super::fields::Names;
use super::frames::Frames;
use super::text::{hex, key, string};
use crate::format::account::account;
use crate::format::calendar::UnixTime;
use crate::format::facts::other_pid;
use crate::format::{ExportFormat, Holds, Part, Profile, unique_keys};

/// The JSON lines format.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonLines;

impl ExportFormat for JsonLines {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn ending(&self) -> &'static str {
        ".jsonl"
    }

    fn description(&self) -> &'static str {
        "a JSON object for each event with its fields, and for each sample, a line each in time order, for jq and databases; tables, \
         histograms and processes, too"
    }

    fn holds(&self) -> Holds {
        Holds::everything().without(&[
            Part::Unsampled,
            Part::Owners,
            Part::Containers,
            Part::Programs,
            Part::Lives,
            Part::Parents,
            Part::Files,
            Part::BuildIds,
            Part::FileDetails,
            Part::Mappings,
            Part::Lines,
            Part::Sources,
            Part::FrameRules,
            Part::System,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let machine = profile.machine;
        let mut writer = Writer {
            machine,
            frames: Frames::of(profile),
            names: machine.event_kinds().iter().map(|kind| Names::of(&kind.format)).collect(),
            line: String::new(),
        };
        writer.recording();
        writer.end_line(out)?;
        writer.counted(out)?;
        for (_, happened) in machine.in_time_order() {
            let records = machine.event_records();
            match happened {
                Happened::Sampled(sample) => writer.sample(&sample),
                Happened::SampledEvent(sample, id) => match records.get(id) {
                    Some((record, bytes)) => writer.event(&record, bytes, Some(&sample)),
                    None => writer.sample(&sample),
                },
                Happened::Event(id) => match records.get(id) {
                    Some((record, bytes)) => writer.event(&record, bytes, None),
                    None => continue,
                },
                Happened::SpanBegan(_, span) => writer.span(span),
                Happened::ProcessEnded(id) => match machine.process(id).exit {
                    Some(exit) => writer.exit(id, exit),
                    None => continue,
                },
                Happened::ProcessStarted(_) | Happened::Executed(_) | Happened::Mapped(..) => continue,
            }
            writer.end_line(out)?;
        }
        out.flush()
    }
}

/// What an event or a sample has in common with all others.
struct Common {
    time: Nanos,
    thread: ThreadId,
    cpu: u16,
}

pub(super) struct Writer<'a> {
    pub(super) machine: &'a ExportMachine,
    frames: Frames,
    /// By kind of event.
    names: Vec<Names>,
    pub(super) line: String,
}

impl Writer<'_> {
    pub(super) fn end_line(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.line.push_str("}\n");
        out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    pub(super) fn begin_line(&mut self, kind: &str) {
        self.line.push_str("{\"type\":");
        string(&mut self.line, kind);
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        key(&mut self.line, name);
        string(&mut self.line, value);
    }

    pub(super) fn number(&mut self, name: &str, value: impl std::fmt::Display) {
        key(&mut self.line, name);
        let _ = write!(self.line, "{value}");
    }

    /// The time of day, where it is known.
    pub(super) fn time(&mut self, name: &str, time: Nanos) {
        key(&mut self.line, name);
        let _ = match self.machine.system().clocks.unix_at(time) {
            Some(unix) => write!(self.line, "\"{}\"", UnixTime(unix)),
            None => write!(self.line, "null"),
        };
    }

    fn recording(&mut self) {
        let system = self.machine.system();
        self.begin_line("recording");
        self.text("writer", concat!("collector ", env!("CARGO_PKG_VERSION")));
        let texts = [
            ("host", &system.host),
            ("kernel", &system.kernel),
            ("architecture", &system.architecture),
            ("command", &system.command),
        ];
        for (name, value) in texts {
            self.text(name, value);
        }
        self.number("cpus", system.cpus);
        self.time("start", system.start);
        self.time("end", system.end);
        self.number("start_ns", system.start.0);
        self.number("end_ns", system.end.0);
        match system.lost {
            Some(lost) => self.number("lost", lost),
            None => self.number("lost", "null"),
        }
        self.array("account", account(self.machine), |this, line| string(&mut this.line, &line));
        self.array("kinds", self.machine.kinds(), |this, kind| {
            this.line.push_str("{\"name\":");
            string(&mut this.line, this.machine.string(kind.name));
            this.text("unit", kind.unit.name());
            this.number("period", kind.period);
            this.line.push('}');
        });
    }

    /// Adds a list as a member.
    pub(super) fn array<T>(
        &mut self,
        name: &str,
        elements: impl IntoIterator<Item = T>,
        mut element: impl FnMut(&mut Self, T),
    ) {
        key(&mut self.line, name);
        self.line.push('[');
        for (value, at) in elements.into_iter().zip(0_usize..) {
            if at > 0 {
                self.line.push(',');
            }
            element(self, value);
        }
        self.line.push(']');
    }

    /// When, what, who and where.
    fn common(&mut self, of: &Common, name: &str) {
        let machine = self.machine;
        let thread = machine.thread(of.thread);
        let process = machine.process(thread.process);
        self.time("time", of.time);
        self.number("time_ns", of.time.0);
        self.text("event", name);
        self.pid(process);
        self.number("tid", thread.tid.0);
        self.text("comm", machine.string(thread.name));
        self.text("process", machine.string(process.name));
        self.number("cpu", of.cpu);
    }

    /// The pid, and that in the process's namespace where it is another one there.
    pub(super) fn pid(&mut self, process: &Process) {
        self.number("pid", process.pid.0);
        if let Some(pid) = other_pid(process) {
            self.number("namespace_pid", pid.0);
        }
    }

    /// How a process ended.
    fn exit(&mut self, id: ProcessId, exit: Exit) {
        let machine = self.machine;
        let process = machine.process(id);
        let time = process.end.unwrap_or(machine.system().end);
        self.begin_line("exit");
        self.time("time", time);
        self.number("time_ns", time.0);
        self.pid(process);
        self.text("process", machine.string(process.name));
        self.ended_by(exit);
    }

    pub(super) fn ended_by(&mut self, exit: Exit) {
        match exit {
            Exit::Code(status) => self.number("status", status),
            Exit::Signal(signal) => self.number("signal", signal),
        }
    }

    fn value(&mut self, sample: &Sample) {
        let unit = self.machine.kinds().get(usize::from(sample.kind.0)).map_or("", |kind| kind.unit.name());
        self.number("value", sample.value);
        self.text("unit", unit);
    }

    /// What went on for a time. One without a duration went on when the recording ended.
    fn span(&mut self, span: &Span) {
        let machine = self.machine;
        self.begin_line("span");
        self.time("time", span.start);
        self.number("time_ns", span.start.0);
        if let Some(duration) = span.duration() {
            self.number("duration_ns", duration);
        }
        self.text("span", machine.string(span.name));
        if let Some(timeline) = machine.timeline_of(span) {
            self.text("timeline", machine.string(timeline.name));
            self.owner(timeline.owner);
        }
        self.attributes(span.attributes);
    }

    fn owner(&mut self, owner: TimelineOwner) {
        let machine = self.machine;
        let (process, thread) = match owner {
            TimelineOwner::Recording => return,
            TimelineOwner::Process(process) => (process, None),
            TimelineOwner::Thread(thread) => (machine.thread(thread).process, Some(machine.thread(thread))),
        };
        let process = machine.process(process);
        self.pid(process);
        if let Some(thread) = thread {
            self.number("tid", thread.tid.0);
            self.text("comm", machine.string(thread.name));
        }
        self.text("process", machine.string(process.name));
    }

    /// An object has each key once.
    fn attributes(&mut self, list: AttributeListId) {
        let machine = self.machine;
        let list = machine.attributes().get(list);
        if list.is_empty() {
            return;
        }
        key(&mut self.line, "attributes");
        let (line, mut separator) = (&mut self.line, '{');
        unique_keys::each(machine, list, &[], |key, value| {
            line.push(separator);
            separator = ',';
            string(line, key.text);
            line.push(':');
            match value {
                AttributeValue::Label(text) => string(line, machine.string(text)),
                AttributeValue::Number(number) => {
                    let _ = write!(line, "{number}");
                }
            }
        });
        self.line.push('}');
    }

    fn stack(&mut self, stack: StackId) {
        let machine = self.machine;
        let frames = machine.stacks().get(stack);
        if frames.is_empty() {
            return;
        }
        key(&mut self.line, "stack");
        self.frames.list(&mut self.line, frames);
        if frames.iter().any(|&frame| machine.frames().get(frame).flags.has(FrameFlags::HEURISTIC)) {
            self.line.push_str(",\"stack_guessed\":true");
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let machine = self.machine;
        let name =
            machine.kinds().get(usize::from(sample.kind.0)).map_or("", |kind| machine.string(kind.name));
        self.begin_line("sample");
        let &Sample { time, thread, cpu, .. } = sample;
        self.common(&Common { time, thread, cpu }, name);
        self.value(sample);
        self.attributes(sample.attributes);
        self.stack(sample.stack);
    }

    /// An event, with its sample where there is one.
    fn event(&mut self, record: &EventRecord, bytes: &[u8], sample: Option<&Sample>) {
        let machine = self.machine;
        let position = usize::from(record.kind.0);
        let kind = machine.event_kinds().get(position);
        self.begin_line("event");
        let &EventRecord { time, thread, cpu, .. } = record;
        self.common(&Common { time, thread, cpu }, kind.map_or("", |kind| machine.string(kind.name)));
        if let Some(sample) = sample {
            self.value(sample);
        }
        if let Some(kind) = kind {
            self.fields(kind, position, bytes);
        }
        self.attributes(record.attributes);
        self.stack(record.stack);
    }

    /// The fields; and the bytes, where those do not say all.
    fn fields(&mut self, kind: &EventKind, position: usize, bytes: &[u8]) {
        let names = self.names.get(position).filter(|names| !names.is_empty());
        let is_whole = match names {
            Some(names) => {
                key(&mut self.line, "fields");
                names.object(&mut self.line, &EventData::new(bytes, bytes, &kind.format))
            }
            None => bytes.is_empty() || !kind.format.fields().is_empty(),
        };
        if !is_whole {
            self.number("id", kind.id);
            self.number("version", kind.facts.version);
            key(&mut self.line, "payload");
            hex(&mut self.line, bytes);
        }
    }
}
