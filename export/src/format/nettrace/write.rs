//! A [`Profile`] in, a trace out.
//!
//! Samples are events of `Universal.Events`, named after their kind, with their value. Raw events are of their own provider, with
//! their fields, and stand for the samples that were taken of them. Processes, mappings and names are
//! events of `Universal.System`. `PerfView` names what is named here without symbol files, and can look for those of other
//! frames by build id. A sample's attributes are its labels, with `frames`: `guessed` where a heuristic found some of its
//! stack, and `stack`: `cut` where that ends before its root.
//!
//! What was lost is told as the number of all samples that were, at the end of the trace and of the thread that
//! records it: which threads they would have been of is not known.

use std::io::{self, Write};

use collector_common::event::EventData;
use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{
    AttributeListId, EventKindId, EventRecord, ExportMachine, FrameFlags, FrameId, Happened, ModuleId,
    ModuleKind, ModuleMapping, ProcessId, Sample, ThreadId,
};

use super::blocks::{Blocks, Kind};
use super::descriptions::descriptions;
use super::event_fields;
use super::event_types::{self, EventType};
use super::labels::{self, Quality};
use super::names;
use super::places::{MappingNumber, Places, is_kernel};
use super::stream::{Event, RECORDER, Stream};
use super::types::{self, SystemEvent};
use super::wire::event_text;
use crate::format::{ExportFormat, Holds, Part, Profile, start};
use crate::leb128;
use crate::table::Table;

/// The nettrace format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nettrace;

impl ExportFormat for Nettrace {
    fn name(&self) -> &'static str {
        "nettrace"
    }

    fn ending(&self) -> &'static str {
        ".nettrace"
    }

    fn description(&self) -> &'static str {
        "every sample with its time, stack and labels, events with their fields, processes with their mappings, for PerfView"
    }

    fn holds(&self) -> Holds {
        Holds::everything().without(&[
            Part::Owners,
            Part::Containers,
            Part::Programs,
            Part::Parents,
            Part::ExitStatuses,
            Part::Lines,
            Part::Sources,
            Part::Inlined,
            Part::FrameRules,
            Part::Spans,
            Part::Tables,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let start = start(profile.machine);
        let signed = signed_kinds(profile.machine);
        let threads = ThreadIndexes::of(profile.machine);
        let mut blocks = Blocks::begin(out)?;
        blocks.write(Kind::Trace, &types::trace(profile.machine, start))?;
        blocks.write(Kind::Metadata, &types::metadata(profile.machine, &signed))?;
        let (event_types, rows) = event_types::all(profile.machine);
        rows.iter().try_for_each(|rows| blocks.write(Kind::Metadata, rows))?;
        threads.write(profile.machine, &mut blocks)?;
        let places = Places::of(profile.machine);
        let has_linux = has_linux(profile, places.mappings());
        let metadata = Table::default();
        let stream = Stream::new(blocks);
        let payload = Vec::new();
        Writer { profile, start, signed, event_types, threads, places, has_linux, metadata, stream, payload }
            .write()
    }
}

/// Times have 63 bits there.
fn tick(time: Nanos) -> Nanos {
    time.min(Nanos(i64::MAX.cast_unsigned()))
}

/// The recording's start, or what was taken before it. What was there before is told of then.
fn start(machine: &ExportMachine) -> Nanos {
    let times = machine.event_records().times().iter().copied();
    tick(times.fold(start::start(machine), Nanos::min))
}

/// By kind: whether it has negative values. Those of the kinds that the specification names are never negative.
fn signed_kinds(machine: &ExportMachine) -> Vec<bool> {
    let mut signed = vec![false; machine.kinds().len()];
    for sample in machine.samples().iter().filter(|sample| sample.value < 0) {
        if let Some(is_signed) = signed.get_mut(usize::from(sample.kind.0)) {
            *is_signed = true;
        }
    }
    for (is_signed, kind) in signed.iter_mut().zip(machine.kinds()) {
        *is_signed &= !matches!(machine.string(kind.name), "cpu" | "cswitch");
    }
    signed
}

/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// Whether there is code of a kernel that is one thing. Where files are mapped in the kernel's half, it is Windows's, and what is in none of
/// them is told of only if it has a name.
fn has_linux(Profile { machine, symbols }: Profile<'_>, mappings: &[ModuleMapping]) -> bool {
    let has_files = mappings.iter().any(|mapping| mapping.start.0 >= KERNEL);
    machine.frames().iter().zip(0..).any(|(frame, id)| {
        let is_code = is_kernel(machine, frame.module) && !frame.flags.has(FrameFlags::CUT);
        is_code && (!has_files || symbols.is_resolved(FrameId(id)))
    })
}

/// How threads are referred to: first the one that records, then those of the machine, then one for each process that has
/// no main thread among them.
struct ThreadIndexes {
    /// By process.
    main: Vec<u64>,
}

impl ThreadIndexes {
    const FIRST: u64 = RECORDER + 1;

    fn of(machine: &ExportMachine) -> Self {
        let mut main = vec![0; machine.processes().len()];
        for (thread, index) in machine.threads().iter().zip(Self::FIRST..) {
            let pid = machine.process(thread.process).pid;
            if let Some(main) = main.get_mut(thread.process.0 as usize)
                && *main == 0
                && pid.0 == thread.tid.0
            {
                *main = index;
            }
        }
        let added = Self::FIRST + machine.threads().len() as u64..;
        for (main, index) in main.iter_mut().filter(|main| **main == 0).zip(added) {
            *main = index;
        }
        Self { main }
    }

    const fn thread(thread: ThreadId) -> u64 {
        Self::FIRST + thread.0 as u64
    }

    fn process(&self, process: ProcessId) -> u64 {
        self.main.get(process.0 as usize).copied().unwrap_or(RECORDER)
    }

    fn write(&self, machine: &ExportMachine, blocks: &mut Blocks<'_>) -> io::Result<()> {
        const PIECE: usize = 1 << 20;
        let threads = machine.threads().iter().zip(Self::FIRST..);
        let threads = threads
            .map(|(thread, index)| (index, machine.string(thread.name), types::ids_of(machine, thread)));
        let added = Self::FIRST + machine.threads().len() as u64;
        let processes = machine.processes().iter().zip(&self.main).filter(|(_, index)| **index >= added);
        let processes = processes
            .map(|(process, &index)| (index, machine.string(process.name), (process.pid.0, process.pid.0)));
        let mut rows = Vec::new();
        types::thread(&mut rows, RECORDER, "collector", None);
        for (index, name, ids) in threads.chain(processes) {
            types::thread(&mut rows, index, name, Some(ids));
            if rows.len() >= PIECE {
                blocks.write(Kind::Thread, &rows)?;
                rows.clear();
            }
        }
        if rows.is_empty() { Ok(()) } else { blocks.write(Kind::Thread, &rows) }
    }
}

/// `PerfView` keeps the size of an event in 16 bits.
const LARGEST_EVENT: usize = u16::MAX as usize;

/// What samples and raw events have in common.
struct Occurrence {
    time: Nanos,
    thread: ThreadId,
    stack: StackId,
    cpu: u16,
    attributes: AttributeListId,
    /// Whether something of it is not in the payload.
    is_partial: bool,
}

struct Writer<'a> {
    profile: Profile<'a>,
    start: Nanos,
    signed: Vec<bool>,
    /// By kind of raw event.
    event_types: Vec<EventType>,
    threads: ThreadIndexes,
    places: Places<'a>,
    /// Whether processes have a part of Linux's kernel.
    has_linux: bool,
    /// Numbers of what is told of files: by module, and by where it is linked for and begins in the file.
    metadata: Table<(ModuleId, u64, u64), u64>,
    stream: Stream<'a>,
    payload: Vec<u8>,
}

impl Writer<'_> {
    fn write(mut self) -> io::Result<()> {
        let machine = self.profile.machine;
        let mut end = tick(machine.system().end).max(self.start);
        for (time, happened) in machine.in_time_order() {
            let time = tick(time).max(self.start);
            end = end.max(time);
            match happened {
                Happened::ProcessStarted(process) => {
                    let start = machine.process(process).start;
                    let is_new = start >= self.start && start != Nanos(0);
                    let event =
                        if is_new { SystemEvent::ProcessCreate } else { SystemEvent::ExistingProcess };
                    self.process(event, process, time)?;
                    self.made_up(process, time)?;
                }
                // The format has no event of it.
                Happened::Executed(_) | Happened::SpanBegan(..) => {}
                Happened::Mapped(at, mapping) => self.mapping(at, mapping, time)?,
                Happened::Sampled(sample) => self.sample(&sample)?,
                Happened::SampledEvent(sample, id) => match machine.event_records().get(id) {
                    Some((record, bytes)) if self.is_told(record.kind) => {
                        self.event(&record, bytes, true)?;
                    }
                    _ => self.sample(&sample)?,
                },
                Happened::Event(id) => {
                    if let Some((record, bytes)) = machine.event_records().get(id) {
                        self.event(&record, bytes, false)?;
                    }
                }
                Happened::ProcessEnded(process) => {
                    self.payload.clear();
                    self.system(SystemEvent::ProcessExit, process, time)?;
                }
            }
        }
        self.names(end)?;
        self.stream.end(end, machine.system().lost.unwrap_or_default())
    }

    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.payload.clear();
        if self.signed.get(usize::from(sample.kind.0)).copied().unwrap_or_default() {
            leb128::write(&mut self.payload, leb128::zigzag(sample.value));
        } else {
            leb128::write(&mut self.payload, sample.value.max(0).cast_unsigned());
        }
        let &Sample { time, thread, stack, cpu, attributes, .. } = sample;
        let of = Occurrence { time, thread, stack, cpu, attributes, is_partial: false };
        self.occurred(types::metadata_of_kind(sample.kind.0), &of)
    }

    /// Whether there is more to tell of events of a kind than their samples do.
    fn is_told(&self, kind: EventKindId) -> bool {
        self.event_types.get(usize::from(kind.0)).is_some_and(|of| of.is_told)
    }

    fn event(&mut self, record: &EventRecord, bytes: &[u8], is_sampled: bool) -> io::Result<()> {
        let position = usize::from(record.kind.0);
        let machine = self.profile.machine;
        let (Some(of), Some(kind)) = (self.event_types.get(position), machine.event_kinds().get(position))
        else {
            return Ok(());
        };
        self.payload.clear();
        let is_whole = if of.is_described {
            event_fields::write(&mut self.payload, &EventData::new(bytes, bytes, &kind.format))
        } else {
            let own = &bytes[..bytes.len().min(LARGEST_EVENT)];
            self.payload.extend_from_slice(own);
            own.len() == bytes.len()
        };
        let has_stack = record.stack != StackId::EMPTY;
        let number = if has_stack && !is_sampled { of.alone } else { of.number };
        let &EventRecord { time, thread, stack, cpu, attributes, .. } = record;
        self.occurred(number, &Occurrence { time, thread, stack, cpu, attributes, is_partial: !is_whole })
    }

    /// Adds the event whose payload was made, with its stack and labels.
    fn occurred(&mut self, metadata: u32, of: &Occurrence) -> io::Result<()> {
        let machine = self.profile.machine;
        let time = tick(of.time);
        self.stream.prepare(time)?;
        let process = machine.thread(of.thread).process;
        let epoch = self.places.epoch(process, of.stack, of.time);
        let places = &mut self.places;
        let (stack, mut quality) = self.stream.stack((process, epoch, of.stack), |addresses| {
            let mut quality = Quality::default();
            for &id in machine.stacks().get(of.stack) {
                let frame = machine.frames().get(id);
                quality.is_guessed |= frame.flags.has(FrameFlags::HEURISTIC);
                if frame.flags.has(FrameFlags::CUT) {
                    quality.is_cut = true;
                } else {
                    addresses.push(places.address(process, id, of.time));
                }
            }
            quality
        });
        quality.is_partial = of.is_partial;
        let labels =
            self.stream.labels((of.attributes, quality), || labels::list(machine, of.attributes, quality));
        self.stream.event(&Event {
            metadata,
            thread: ThreadIndexes::thread(of.thread),
            cpu: of.cpu.into(),
            time,
            stack,
            labels,
            payload: &self.payload,
        });
        Ok(())
    }

    /// A process, with its part of the kernel where that is known as one.
    fn process(&mut self, event: SystemEvent, id: ProcessId, time: Nanos) -> io::Result<()> {
        const RANGE: [u64; 3] = [KERNEL, u64::MAX, 0];
        let machine = self.profile.machine;
        let process = machine.process(id);
        self.payload.clear();
        // Not the namespace's: it is the process's pid there.
        leb128::write(&mut self.payload, process.namespace_pid.unwrap_or(process.pid).0.into());
        event_text(&mut self.payload, machine.string(process.name));
        event_text(&mut self.payload, "");
        self.system(event, id, time)?;
        if !self.has_linux {
            return Ok(());
        }
        self.mapped(MappingNumber::KERNEL, RANGE, "vmlinux", 0);
        self.system(SystemEvent::ProcessMapping, id, time)
    }

    /// Mappings in a process of files whose place in it nobody tells; they are sorted by process.
    fn made_up(&mut self, process: ProcessId, time: Nanos) -> io::Result<()> {
        let told = self.profile.machine.mappings().len();
        let first =
            told + self.places.mappings()[told..].partition_point(|mapping| mapping.process < process);
        for at in first.. {
            match self.places.mappings().get(at).copied() {
                Some(mapping) if mapping.process == process => self.mapping(at as u32, &mapping, time)?,
                _ => break,
            }
        }
        Ok(())
    }

    fn mapping(&mut self, at: u32, mapping: &ModuleMapping, time: Nanos) -> io::Result<()> {
        let machine = self.profile.machine;
        let module = machine.module(mapping.module);
        let metadata = match module.kind {
            ModuleKind::File | ModuleKind::Vdso => self.file(mapping, time)?,
            _ => 0,
        };
        let range = [mapping.start.0, mapping.end.0, mapping.file_offset.0];
        self.mapped(MappingNumber::at(at), range, machine.string(module.path), metadata);
        self.system(SystemEvent::ProcessMapping, mapping.process, time)
    }

    /// Makes the payload of a mapping, of which are known the start, the end, and where it starts in the file.
    fn mapped(&mut self, number: MappingNumber, range: [u64; 3], path: &str, metadata: u64) {
        self.payload.clear();
        leb128::write(&mut self.payload, number.number());
        for part in range {
            leb128::write(&mut self.payload, part);
        }
        event_text(&mut self.payload, path);
        leb128::write(&mut self.payload, metadata);
    }

    /// The number of what is told of a mapped file, which is told if it is new.
    fn file(&mut self, mapping: &ModuleMapping, time: Nanos) -> io::Result<u64> {
        let linked = mapping.start.0.wrapping_sub(mapping.bias);
        let key = (mapping.module, linked, mapping.file_offset.0);
        let next = self.metadata.len() as u64 + 1;
        let number = *self.metadata.entry(key).or_insert(next);
        if number == next {
            let [symbols, version] = descriptions(self.profile.machine, mapping, linked);
            self.payload.clear();
            leb128::write(&mut self.payload, number);
            event_text(&mut self.payload, &symbols);
            event_text(&mut self.payload, &version);
            self.system(SystemEvent::ProcessMappingMetadata, mapping.process, time)?;
        }
        Ok(number)
    }

    /// Tells all names, each in a process that has its mapping.
    fn names(&mut self, time: Nanos) -> io::Result<()> {
        let symbols = self.profile.symbols;
        for (range, id) in names::ranges(self.profile, &self.places).into_iter().zip(1..) {
            let position = range.mapping.position();
            let mapping = position.and_then(|position| self.places.mappings().get(position));
            let process = mapping.map_or(ProcessId(0), |mapping| mapping.process);
            self.payload.clear();
            for number in [id, range.mapping.number(), range.first, range.last] {
                leb128::write(&mut self.payload, number);
            }
            event_text(&mut self.payload, symbols.function(range.name));
            self.system(SystemEvent::ProcessSymbol, process, time)?;
        }
        Ok(())
    }

    /// Adds the event of the system whose payload was made.
    fn system(&mut self, event: SystemEvent, process: ProcessId, time: Nanos) -> io::Result<()> {
        self.stream.prepare(time)?;
        self.stream.event(&Event {
            metadata: event.metadata(),
            thread: self.threads.process(process),
            cpu: 0,
            time,
            stack: 0,
            labels: 0,
            payload: &self.payload,
        });
        Ok(())
    }
}
