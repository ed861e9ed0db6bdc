//! Events with stacks in, a machine with samples out.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::intern::{StackId, StringId};
use collector_common::record::{
    AttributeListId, AttributeValue, ClockAnchor, EventRecord, ExportMachine, Frame, FrameFlags, FrameId,
    Module, ModuleDetails, ModuleId, ModuleKind, ModuleMapping, ProcessId, Sample, SampleKind, SampleKindId,
    ThreadId, Unit,
};

use super::by_time::ALWAYS;
use super::code::{Called, Code, Found, KERNEL, Mapping, Place};
use super::event_kinds::{EventKinds, Kept, is_alone, name_of};
use super::methods::Methods;
use super::{programs, runtime, universal};
use crate::format::nettrace::{
    CUT_STACKS, Event, Label, LabelValue, PERIOD_OF, SAMPLER, SHOWN_KIND, Summary, Trace, UNIT_OF,
    UNKNOWN_LOSSES, UNKNOWN_TIME, read,
};
use crate::import::missing_end::tell_missing_end;
use crate::import::room::{FramesOfSamples, MOST_ATTRIBUTES, name};
use crate::import::{ImportError, Imported};
use crate::symbolize::Symbols;

const SECOND: u128 = 1_000_000_000;

/// Reads the samples of a trace of which the code is known, and its events into so many bytes.
pub(super) fn read_with(
    machine: ExportMachine,
    input: impl Read,
    code: Code,
    event_bytes: u64,
) -> Result<Imported, ImportError> {
    let samples = RefCell::new(Samples::of(machine, code, event_bytes));
    let summary =
        read(input, |trace| samples.borrow_mut().begin(trace), |event| samples.borrow_mut().take(event))?;
    let mut samples = samples.into_inner();
    samples.refused.take().map_or(Ok(()), Err)?;
    Ok(samples.finish(&summary))
}

/// What a module is known by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ModuleKey {
    /// A file, with where its addresses are linked for.
    File(StringId, Option<BuildId>),
    /// Code that was made at run time, from this file where that is known, and on which layer of it.
    Made(ProcessId, Option<StringId>, u32),
    Unknown(ProcessId),
}

/// A frame of an address.
#[derive(Clone, Copy)]
struct KnownFrame {
    frame: FrameId,
    /// By position in [`Samples::times`]; none where it is that frame always.
    times: u32,
}

/// What labels say.
#[derive(Clone, Copy)]
struct Told {
    attributes: AttributeListId,
    /// The stack ends before its root.
    is_cut: bool,
}

/// No position.
const NONE: u32 = u32::MAX;

struct Samples {
    code: Code,
    machine: ExportMachine,
    trace: Trace,
    /// By position of their lives.
    processes: Vec<Option<ProcessId>>,
    /// The process id and the life of the last event, and the ticks at which it is that life.
    life: (u64, u32, [u64; 2]),
    /// By process's and own id, and by name: a thread may have one after another.
    threads: HashMap<(ProcessId, u64, StringId), ThreadId>,
    /// By the position of the event's type in the trace; `None` where there are too many.
    kinds: HashMap<u32, Option<SampleKindId>>,
    /// By the same: whether no samples were taken of its events.
    are_alone: HashMap<u32, bool>,
    /// By the position of the list of labels in the trace.
    told_labels: HashMap<u32, Told>,
    /// By the position of the stack in the trace, and life, and whether it ends before its root: with the ticks at which it is that one.
    stacks: HashMap<(u32, u32, bool), (StackId, [u64; 2])>,
    /// Whether labels tell of stacks that end before their root.
    tells_cuts: bool,
    /// What our own files tell of kinds, by name.
    told: HashMap<String, (Unit, u64)>,
    modules: HashMap<ModuleKey, ModuleId>,
    /// By life, with a bit for whether the address is that of an instruction and none that is returned to, and address.
    frames: HashMap<(u64, u64), KnownFrame>,
    /// Ticks, the last one excluded, at which frames are these, of those that were others at other times.
    times: Vec<[u64; 2]>,
    called: BTreeMap<FrameId, Called>,
    methods: Methods,
    stack: Vec<FrameId>,
    /// How much of stacks was gone through.
    gone_through: FramesOfSamples,
    /// Why nothing more is taken.
    refused: Option<ImportError>,
    keeps_events: bool,
    event_kinds: EventKinds,
    without_stack: u64,
    /// Events that no samples were taken of.
    alone: u64,
    /// Events whose fields are not those that their type has.
    damaged: u64,
    /// Events with fields of types that mean none.
    undescribed: u64,
    /// Addresses in nothing that was told of.
    unknown: u64,
    last: Nanos,
}

impl Samples {
    fn of(mut machine: ExportMachine, code: Code, event_bytes: u64) -> Self {
        machine.event_records_mut().set_limit(event_bytes);
        Self {
            code,
            machine,
            trace: Trace { frequency: 1, ..Trace::default() },
            processes: Vec::new(),
            life: (0, NONE, [0; 2]),
            threads: HashMap::new(),
            kinds: HashMap::new(),
            are_alone: HashMap::new(),
            told_labels: HashMap::new(),
            stacks: HashMap::new(),
            tells_cuts: false,
            told: HashMap::new(),
            modules: HashMap::new(),
            frames: HashMap::new(),
            times: Vec::new(),
            called: BTreeMap::new(),
            methods: Methods::default(),
            stack: Vec::new(),
            gone_through: FramesOfSamples::default(),
            refused: None,
            keeps_events: event_bytes > 0,
            event_kinds: EventKinds::default(),
            without_stack: 0,
            alone: 0,
            damaged: 0,
            undescribed: 0,
            unknown: 0,
            last: Nanos(0),
        }
    }

    /// Ticks in nanoseconds.
    fn time(&self, ticks: u64) -> Nanos {
        let nanoseconds = u128::from(ticks) * SECOND / u128::from(self.trace.frequency.max(1));
        Nanos(nanoseconds.try_into().unwrap_or(u64::MAX))
    }

    fn begin(&mut self, trace: &Trace) {
        self.trace = trace.clone();
        let start = self.time(trace.ticks.max(0).cast_unsigned());
        let fact = |name: &str| fact(trace, name).to_owned();
        let system = self.machine.system_mut();
        (system.start, system.end) = (start, start);
        if fact(UNKNOWN_TIME).is_empty() {
            system.clocks.start = ClockAnchor::at(start, i128::from(trace.unix_milliseconds) * 1_000_000);
        }
        let booted: Option<u64> = fact("BootedUnixNanoseconds").parse().ok();
        if let (Some(anchor), Some(booted)) = (&mut system.clocks.start, booted) {
            anchor.boottime = anchor.realtime.checked_sub(booted).map(Nanos);
        }
        system.cpus = fact("HardwareThreadCount").parse().unwrap_or_default();
        (system.host, system.kernel) = (fact("Host"), fact("Kernel"));
        (system.distribution, system.processor) = (fact("Distribution"), fact("Processor"));
        system.memory = fact("MemoryBytes").parse().unwrap_or_default();
        (system.architecture, system.command) = (fact("Architecture"), fact("Command"));
        let told = [fact("Account"), fact("Metrics")];
        let lines = told.iter().flat_map(|lines| lines.lines()).filter(|line| !line.is_empty());
        system.account = lines.map(str::to_owned).collect();
        self.tells_cuts = !fact(CUT_STACKS).is_empty();
        self.add_kinds();
        self.add_processes();
        self.add_mappings();
    }

    /// The kinds that our own files tell of, in their order.
    fn add_kinds(&mut self) {
        let shown = fact(&self.trace, SHOWN_KIND).to_owned();
        let pairs = self.trace.pairs.iter();
        let periods: HashMap<&str, u64> = pairs
            .clone()
            .filter_map(|(key, period)| Some((key.strip_prefix(PERIOD_OF)?, period.parse().ok()?)))
            .collect();
        let told = pairs.filter_map(|(key, unit)| Some((key.strip_prefix(UNIT_OF)?, unit)));
        let told: Vec<(String, Unit, u64)> = told
            .take(ExportMachine::MOST_KINDS)
            .map(|(called, unit)| {
                let unit = Unit::by_name(unit).unwrap_or(Unit::Count);
                let period = periods.get(called).copied().unwrap_or(1);
                (name(called).to_owned(), unit, period.max(1))
            })
            .collect();
        for (called, unit, period) in told {
            if let Some(kind) = self.kind_of_name(&called, unit, period)
                && called == shown
            {
                self.machine.set_main_kind(kind);
            }
            self.told.entry(called).or_insert((unit, period));
        }
    }

    fn add_processes(&mut self) {
        let lives: Vec<u32> = self.code.lives.by_pid().flat_map(|(_, lives)| lives).copied().collect();
        for life in lives {
            self.process(life);
        }
    }

    /// The process of a life.
    fn process(&mut self, life: u32) -> ProcessId {
        let position = life as usize;
        match self.processes.get(position) {
            Some(&Some(known)) => return known,
            Some(None) => {}
            None => self.processes.resize(position + 1, None),
        }
        let id = self.add_process(life);
        self.processes[position] = Some(id);
        id
    }

    fn add_process(&mut self, life: u32) -> ProcessId {
        let pid = self.code.lives.pid(life);
        let Some(process) = self.code.lives.process(life) else {
            return self.machine.add_process(Pid(pid as u32), &unnamed_process(pid), None, Nanos(0));
        };
        let text = |id| self.code.strings.get(id);
        let arguments = process.command.map_or_else(Vec::new, |line| programs::arguments(text(line)));
        let called = process.name.map(text).or_else(|| programs::name(&arguments));
        let called = called.map_or_else(|| unnamed_process(pid), |called| name(called).to_owned());
        let start = process.start.map_or(Nanos(0), |ticks| self.time(ticks));
        let end = process.end.map(|ticks| self.time(ticks).max(start));
        let id = self.machine.add_process(Pid(pid as u32), &called, None, start);
        if !arguments.is_empty() {
            let program = self.machine.add_program(id, start, &called);
            self.machine.set_arguments(program, arguments.join("\0").as_bytes(), false);
        }
        if let Some(end) = end {
            self.machine.end_process(id, end);
        }
        if let Some(added) = self.machine.process_mut(id) {
            added.namespace_pid = process.namespace_pid.map(Pid);
        }
        id
    }

    fn add_mappings(&mut self) {
        for position in 0..self.code.mappings.len() {
            let mapping = self.code.mappings[position];
            if mapping.first >= KERNEL && !self.code.is_kernel_file(position as u32) {
                continue;
            }
            let process = self.process(mapping.life);
            let (module, bias) = self.mapped(position as u32);
            self.machine.add_mapping(ModuleMapping {
                process,
                module,
                start: Avma(mapping.first),
                end: Avma(mapping.end),
                file_offset: FileOffset(mapping.offset),
                bias,
                since: self.time(mapping.since),
            });
        }
    }

    /// The life that an event's process id has at its time.
    fn life(&mut self, event: &Event<'_>) -> u32 {
        let pid = event.thread.pid.unwrap_or_default();
        let (known, life, [from, until]) = self.life;
        if known == pid && is_in([from, until], event.time) {
            return life;
        }
        let (life, times) = self.code.lives.at(pid, event.time);
        self.life = (pid, life, times);
        life
    }

    fn thread(&mut self, event: &Event<'_>) -> ThreadId {
        let tid = event.thread.tid.unwrap_or_default();
        let life = self.life(event);
        let process = self.process(life);
        let name = match &event.thread.name {
            Some(called) => self.machine.intern_string(name(called)),
            None => self.machine.process(process).name,
        };
        let machine = &mut self.machine;
        let intern = || machine.intern_thread(process, Tid(tid as u32), name);
        *self.threads.entry((process, tid, name)).or_insert_with(intern)
    }

    /// The kind of an event's samples; `None` where there are too many.
    fn kind(&mut self, event: &Event<'_>) -> Option<SampleKindId> {
        let of = event.event_type;
        if let Some(&kind) = self.kinds.get(&of.position) {
            return kind;
        }
        let is_allocation = runtime::allocated(&of.provider, of.id, event.payload).is_some();
        let called = match &*of.provider {
            universal::EVENTS => of.name.clone(),
            SAMPLER => "thread_sample".to_owned(),
            runtime::RUNTIME if is_allocation => "alloc_space".to_owned(),
            _ => name_of(of),
        };
        let (unit, period) = match &*of.provider {
            universal::EVENTS => self.told.get(&called).copied().unwrap_or((Unit::Count, 1)),
            _ if is_allocation => (Unit::Bytes, 1),
            _ => (Unit::Count, 1),
        };
        let kind = self.kind_of_name(name(&called), unit, period);
        if let Some(kind) = kind.filter(|_| of.provider == SAMPLER) {
            // Not whatever happened first.
            self.machine.set_main_kind(kind);
        }
        self.kinds.insert(of.position, kind);
        kind
    }

    /// The kind of this name; versions of an event are one. `None` where there are too many.
    fn kind_of_name(&mut self, called: &str, unit: Unit, period: u64) -> Option<SampleKindId> {
        let name = self.machine.intern_string(called);
        let kinds = self.machine.kinds();
        let is_it = |kind: &SampleKind| (kind.name, kind.unit, kind.period) == (name, unit, period);
        if let Some(at) = kinds.iter().position(is_it) {
            // There are at most so many.
            return Some(SampleKindId(at as u16));
        }
        (kinds.len() < ExportMachine::MOST_KINDS).then(|| self.machine.add_kind(called, unit, period))
    }

    fn take(&mut self, event: &Event<'_>) {
        if self.refused.is_some() {
            return;
        }
        let time = self.time(event.time);
        self.last = self.last.max(time);
        let provider = &*event.event_type.provider;
        if provider == universal::SYSTEM {
            return;
        }
        let has_value = provider == universal::EVENTS;
        let of = event.event_type;
        let is_alone = *self.are_alone.entry(of.position).or_insert_with(|| is_alone(of));
        if provider == runtime::RUNDOWN || is_alone || event.stack().len() == 0 && !has_value {
            let is_sample = provider != runtime::RUNDOWN;
            if self.keeps_events {
                let stack = if is_alone { self.stack(event) } else { Some(StackId::EMPTY) };
                let Some(stack) = stack else { return };
                self.event(event, time, stack, None);
            } else if is_alone {
                self.alone += 1;
            } else {
                self.without_stack += u64::from(is_sample);
            }
            return;
        }
        let Some(kind) = self.kind(event) else {
            self.code.no_room += 1;
            return;
        };
        let value = if has_value {
            universal::value(event)
        } else {
            let bytes = runtime::allocated(provider, event.event_type.id, event.payload);
            bytes.map_or(1, |bytes| bytes.try_into().unwrap_or(i64::MAX))
        };
        let Some(stack) = self.stack(event) else { return };
        let thread = self.thread(event);
        let attributes = self.labels(event).attributes;
        let cpu = cpu(event);
        let sample = Sample { time, thread, stack, cpu, kind, value, attributes };
        if self.keeps_events && !has_value {
            self.event(event, time, stack, Some(&sample));
        } else {
            self.machine.add_sample(&sample);
            if !has_value && !event.payload.is_empty() {
                self.machine.event_records_mut().pass_over();
            }
        }
    }

    /// An event's stack; `None` where it is larger than any, or all are together, and nothing more is taken.
    fn stack(&mut self, event: &Event<'_>) -> Option<StackId> {
        self.refused = self.gone_through.add(event.stack().len()).err();
        if self.refused.is_some() {
            return None;
        }
        let life = self.life(event);
        let is_cut = self.labels(event).is_cut;
        let key = event.stack_position.map(|position| (position, life, is_cut));
        if let Some(&(known, times)) = key.and_then(|key| self.stacks.get(&key))
            && is_in(times, event.time)
        {
            return Some(known);
        }
        self.stack.clear();
        let [mut from, mut until] = ALWAYS;
        for (address, position) in event.stack().zip(0..) {
            let (frame, times) = self.frame(life, address, position == 0, event.time);
            (from, until) = (from.max(times[0]), until.min(times[1]));
            self.stack.push(frame);
        }
        if is_cut {
            let flags = FrameFlags(FrameFlags::CUT);
            let cut = Frame { module: ModuleId::KERNEL, address: Svma(0), flags };
            self.stack.push(self.machine.intern_frame(cut));
        }
        let stack = self.machine.intern_stack(&self.stack);
        if let Some(key) = key {
            self.stacks.insert(key, (stack, [from, until]));
        }
        Some(stack)
    }

    /// Keeps an event, with its sample where it has one.
    fn event(&mut self, event: &Event<'_>, time: Nanos, stack: StackId, sample: Option<&Sample>) {
        let kind = sample.map(|sample| sample.kind);
        let kept = self.event_kinds.of(&mut self.machine, event, self.trace.pointer_size, kind);
        let Some(Kept { kind, is_described }) = kept else {
            self.code.no_room += 1;
            return;
        };
        let bytes = if is_described { event.described().ok() } else { Some(Cow::Borrowed(event.payload)) };
        self.damaged += u64::from(bytes.is_none());
        self.undescribed += u64::from(event.event_type.has_more_fields);
        let bytes = bytes.unwrap_or_default();
        match sample {
            // Where there is no room, that is counted.
            Some(sample) if self.machine.event_records_mut().has_room(bytes.len()) => {
                self.machine.add_sample_of_event(sample, kind, &bytes);
            }
            Some(_) => {}
            None => {
                let (thread, cpu) = (self.thread(event), cpu(event));
                let attributes = self.labels(event).attributes;
                let record = EventRecord { time, thread, stack, cpu, kind, attributes };
                self.machine.add_event_record(&record, &bytes);
            }
        }
    }

    /// The frame of an address, and the ticks, the last one excluded, at which it is that one.
    fn frame(&mut self, life: u32, address: u64, is_exact: bool, time: u64) -> (FrameId, [u64; 2]) {
        let key = (u64::from(life) << 1 | u64::from(is_exact), address);
        let mut position = NONE;
        if let Some(known) = self.frames.get(&key) {
            let times = if known.times == NONE { ALWAYS } else { self.times[known.times as usize] };
            if is_in(times, time) {
                return (known.frame, times);
            }
            position = known.times;
        }
        let (frame, times) = self.new_frame(life, address, is_exact, time);
        if position != NONE {
            self.times[position as usize] = times;
        } else if times != ALWAYS {
            position = self.times.len() as u32;
            self.times.push(times);
        }
        self.frames.insert(key, KnownFrame { frame, times: position });
        (frame, times)
    }

    fn new_frame(&mut self, life: u32, address: u64, is_exact: bool, time: u64) -> (FrameId, [u64; 2]) {
        let mut flags = if is_exact { 0 } else { FrameFlags::RETURN_ADDRESS };
        let lookup = address.saturating_sub(u64::from(!is_exact));
        let is_kernel = address >= KERNEL;
        flags |= if is_kernel { FrameFlags::KERNEL } else { 0 };
        let mut found = self.code.at(life, address, lookup, time);
        let is_at_first_byte = found.place == Place::Unknown && !is_exact;
        if is_at_first_byte {
            found = self.code.at(life, address, address, time);
        }
        let Found { place, called, times } = found;
        self.unknown += u64::from(place == Place::Unknown && !is_kernel);
        let is_of_file = matches!(place, Place::Mapping(position) if self.code.is_kernel_file(position));
        let (module, address_there) = if is_kernel && !is_of_file {
            (ModuleId::KERNEL, address)
        } else {
            if is_at_first_byte && place != Place::Unknown {
                // Nothing can return there: some writers have the calling instruction on the stack.
                flags &= !FrameFlags::RETURN_ADDRESS;
            }
            self.place(life, place, address)
        };
        let frame = Frame { module, address: Svma(address_there), flags: FrameFlags(flags) };
        let frame = self.machine.intern_frame(frame);
        self.called.extend(called.map(|called| (frame, called)));
        (frame, times)
    }

    /// The module of a place, and the address in it.
    fn place(&mut self, life: u32, place: Place, address: u64) -> (ModuleId, u64) {
        let process = self.process(life);
        match place {
            Place::Mapping(position) => {
                let (module, bias) = self.mapped(position);
                (module, address.wrapping_sub(bias))
            }
            Place::Method(method) => {
                let module = self.made(process, method.file, 0);
                self.methods.add(process, method, module);
                (module, address)
            }
            Place::Unknown => {
                let (key, kind) = (ModuleKey::Unknown(process), ModuleKind::Unmapped(process));
                (self.module(key, kind, "[unmapped]", None), address)
            }
        }
    }

    /// The module of code that was made at run time, by its file where that is known.
    fn made(&mut self, process: ProcessId, file: Option<StringId>, layer: u32) -> ModuleId {
        let path = file.map_or("[managed]", |file| self.code.strings.get(file)).to_owned();
        self.module(ModuleKey::Made(process, file, layer), ModuleKind::Anonymous(process), &path, None)
    }

    /// The module of a mapping, and what lies between addresses in the process and those of the module.
    fn mapped(&mut self, position: u32) -> (ModuleId, u64) {
        let mapping = self.code.mappings[position as usize];
        if mapping.is_made(self.code.strings.get(mapping.file)) {
            let process = self.process(mapping.life);
            return (self.made(process, Some(mapping.file), self.code.layer(position)), 0);
        }
        (self.file(&mapping), mapping.bias(self.code.file(&mapping)))
    }

    /// The module of a mapped file.
    fn file(&mut self, mapping: &Mapping) -> ModuleId {
        let build_id = self.code.file(mapping).and_then(|file| file.build_id);
        let key = ModuleKey::File(mapping.file, build_id);
        if let Some(&known) = self.modules.get(&key) {
            return known;
        }
        let path = self.code.strings.get(mapping.file).to_owned();
        let module = self.module(key, ModuleKind::File, &path, build_id);
        let details = self.code.take_details(mapping);
        if details != ModuleDetails::default() {
            self.machine.set_details(module, details);
        }
        module
    }

    fn module(
        &mut self,
        key: ModuleKey,
        kind: ModuleKind,
        path: &str,
        build_id: Option<BuildId>,
    ) -> ModuleId {
        let machine = &mut self.machine;
        *self.modules.entry(key).or_insert_with(|| {
            let path = machine.intern_string(name(path));
            machine.add_module(Module { kind, path, build_id })
        })
    }

    /// What labels say. Those of one list are looked at once, however many events have it.
    fn labels(&mut self, event: &Event<'_>) -> Told {
        if let Some(&known) = event.label_list.and_then(|list| self.told_labels.get(&list)) {
            return known;
        }
        let cut = if self.tells_cuts { cut_at(event.labels) } else { None };
        let told = Told { attributes: self.attributes(event.labels, cut), is_cut: cut.is_some() };
        if let Some(list) = event.label_list {
            self.told_labels.insert(list, told);
        }
        told
    }

    /// Labels but for the one at a position.
    fn attributes(&mut self, labels: &[Label], without: Option<usize>) -> AttributeListId {
        let machine = &mut self.machine;
        let list: Vec<_> = labels
            .iter()
            .enumerate()
            .filter(|&(at, _)| Some(at) != without)
            .take(MOST_ATTRIBUTES)
            .map(|(_, label)| {
                let value = match &label.value {
                    LabelValue::Text(text) => machine.intern_string(name(text)).into(),
                    LabelValue::Number(number) => AttributeValue::Number(*number),
                    LabelValue::Known(number) => match i64::try_from(*number) {
                        Ok(number) => AttributeValue::Number(number),
                        Err(_) => machine.intern_string(&number.to_string()).into(),
                    },
                    LabelValue::Id(id) => {
                        machine.intern_string(&format!("{:032x}", u128::from_be_bytes(*id))).into()
                    }
                };
                (machine.intern_string(name(&label.key)), value)
            })
            .collect();
        machine.attributes_mut().intern(&list)
    }

    fn finish(mut self, summary: &Summary) -> Imported {
        self.methods.map(&mut self.machine);
        let no_room = self.machine.event_records().lost();
        let lost = summary.lost.saturating_add(no_room);
        let is_unknown = lost == 0 && !fact(&self.trace, UNKNOWN_LOSSES).is_empty();
        let system = self.machine.system_mut();
        (system.end, system.lost) = (self.last.max(system.start), (!is_unknown).then_some(lost));
        let mut symbols = Symbols::unresolved(&self.machine);
        for (frame, Called { name, signature }) in &self.called {
            let name = self.code.strings.get(*name);
            let signature = signature.map_or("", |signature| self.code.strings.get(signature));
            let linkage = if signature.is_empty() { name.to_owned() } else { format!("{name} {signature}") };
            symbols.set(*frame, name, &linkage);
        }
        // Where files are mapped, others tell of methods.
        let lacks_rundown = self.code.heard.lacks_rundown() && self.code.mappings.is_empty();
        let counted = [
            (self.without_stack, "events without a stack are left out"),
            (self.alone, "events that no samples were taken of are left out"),
            (self.code.not_understood, "events that tell of code could not be understood"),
            (self.code.no_room, "events are left out: there are too many of their kind"),
            (no_room, "events are lost: there is no more room for them"),
            (
                summary.misplaced,
                "times of events and sequence points are outside of what the trace tells of them; they are kept",
            ),
            (self.damaged, "events have no fields: their bytes are not those of their type"),
            (
                self.undescribed,
                "events have fields of types that mean none; these, and what is behind them, are bytes alone",
            ),
            (if lacks_rundown { self.unknown } else { 0 }, no_rundown(summary.cut_at.is_some())),
        ];
        let left_out = counted.into_iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, what)| format!("{count} {what}")).collect();
        let mut imported = Imported { machine: self.machine, symbols, left_out };
        if let Some(position) = summary.cut_at {
            tell_missing_end(&mut imported, &format!("the file ends at byte {position}"));
        }
        imported
    }
}

/// Why addresses of .NET's methods have no name, of a trace that is cut or not, and what to do.
const fn no_rundown(is_cut: bool) -> &'static str {
    if is_cut {
        "addresses on stacks have no name: the trace is cut before its rundown, in which .NET's runtime tells of methods that were \
         compiled before; stop what records instead of killing it, and wait for its end"
    } else {
        "addresses on stacks have no name: the trace has no rundown, in which .NET's runtime tells of methods that were compiled \
         before; record with one (dotnet-trace: without `--rundown false`)"
    }
}

/// A fact that a trace tells by name; empty where it does not.
fn fact<'a>(trace: &'a Trace, name: &str) -> &'a str {
    trace.pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

/// Which label tells that the stack ends before its root: in our files those of the stack come before a sample's attributes.
fn cut_at(labels: &[Label]) -> Option<usize> {
    let is = |at: usize, wanted: &str, said: &str| {
        let is_it = |Label { key, value }: &Label| {
            key == wanted && matches!(value, LabelValue::Text(text) if text == said)
        };
        labels.get(at).is_some_and(is_it)
    };
    let at = usize::from(is(0, "frames", "guessed"));
    is(at, "stack", "cut").then_some(at)
}

/// The processor; 0, as of all that tells none, where it is not told: .NET's runtime knows it on Windows alone.
fn cpu(event: &Event<'_>) -> u16 {
    if event.processor == u32::MAX { 0 } else { event.processor as u16 }
}

const fn is_in([from, until]: [u64; 2], time: u64) -> bool {
    from <= time && time < until
}

/// As `PerfView` calls a process of which no name is told.
fn unnamed_process(pid: u64) -> String {
    format!("Process({pid})")
}
