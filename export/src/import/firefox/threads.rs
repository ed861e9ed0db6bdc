//! The threads of a profile with their samples, allocations and markers in, samples of a machine out.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::Read;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::intern::Seeded;
use collector_common::record::{
    ClockAnchor, ExportMachine, ProcessId, Sample, ThreadId, TimelineOwner, Unit,
};

use super::code::{Code, Known, Tables};
use super::events::{Events, Sampled, SpanOf};
use super::json::{Data, File, Samples, Thread, weight_of};
use super::text;
use crate::format::firefox::OF_WEIGHT;
use crate::format::lost_in;
use crate::import::room::{MOST_SAMPLES, checked, name};
use crate::import::{ImportError, Imported};

/// The most bytes of what markers tell of the recording as a whole.
const MOST_TOLD: usize = 1 << 20;

/// The most spans: a marker of one is smaller than what it becomes.
const MOST_SPANS: usize = 1 << 22;

/// The phase of a marker that began and did not end.
const BEGAN: u32 = 2;

/// What the counter of our allocations is described as.
const ALLOCATED: &str = "Bytes that were allocated until then";

/// Reads the threads of a file of which all else is known.
pub(super) fn read(
    mut machine: ExportMachine,
    file: &File,
    input: impl Read,
) -> Result<Imported, ImportError> {
    let code = Code::of(file, &mut machine);
    let events = Events::of(file.meta.marker_schema.iter().flat_map(|list| &list.0));
    let mut reader = Reader {
        file,
        machine,
        code,
        shared: Known::default(),
        events,
        processes: HashMap::default(),
        clock: OnceCell::new(),
        allocations: allocations(file),
        told: 0,
        without_stack: 0,
        spans_left_out: 0,
        early: 0,
        first: None,
        last: Nanos(0),
    };
    reader.describe();
    reader.code.add_rows(file.shared.stack_table.as_ref());
    text::threads(input, |thread: Thread| reader.thread(&thread))?;
    checked(reader.finish())
}

struct Reader<'a> {
    file: &'a File,
    machine: ExportMachine,
    code: Code,
    /// Of the tables that are all threads'.
    shared: Known,
    events: Events<'a>,
    /// By pid, as the file has it.
    processes: HashMap<String, ProcessId, Seeded>,
    /// What samples of the call tree are of, once it is known; none where there are too many kinds.
    clock: OnceCell<Option<Sampled>>,
    /// What allocations are called.
    allocations: &'a str,
    /// Bytes of what was told of the recording.
    told: usize,
    without_stack: u64,
    spans_left_out: u64,
    /// How many samples and spans were before the profile began.
    early: u64,
    /// The first and the last time of a sample or span.
    first: Option<Nanos>,
    last: Nanos,
}

/// A thread that is being read.
struct Open<'a, 'k> {
    id: ThreadId,
    tables: Tables<'a>,
    known: &'k mut Known,
}

impl Reader<'_> {
    fn describe(&mut self) {
        if let Some(sampled) = self.events.add_kinds(&mut self.machine) {
            self.clock = OnceCell::from(Some(sampled));
        }
        let meta = &self.file.meta;
        let system = self.machine.system_mut();
        system.kernel.clone_from(&meta.oscpu.0);
        system.command.clone_from(&meta.product.0);
        let start = meta.start_time.0;
        if start != 0.0 && !start.is_nan() {
            system.clocks.start = ClockAnchor::at(Nanos(0), (start * 1e6).round() as i128);
        }
    }

    /// What samples of the call tree are of: a clock's, called `cpu` if each was taken while its thread ran.
    fn clock(&mut self) -> Option<Sampled> {
        if let Some(&known) = self.clock.get() {
            if known.is_none() {
                self.events.no_room += 1;
            }
            return known;
        }
        let name = if self.file.is_on_cpu { "cpu" } else { "samples" };
        let period = nanoseconds(self.file.meta.interval.0).0.max(1);
        let kind = self.events.kind(&mut self.machine, name, Unit::Count, period);
        if let Some(kind) = kind {
            self.machine.set_main_kind(kind);
        }
        *self.clock.get_or_init(|| kind.map(|kind| Sampled { kind, weight: 1 }))
    }

    fn process(&mut self, thread: &Thread) -> ProcessId {
        let pid = &*thread.pid.0;
        if let Some(&known) = self.processes.get(pid) {
            if thread.is_main && self.machine.string(self.machine.process(known).name).is_empty() {
                self.machine.rename_process(known, name(&thread.name.0));
            }
            return known;
        }
        let called = match &*thread.process_name.0 {
            "" if thread.is_main => &thread.name.0,
            called => called,
        };
        let time = |time: Option<super::columns::Loose<f64>>| time.map(|time| nanoseconds(time.0));
        let start = time(thread.process_startup_time).unwrap_or_default();
        let id = self.machine.add_process(Pid(number(pid)), name(called), None, start);
        if let Some(end) = thread.process_shutdown_time.filter(|end| end.0 >= 0.0) {
            self.machine.end_process(id, nanoseconds(end.0).max(start));
        }
        self.processes.insert(pid.to_owned(), id);
        id
    }

    fn thread(&mut self, thread: &Thread) -> Result<(), ImportError> {
        let tables = Tables::of(thread, &self.file.shared)?;
        self.code.add_rows(thread.stack_table.as_ref());
        let process = self.process(thread);
        let called = self.machine.intern_string(name(&thread.name.0));
        let id = self.machine.intern_thread(process, Tid(number(&thread.tid.0)), called);
        // Stacks of tables that are a thread's own mean something there alone.
        let mut known = if tables.are_shared { std::mem::take(&mut self.shared) } else { Known::default() };
        let mut open = Open { id, tables, known: &mut known };
        self.samples(&mut open, &thread.samples)?;
        for allocations in [&thread.native_allocations, &thread.js_allocations].into_iter().flatten() {
            self.allocations(&mut open, allocations)?;
        }
        self.markers(&mut open, thread)?;
        if tables.are_shared {
            self.shared = known;
        }
        Ok(())
    }

    fn samples(&mut self, open: &mut Open<'_, '_>, samples: &Samples) -> Result<(), ImportError> {
        let (name, unit, scale) = match &*samples.weight_type.0 {
            // Ours of times are markers as well.
            "tracing-ms" if self.events.are_ours() => return Ok(()),
            "tracing-ms" => ("time", Unit::Nanoseconds, 1e6),
            "bytes" => ("bytes", Unit::Bytes, 1.0),
            _ => ("", Unit::Count, 1.0),
        };
        let mut time = Times::default();
        for row in 0..samples.stack.len() as u32 {
            let time = time.next(samples, row);
            let (weight, stack) = (weight_of(&samples.weight, row), samples.stack.get(row));
            // The first thread's edges of ours.
            if weight == 0.0 && stack == u32::MAX {
                continue;
            }
            let sampled = match unit {
                Unit::Count => self.clock(),
                unit => {
                    let kind = self.events.kind(&mut self.machine, name, unit, 1);
                    kind.map(|kind| Sampled { kind, weight: 1 })
                }
            };
            let Some(Sampled { kind, weight: of_one }) = sampled else { continue };
            let value = ((weight * scale).round() as i64).saturating_mul(of_one);
            self.add(open, stack, Sample { time, kind, value, ..Sample::default() })?;
        }
        Ok(())
    }

    fn allocations(&mut self, open: &mut Open<'_, '_>, samples: &Samples) -> Result<(), ImportError> {
        let name = self.allocations;
        let mut time = Times::default();
        for row in 0..samples.stack.len() as u32 {
            let time = time.next(samples, row);
            let Some(kind) = self.events.kind(&mut self.machine, name, Unit::Bytes, 1) else { continue };
            let value = weight_of(&samples.weight, row).round() as i64;
            self.add(open, samples.stack.get(row), Sample { time, kind, value, ..Sample::default() })?;
        }
        Ok(())
    }

    fn markers(&mut self, open: &mut Open<'_, '_>, thread: &Thread) -> Result<(), ImportError> {
        let markers = &thread.markers;
        for row in 0..markers.name.len() as u32 {
            let name = open.tables.strings.get(markers.name.get(row)).unwrap_or_default();
            let data = markers.data.get(row as usize).and_then(Option::as_ref);
            let (start, end) = (markers.start_time.get(row), markers.end_time.get(row));
            let ended = (markers.phase.get(row) != BEGAN && !end.is_nan()).then_some(end);
            match data {
                Some(data) if data.marker_type.0 == "recording" && data.text.is_some() => {
                    let text = data.text.and_then(|text| open.tables.strings.get(text)).unwrap_or_default();
                    self.told += text.len() + 1;
                    // Values are read as they were.
                    let is_of_weight = self.events.are_ours() && text.starts_with(OF_WEIGHT);
                    if self.told <= MOST_TOLD && !is_of_weight {
                        self.machine.system_mut().account.push(text.to_owned());
                    }
                }
                Some(data) if self.span(open, name, data, (start, ended)) => {}
                // A thread has the last of its names.
                Some(data) if data.marker_type.0 == "renamed" => {}
                Some(data) if data.stack.is_some() || data.marker_type.0.starts_with("sample: ") => {
                    let lasts =
                        (end >= start).then(|| nanoseconds(end).0.saturating_sub(nanoseconds(start).0));
                    let lasts = lasts.map(|lasts| i64::try_from(lasts).unwrap_or(i64::MAX));
                    let strings = open.tables.strings;
                    let Some(marked) = self.events.marked(&mut self.machine, strings, name, data, lasts)
                    else {
                        continue;
                    };
                    let began = if start.is_nan() { end } else { start };
                    self.early += u64::from(began < 0.0);
                    let time = nanoseconds(began);
                    let sample = Sample {
                        time,
                        kind: marked.kind,
                        value: marked.value,
                        cpu: marked.cpu,
                        attributes: marked.attributes,
                        ..Sample::default()
                    };
                    self.add(open, data.stack.unwrap_or(u32::MAX), sample)?;
                }
                _ => self.without_stack += 1,
            }
        }
        Ok(())
    }

    /// Takes a marker that is a span of ours. Out: whether it is one.
    fn span(
        &mut self,
        open: &Open<'_, '_>,
        timeline: &str,
        data: &Data,
        (start, end): (f64, Option<f64>),
    ) -> bool {
        let strings = open.tables.strings;
        let called = data.span.and_then(|called| strings.get(called)).filter(|_| !start.is_nan());
        let Some(called) = called else { return false };
        let Some((of, attributes)) = self.events.span(&mut self.machine, strings, data) else { return false };
        if self.machine.spans().len() >= MOST_SPANS {
            self.spans_left_out += 1;
            return true;
        }
        let owner = match of {
            SpanOf::Thread => TimelineOwner::Thread(open.id),
            SpanOf::Process => TimelineOwner::Process(self.machine.thread(open.id).process),
            SpanOf::Recording => TimelineOwner::Recording,
        };
        let timeline = self.machine.add_timeline(name(timeline), owner);
        self.early += u64::from(start < 0.0);
        let start = nanoseconds(start);
        let span = self.machine.begin_span(timeline, name(called), start, attributes);
        self.note(start);
        if let Some(end) = end {
            let end = nanoseconds(end).max(start);
            self.machine.end_span(span, end);
            self.last = self.last.max(end);
        }
        true
    }

    fn add(&mut self, open: &mut Open<'_, '_>, stack: u32, sample: Sample) -> Result<(), ImportError> {
        let stack = self.code.stack(&mut self.machine, &open.tables, open.known, stack)?;
        self.note(sample.time);
        if self.machine.samples().len() >= MOST_SAMPLES {
            return Err(ImportError::TooMuch { what: "samples", limit: MOST_SAMPLES as u64 });
        }
        self.machine.add_sample(&Sample { thread: open.id, stack, ..sample });
        Ok(())
    }

    fn note(&mut self, time: Nanos) {
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
    }

    fn finish(mut self) -> Imported {
        let counters = self.file.counters.0.iter();
        let counters = counters.filter(|counter| counter.description.0 != ALLOCATED).count() as u64;
        let counted = [
            (self.without_stack, "markers without a stack are left out"),
            (self.spans_left_out, "spans are left out: there are too many"),
            (self.early, "times before the profile's beginning are taken for that"),
            (self.events.no_room, "samples are left out: there are too many kinds of markers"),
            (counters, "counters are left out"),
        ];
        let left_out = counted.into_iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, what)| format!("{count} {what}")).collect();
        let system = self.machine.system_mut();
        system.lost = lost_in(&system.account);
        system.end = self.last;
        // Others count times since something long ago: a browser since it was started, samply since the machine was.
        if !self.events.are_ours() && self.told == 0 {
            system.start = self.first.unwrap_or_default();
        }
        let symbols = self.code.frames.finish(&mut self.machine);
        Imported { machine: self.machine, symbols, left_out }
    }
}

/// What the counter of our allocations is called.
fn allocations(file: &File) -> &str {
    let mut counters = file.counters.0.iter();
    let ours = counters.find(|counter| counter.description.0 == ALLOCATED);
    ours.map_or("allocations", |counter| &*counter.name.0)
}

/// The times of a table's rows, which may be told each since the one before.
#[derive(Default)]
struct Times {
    milliseconds: f64,
}

impl Times {
    fn next(&mut self, samples: &Samples, row: u32) -> Nanos {
        if samples.time.len() > 0 {
            return nanoseconds(samples.time.get(row));
        }
        let delta = samples.time_deltas.get(row);
        self.milliseconds += if delta.is_nan() { 0.0 } else { delta };
        nanoseconds(self.milliseconds)
    }
}

/// Of milliseconds; what is none is 0.
fn nanoseconds(milliseconds: f64) -> Nanos {
    Nanos((milliseconds * 1e6).round() as u64)
}

/// The number that a pid or a tid begins with: a browser has several processes of one.
fn number(text: &str) -> u32 {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}
