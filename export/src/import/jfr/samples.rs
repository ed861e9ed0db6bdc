//! Chunks in, a machine out: events with stacks become samples, and our own spans are spans again.

use std::collections::HashMap;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid, Uid};
use collector_common::intern::StringId;
use collector_common::record::{
    AttributeListId, AttributeValue, ClockAnchor, ExportMachine, ModuleMapping, ProcessId, Sample,
    SampleKindId, ThreadId, TimelineOwner, Unit,
};

use super::attributes::{Numbers, pairs};
use super::code::{Code, TooDeep, java_class};
use super::events::{Chunk, Clock, Constant, Event, Type, Value};
use super::facts::{Facts, kernel};
use super::roles::Role;
use crate::import::room::{DEEPEST, MOST_ATTRIBUTES, name};
use crate::import::{ImportError, Imported};

/// The most spans: an event of one is smaller than what it becomes.
const MOST_SPANS: usize = 1 << 22;

/// What virtual threads without a name are called, as most of them are.
const VIRTUAL: &str = "[virtual]";

/// The type of our own spans.
const SPAN: &str = "collector.Span";

/// What the events of a type become.
struct Known {
    role: Role,
    kind: SampleKindId,
    /// Fields that have a class: their positions and names.
    classes: Vec<(usize, String)>,
    numbers: Numbers,
}

/// A machine that is being filled.
#[derive(Default)]
pub(super) struct Samples {
    machine: ExportMachine,
    code: Code,
    facts: Facts,
    /// The first chunk's clock, which the machine's is.
    clock: Option<Clock>,
    /// By pid, of which nothing is told.
    processes: HashMap<u32, ProcessId>,
    /// As they were told of.
    told: Vec<ProcessId>,
    kinds: HashMap<(String, Unit), SampleKindId>,
    /// Of the chunk that is being read, by the numbers of their constants.
    threads: HashMap<Constant, ThreadId>,
    /// Of all chunks up to now. Hotspot tells of a thread in the chunk in which it met it, and may write an event of it into the next one,
    /// where it is not told of again.
    met: HashMap<u64, ThreadId>,
    /// Our own attributes, by type of event, text, and which of the fields that are numbers there are: of the chunk that is being read.
    attributes: HashMap<(u64, StringId, u64), AttributeListId>,
    /// What these are taken apart into, by text.
    pairs: HashMap<StringId, Vec<OwnPair>>,
    without_stack: u64,
    without_room: u64,
    spans_left_out: u64,
    end: Nanos,
}

/// An attribute of ours: its key, and its value, which is text unless a field says that it is a number.
struct OwnPair {
    id: StringId,
    key: String,
    value: String,
    text: Option<StringId>,
}

impl Samples {
    /// None yet, for a machine that is filled with them.
    pub(super) fn of(machine: ExportMachine) -> Self {
        Self { machine, ..Self::default() }
    }

    /// The time of a chunk's tick, as the first chunk's clock goes.
    fn time(&self, clock: Clock, ticks: u64) -> Nanos {
        let first = self.clock.unwrap_or(clock);
        let since = clock.unix(ticks).wrapping_sub(first.start).cast_unsigned();
        Nanos(first.nanoseconds(first.start_ticks).wrapping_add(since))
    }

    pub(super) fn take(&mut self, chunk: &Chunk) -> Result<(), ImportError> {
        let clock = chunk.clock();
        self.clock.get_or_insert(clock);
        self.code.begin_chunk(chunk.len());
        self.threads.clear();
        self.attributes.clear();
        self.pairs.clear();
        let told = self.facts.processes.len();
        self.facts.take(chunk, &mut self.code.texts);
        self.add_processes(told, clock);
        self.add_programs(clock);
        self.code.build_ids.extend(self.facts.build_ids.drain());
        self.add_mappings(clock);
        let ended = self.time(clock, clock.start_ticks).0.saturating_add(clock.duration);
        self.end = self.end.max(Nanos(ended));
        let known = self.known_types(chunk);
        let is_ours = self.facts.recording.is_some();
        let of_spans = chunk.type_named(SPAN).map(Numbers::of).unwrap_or_default();
        for event in chunk.events() {
            if is_ours && event.name() == SPAN {
                self.span(chunk, &event, &of_spans);
                continue;
            }
            self.sample(chunk, known.get(&event.kind().id()).and_then(Option::as_ref), &event)?;
        }
        Ok(())
    }

    /// What the events of a chunk's types become. What is best known is the first kind, as some formats have no other.
    fn known_types(&mut self, chunk: &Chunk) -> HashMap<u64, Option<Known>> {
        let mut met = HashMap::new();
        for event in chunk.events() {
            let next = met.len();
            met.entry(event.kind().id()).or_insert((next, event.kind()));
        }
        let mut types: Vec<(usize, &Type)> = met.into_values().collect();
        let rank = |kind: &Type| Role::of(kind).map_or(usize::MAX, |role| role.rank());
        types.sort_by_cached_key(|&(position, kind)| (rank(kind), position));
        types.into_iter().map(|(_, kind)| (kind.id(), self.known(chunk, kind))).collect()
    }

    fn add_processes(&mut self, from: usize, clock: Clock) {
        for told in self.facts.processes.get(from..).unwrap_or_default().to_vec() {
            let parent = self.facts.life(told.parent, None, told.first_seen);
            let parent = parent.and_then(|position| self.told.get(position)).copied();
            let start = told.start.map_or(Nanos(0), |start| self.time(clock, start));
            let process =
                self.machine.add_process(Pid(told.pid), self.code.texts.name(told.name), parent, start);
            if let Some(end) = told.end {
                self.machine.end_process(process, self.time(clock, end));
            }
            if let Some(known) = self.machine.process_mut(process) {
                (known.user, known.namespace_pid) = (told.user.map(Uid), told.namespace_pid.map(Pid));
                known.exit = told.exit;
            }
            let [user, cgroup] = [told.user_name, told.cgroup].map(|text| self.code.texts.name(text));
            if let Some(id) = told.user.filter(|_| !user.is_empty()) {
                self.machine.name_user(Uid(id), user);
            }
            if !cgroup.is_empty() {
                self.machine.set_cgroup(process, cgroup);
            }
            self.told.push(process);
        }
    }

    fn add_programs(&mut self, clock: Clock) {
        for told in std::mem::take(&mut self.facts.programs) {
            let Some(&process) = self.told.get(told.process) else { continue };
            let since = self.since(clock, told.process, told.since);
            let id = self.machine.add_program(process, since, self.code.texts.name(told.name));
            self.machine.set_arguments(id, told.arguments.as_bytes(), told.are_cut);
        }
    }

    fn add_mappings(&mut self, clock: Clock) {
        for told in std::mem::take(&mut self.facts.mappings) {
            let Some(&process) = self.told.get(told.process) else { continue };
            let mapping = ModuleMapping {
                process,
                module: self.code.module(&mut self.machine, process, told.path, false),
                start: Avma(told.start),
                end: Avma(told.end),
                file_offset: FileOffset(told.file_offset),
                bias: told.bias,
                since: self.since(clock, told.process, told.since),
            };
            self.machine.add_mapping(mapping);
        }
    }

    /// When something of a process was: 0 for what is told with one that was there before the recording.
    fn since(&self, clock: Clock, process: usize, ticks: u64) -> Nanos {
        let process = self.facts.processes.get(process);
        let was_there = process.is_some_and(|of| of.start.is_none() && of.first_seen == ticks);
        if was_there { Nanos(0) } else { self.time(clock, ticks) }
    }

    /// What the events of a type become; `None` where they are no samples, or there are too many kinds.
    fn known(&mut self, chunk: &Chunk, kind: &Type) -> Option<Known> {
        let role = Role::of(kind)?;
        let key = (role.name.clone(), role.unit);
        let known = self.kinds.get(&key).copied();
        let kind_id = match known {
            Some(known) => known,
            None if self.machine.kinds().len() >= ExportMachine::MOST_KINDS => {
                return None;
            }
            None => {
                // The JDK has another clock for native code, of which alone there may be samples at first.
                let java = chunk.type_named("jdk.ExecutionSample").filter(|_| role.name == "cpu");
                let mut ids = java.into_iter().chain([kind]).map(Type::id);
                let period = ids.find_map(|id| self.facts.periods.get(&id).copied());
                let period = period.or(self.facts.wall_period.filter(|_| role.is_wall_clock));
                let period = if role.unit == Unit::Count { period.unwrap_or(1) } else { 1 };
                let added = self.machine.add_kind(name(&role.name), role.unit, period);
                self.kinds.insert(key, added);
                added
            }
        };
        let is_ours = self.facts.recording.is_some();
        let fields = kind.fields().iter().enumerate().filter(|_| !is_ours);
        let classes = fields.filter(|(_, field)| chunk.kind_of(field).name() == "java.lang.Class");
        let classes = classes.map(|(position, field)| (position, name(field.name()).to_owned()));
        let classes = classes.take(MOST_ATTRIBUTES).collect();
        Some(Known { role, kind: kind_id, classes, numbers: Numbers::of(kind) })
    }

    fn sample(&mut self, chunk: &Chunk, known: Option<&Known>, event: &Event<'_>) -> Result<(), ImportError> {
        let Some(Known { role, kind, classes, numbers }) = known else {
            self.without_room += u64::from(Role::of(event.kind()).is_some());
            return Ok(());
        };
        let stack = event.get("stackTrace");
        if stack.fields().is_none() && !role.may_lack_stack {
            self.without_stack += 1;
            return Ok(());
        }
        let thread = role.thread.map_or(Value::Null, |field| event.get(field));
        let constant = role.thread.and_then(|field| event.fields().constant_of(field));
        let thread = self.thread(&thread, constant, event.ticks());
        let process = self.machine.thread(thread).process;
        let number = self.machine.samples().len() + 1;
        let stack = self.code.stack(&mut self.machine, process, &stack).map_err(|TooDeep| {
            let place = format!("sample {number}");
            ImportError::TooLarge { place, what: "functions on its stack", limit: DEEPEST }
        })?;
        let sample = Sample {
            time: self.time(chunk.clock(), event.ticks()),
            thread,
            stack,
            cpu: event.get("cpu").unsigned().unwrap_or_default() as u16,
            kind: *kind,
            value: role.value(chunk, event),
            attributes: match self.facts.recording {
                Some(_) => self.own_attributes(event, numbers),
                None => self.attributes(event, role, classes),
            },
        };
        self.end = self.end.max(sample.time);
        self.machine.add_sample(&sample);
        Ok(())
    }

    fn span(&mut self, chunk: &Chunk, event: &Event<'_>, numbers: &Numbers) {
        if self.machine.spans().len() >= MOST_SPANS {
            self.spans_left_out += 1;
            return;
        }
        let thread = event.get("eventThread");
        let named = self.code.texts.told(&event.fields(), "process");
        let owner = if thread.fields().is_some() {
            let constant = event.fields().constant_of("eventThread");
            TimelineOwner::Thread(self.thread(&thread, constant, event.ticks()))
        } else if named.is_some() {
            let pid = event.get("processId").unsigned().and_then(|pid| u32::try_from(pid).ok());
            TimelineOwner::Process(self.process(pid.unwrap_or_default(), named, event.ticks()))
        } else {
            TimelineOwner::Recording
        };
        let texts = &mut self.code.texts;
        let [timeline, name] = ["timeline", "name"].map(|field| texts.of(&event.fields(), field));
        let start = self.time(chunk.clock(), event.ticks());
        let attributes = self.own_attributes(event, numbers);
        let timeline = self.machine.add_timeline(self.code.texts.name(timeline), owner);
        let span = self.machine.begin_span(timeline, self.code.texts.name(name), start, attributes);
        if event.get("endSeen").integer() == Some(1) {
            let lasted = chunk.clock().nanoseconds(event.get("duration").unsigned().unwrap_or_default());
            self.machine.end_span(span, Nanos(start.0.saturating_add(lasted)));
        }
    }

    /// The thread that a constant is, of which there is an event at a tick.
    fn thread(&mut self, thread: &Value<'_>, constant: Option<Constant>, ticks: u64) -> ThreadId {
        if let Some(&known) = constant.and_then(|constant| self.threads.get(&constant)) {
            return known;
        }
        let is_told = thread.fields().is_some();
        if let Some(&met) =
            constant.filter(|_| !is_told).and_then(|constant| self.met.get(&constant.number()))
        {
            return met;
        }
        let pid = thread.get("processId").unsigned().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.or(self.facts.pid).unwrap_or_default();
        // In our own files that is what a thread's group is called after.
        let group = thread.fields().map(|thread| self.code.texts.within(&thread, "group", "name"));
        let group = self.code.texts.name(group.unwrap_or_default());
        let group = group.strip_suffix(&format!(" (pid {pid})")).map(str::to_owned);
        let named = group.map(|named| self.code.texts.intern(&named));
        let process = self.process(pid, named, ticks);
        let texts = &mut self.code.texts;
        let names = thread.fields().map(|thread| ["javaName", "osName"].map(|name| texts.of(&thread, name)));
        let name = names.into_iter().flatten().find(|name| *name != StringId::EMPTY).unwrap_or_default();
        let name = match texts.name(name) {
            // They have no number either, and are one thread.
            "" if thread.get("virtual").integer() == Some(1) => VIRTUAL,
            name => name,
        };
        let name = self.machine.intern_string(name);
        let tid = Tid(thread.get("osThreadId").unsigned().unwrap_or_default() as u32);
        let known = self.machine.intern_thread(process, tid, name);
        if let Some(constant) = constant {
            self.threads.insert(constant, known);
            self.met.extend(is_told.then_some((constant.number(), known)));
        }
        known
    }

    /// The process that a pid was of at a tick, of those of a name if there is one of it.
    fn process(&mut self, pid: u32, named: Option<StringId>, ticks: u64) -> ProcessId {
        let told = self.facts.life(pid, named, ticks);
        if let Some(&told) = told.and_then(|position| self.told.get(position)) {
            return told;
        }
        let (machine, facts) = (&mut self.machine, &self.facts);
        *self.processes.entry(pid).or_insert_with(|| {
            let name = if facts.pid.is_some() { "java" } else { "[process]" };
            machine.add_process(Pid(pid), name, None, Nanos(0))
        })
    }

    /// Those of an event of ours, which are one text. Fields tell which of them are numbers.
    fn own_attributes(&mut self, event: &Event<'_>, numbers: &Numbers) -> AttributeListId {
        let texts = &mut self.code.texts;
        let machine = &mut self.machine;
        let fields = event.fields();
        let told = texts.of(&fields, "attributes");
        let key = (event.kind().id(), told, numbers.there(&fields));
        if let Some(&known) = self.attributes.get(&key) {
            return known;
        }
        let pairs = self.pairs.entry(told).or_insert_with(|| {
            let pairs = pairs(texts.get(told)).into_iter().take(MOST_ATTRIBUTES);
            pairs
                .map(|(key, value)| OwnPair { id: machine.intern_string(name(&key)), key, value, text: None })
                .collect()
        });
        let mut taken = 0;
        let list = pairs.iter_mut().map(|OwnPair { id, key, value, text }| {
            let said = match numbers.number(&fields, (key, value), &mut taken) {
                Some(number) => AttributeValue::Number(number),
                None => (*text.get_or_insert_with(|| machine.intern_string(name(value)))).into(),
            };
            (*id, said)
        });
        let list: Vec<_> = list.collect();
        let list = machine.attributes_mut().intern(&list);
        self.attributes.insert(key, list);
        list
    }

    fn attributes(&mut self, event: &Event<'_>, role: &Role, classes: &[(usize, String)]) -> AttributeListId {
        let texts = &mut self.code.texts;
        let machine = &mut self.machine;
        let mut list = Vec::new();
        if role.is_wall_clock {
            let state = texts.of(&event.fields(), "state");
            let state = match texts.get(state) {
                "STATE_RUNNABLE" => Some("running"),
                "STATE_SLEEPING" => Some("blocked"),
                _ => None,
            };
            let state = state.map(|state| (machine.intern_string("state"), machine.intern_string(state)));
            list.extend(state);
        }
        for (position, name) in classes {
            if let Some(class) = event.fields().at(*position).fields() {
                let class = texts.of(&class, "name");
                let class = java_class(texts.name(class));
                list.push((machine.intern_string(name), machine.intern_string(&class)));
            }
        }
        machine.attributes_mut().intern(&list)
    }

    pub(super) fn finish(mut self, events: u64) -> Imported {
        let clock = self.clock.unwrap_or_default();
        let start = Nanos(clock.nanoseconds(clock.start_ticks));
        let samples = self.machine.samples().len() as u64;
        let facts = std::mem::take(&mut self.facts);
        let text = |id| self.code.texts.name(id).to_owned();
        let system = self.machine.system_mut();
        (system.start, system.end) = (start, self.end.max(start));
        system.clocks.start = ClockAnchor::at(start, clock.start.into());
        system.kernel = kernel(&text(facts.system));
        (system.cpus, system.command) = (facts.cpus, text(facts.command));
        system.lost = facts.lost;
        if let Some(recording) = &facts.recording {
            system.start = Nanos(recording.start);
            system.end = Nanos(recording.start.saturating_add(recording.duration));
            (system.host, system.kernel) = (text(recording.host), text(recording.kernel));
            (system.architecture, system.command) = (text(recording.architecture), text(recording.command));
            (system.cpus, system.lost) = (recording.cpus, recording.lost);
        }
        system.account = facts.notes.iter().copied().map(text).collect();
        let symbols = self.code.finish(&mut self.machine);
        let spans = self.machine.spans().len() as u64 + self.spans_left_out;
        let others =
            events.saturating_sub(samples + spans + facts.events + self.without_stack + self.without_room);
        let counted = [
            (
                facts.other_periods,
                "samples of CPU time stand for another time than the first one, and are taken for as much",
            ),
            (self.without_stack, "events that could have a stack and have none are left out"),
            (others, "events of types that have no stacks are left out"),
            (facts.notes_left_out, "lines of the account are left out: there are too many"),
            (facts.libraries, "mappings of libraries are left out: which process has them is not told"),
            (facts.mappings_left_out, "mappings are left out: there are too many"),
            (self.spans_left_out, "spans are left out: there are too many"),
            (self.without_room, "events are left out: there are too many kinds"),
            (self.code.names_left_out, "names of methods are left out: there is too much of them"),
        ];
        let left_out = counted.into_iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, what)| format!("{count} {what}")).collect();
        Imported { machine: self.machine, symbols, left_out }
    }
}
