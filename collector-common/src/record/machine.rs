//! [`ExportMachine`]: everything that was recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::container::container_of;
use super::{
    AttributeListId, AttributeValue, Attributes, Clocks, EventKind, EventKindId, EventRecord, EventRecordId,
    EventRecords, Frame, FrameId, Histogram, InternedFrames, KernelCode, Metric, Module, ModuleDetails,
    ModuleId, ModuleKind, ModuleMapping, Process, ProcessId, ProcessLife, Program, RemovedCodes, Sample,
    SampleKind, SampleKindId, Samples, Span, Table, Thread, ThreadId, Timeline, TimelineId, TimelineOwner,
    Unit,
};
use crate::ids::{Nanos, Pid, Tid, Uid};
use crate::intern::{InternedCallstacks, InternedStrings, Seeded, StackId, StringId};

/// The machine and the span of time that were recorded.
#[derive(Clone, Debug, Default)]
pub struct SystemInfo {
    /// Host name.
    pub host: String,
    /// Operating system and kernel release, as `Linux 6.18.0`.
    pub kernel: String,
    /// Architecture as the system names it, as `x86_64`.
    pub architecture: String,
    /// The distribution with its release, as `Debian GNU/Linux 12 (bookworm)`.
    pub distribution: String,
    /// The processor's model, as the kernel names it.
    pub processor: String,
    /// Bytes of memory; 0 where that is not known.
    pub memory: u64,
    /// Online CPUs.
    pub cpus: u32,
    /// `CLOCK_MONOTONIC` at the start.
    pub start: Nanos,
    /// `CLOCK_MONOTONIC` at the end.
    pub end: Nanos,
    /// What other clocks showed at the start and at the end.
    pub clocks: Clocks,
    /// The command that was recorded, where there was one.
    pub command: String,
    /// Samples lost, for any cause; none where nobody tells how many.
    pub lost: Option<u64>,
    /// Samples lost by cause and how stacks ended, a line each, for people; empty where that is not known.
    pub account: Vec<String>,
    /// A regular expression (RE2), as profiles of pprof have it: whoever shows the recording leaves out each function whose whole name it
    /// matches, and what that called, but for a stack's outermost ones. Empty for none. Nothing here is left out by it.
    pub drop_frames: String,
    /// Another one, of functions that are shown all the same. Empty for none.
    pub keep_frames: String,
}

/// What was recorded: the only thing that symbolizers and formats read.
///
/// What it takes of memory grows with distinct stacks, frames, threads and strings, and with samples up to a limit, if it is told of one
/// and of a file that the others go into: [`Samples::spill_beyond`]. Raw events have a limit, beyond which they are counted as lost:
/// [`EventRecords::set_limit`].
#[derive(Debug)]
pub struct ExportMachine {
    system: SystemInfo,
    pub(super) strings: InternedStrings,
    pub(super) processes: Vec<Process>,
    pub(super) programs: Vec<Program>,
    users: BTreeMap<Uid, StringId>,
    pub(super) threads: Vec<Thread>,
    /// Names and numbers of threads are chosen by the recorded programs.
    pub(super) thread_index: HashMap<Thread, ThreadId, Seeded>,
    pub(super) modules: Vec<Module>,
    details: BTreeMap<ModuleId, ModuleDetails>,
    relative: BTreeSet<ModuleId>,
    pub(super) mappings: Vec<ModuleMapping>,
    removed_codes: RemovedCodes,
    frames: InternedFrames,
    stacks: InternedCallstacks,
    kinds: Vec<SampleKind>,
    main_kind: Option<SampleKindId>,
    samples: Samples,
    attributes: Attributes,
    event_kinds: Vec<EventKind>,
    event_records: EventRecords,
    pub(super) timelines: Vec<Timeline>,
    /// Names may be chosen by the recorded programs.
    pub(super) timeline_index: HashMap<Timeline, TimelineId, Seeded>,
    pub(super) spans: Vec<Span>,
    tables: Vec<Table>,
    histograms: Vec<Histogram>,
    metrics: Vec<Metric>,
    pub(super) lives: Vec<ProcessLife>,
}

impl Default for ExportMachine {
    fn default() -> Self {
        let mut strings = InternedStrings::default();
        let kernel = Module { kind: ModuleKind::Kernel, path: strings.intern("[kernel]"), build_id: None };
        Self {
            system: SystemInfo::default(),
            strings,
            processes: Vec::new(),
            programs: Vec::new(),
            users: BTreeMap::new(),
            threads: Vec::new(),
            thread_index: HashMap::default(),
            modules: vec![kernel],
            details: BTreeMap::new(),
            relative: BTreeSet::new(),
            mappings: Vec::new(),
            removed_codes: RemovedCodes::default(),
            frames: InternedFrames::default(),
            stacks: InternedCallstacks::default(),
            kinds: Vec::new(),
            main_kind: None,
            samples: Samples::default(),
            attributes: Attributes::default(),
            event_kinds: Vec::new(),
            event_records: EventRecords::default(),
            timelines: Vec::new(),
            timeline_index: HashMap::default(),
            spans: Vec::new(),
            tables: Vec::new(),
            histograms: Vec::new(),
            metrics: Vec::new(),
            lives: Vec::new(),
        }
    }
}

/// Recording.
impl ExportMachine {
    /// The most kinds of sample that a recording has: more than a kernel has tracepoints.
    pub const MOST_KINDS: usize = 4096;

    /// The system's description, to be filled in.
    pub fn system_mut(&mut self) -> &mut SystemInfo {
        &mut self.system
    }

    /// The id of a string.
    pub fn intern_string(&mut self, string: &str) -> StringId {
        self.strings.intern(string)
    }

    /// Adds a lifetime of a process.
    pub fn add_process(
        &mut self,
        pid: Pid,
        name: &str,
        parent: Option<ProcessId>,
        start: Nanos,
    ) -> ProcessId {
        let name = self.strings.intern(name);
        self.processes.push(Process::new(pid, name, parent, start));
        ProcessId(self.processes.len() as u32 - 1)
    }

    /// Renames a process.
    pub fn rename_process(&mut self, process: ProcessId, name: &str) {
        let name = self.strings.intern(name);
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.name = name;
        }
    }

    /// Marks a process as ended.
    pub fn end_process(&mut self, process: ProcessId, end: Nanos) {
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.end = Some(end);
        }
    }

    /// A process, to be told more of. `None` for an id of another machine.
    pub fn process_mut(&mut self, process: ProcessId) -> Option<&mut Process> {
        self.processes.get_mut(process.0 as usize)
    }

    /// Tells a process's cgroup by its path, and with that its container.
    pub fn set_cgroup(&mut self, process: ProcessId, path: &str) {
        let cgroup = self.strings.intern(path);
        let container = container_of(path).map_or(StringId::EMPTY, |id| self.strings.intern(id));
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            (process.cgroup, process.container) = (cgroup, container);
        }
    }

    /// Tells a user's name.
    pub fn name_user(&mut self, user: Uid, name: &str) {
        let name = self.strings.intern(name);
        self.users.insert(user, name);
    }

    /// The id of a thread under a name.
    pub fn intern_thread(&mut self, process: ProcessId, tid: Tid, name: StringId) -> ThreadId {
        let thread = Thread { process, tid, name };
        let threads = &mut self.threads;
        *self.thread_index.entry(thread).or_insert_with(|| {
            threads.push(thread);
            ThreadId(threads.len() as u32 - 1)
        })
    }

    /// Adds a module.
    pub fn add_module(&mut self, module: Module) -> ModuleId {
        self.modules.push(module);
        ModuleId(self.modules.len() as u32 - 1)
    }

    /// Tells what a module's file says of itself.
    pub fn set_details(&mut self, module: ModuleId, details: ModuleDetails) {
        self.details.insert(module, details);
    }

    /// Tells that the addresses of a module's frames are relative to where its image starts, wherever it is linked for: what was read of a
    /// format that has them so.
    pub fn set_relative(&mut self, module: ModuleId) {
        self.relative.insert(module);
    }

    /// Adds the place of a module in a process.
    pub fn add_mapping(&mut self, mapping: ModuleMapping) {
        self.mappings.push(mapping);
    }

    /// Adds code that the kernel held when the recording started, and that was removed since.
    pub fn add_removed_code(&mut self, code: KernelCode) {
        self.removed_codes.add(code);
    }

    /// The id of a frame.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        self.frames.intern(frame)
    }

    /// The id of a call stack, leaf first.
    pub fn intern_stack(&mut self, stack: &[FrameId]) -> StackId {
        self.stacks.intern(stack)
    }

    /// Adds a kind of sample.
    ///
    /// # Panics
    /// For more than [`Self::MOST_KINDS`] kinds.
    pub fn add_kind(&mut self, name: &str, unit: Unit, period: u64) -> SampleKindId {
        assert!(self.kinds.len() < Self::MOST_KINDS, "more than {} kinds of sample", Self::MOST_KINDS);
        let name = self.strings.intern(name);
        self.kinds.push(SampleKind { name, unit, period, is_sum: false });
        SampleKindId(self.kinds.len() as u16 - 1)
    }

    /// Adds a kind whose samples are sums of several, as a file has them that was written of a recording.
    ///
    /// # Panics
    /// For more than [`Self::MOST_KINDS`] kinds.
    pub fn add_kind_of_sums(&mut self, name: &str, unit: Unit) -> SampleKindId {
        let id = self.add_kind(name, unit, 1);
        self.kinds[usize::from(id.0)].is_sum = true;
        id
    }

    /// Says which kind is to be looked at first.
    pub fn set_main_kind(&mut self, kind: SampleKindId) {
        self.main_kind = Some(kind);
    }

    /// The lists of attributes, to be added to.
    pub fn attributes_mut(&mut self) -> &mut Attributes {
        &mut self.attributes
    }

    /// Adds a table of what was counted.
    pub fn add_table(&mut self, table: Table) {
        self.tables.push(table);
    }

    /// Adds a histogram of what was counted.
    pub fn add_histogram(&mut self, histogram: Histogram) {
        self.histograms.push(histogram);
    }

    /// Adds a number of the embedding program's own, which goes into every format that has a place for it.
    pub fn add_custom_metric(&mut self, name: &str, value: f64, unit: &str) {
        self.metrics.push(Metric { name: name.to_owned(), value, unit: unit.to_owned() });
    }

    /// Leaves out samples of what was recorded: those that `keep` refuses, with the raw events that they are of. The machine that it
    /// sees has no samples meanwhile.
    pub fn apply_custom_filter(&mut self, mut keep: impl FnMut(&Self, &Sample) -> bool) {
        self.change_samples(|machine, sample| keep(machine, sample));
    }

    /// The same, where `keep` may change the samples that it takes, and add to the machine what they refer to then. A raw event that a sample
    /// is of has the sample's time, thread, stack, CPU and attributes afterwards.
    pub fn change_samples(&mut self, mut keep: impl FnMut(&mut Self, &mut Sample) -> bool) {
        let none = self.samples.none_like();
        let mut samples = std::mem::replace(&mut self.samples, none);
        let left_out = samples.retain_mut(|sample, record| {
            let before = *sample;
            let is_kept = keep(self, sample);
            if let Some(record) = record.filter(|_| is_kept && *sample != before) {
                self.event_records.follow(record, sample);
            }
            is_kept
        });
        self.samples = samples;
        for record in left_out {
            self.event_records.remove(record);
        }
    }

    /// Leaves out what is of threads that `keep` refuses: samples, raw events, and spans. Spans of processes that have no thread that is
    /// kept go, too.
    pub fn keep_threads(&mut self, keep: impl Fn(&Self, ThreadId) -> bool) {
        let kept: Vec<bool> = (0..self.threads.len() as u32).map(|at| keep(self, ThreadId(at))).collect();
        let is_kept = |thread: ThreadId| kept.get(thread.0 as usize) == Some(&true);
        let owners = self.kept_timelines(&kept, &self.processes_of(&kept));
        self.samples.retain(|sample| is_kept(sample.thread));
        self.event_records.hide(|thread| !is_kept(thread));
        self.spans.retain(|span| owners.get(span.timeline.0 as usize) == Some(&true));
    }

    /// Adds a kind of raw event; `None` where there are more than 65,536.
    pub fn add_event_kind(&mut self, kind: EventKind) -> Option<EventKindId> {
        let id = (self.event_kinds.len() < EventKindId::MOST)
            .then_some(EventKindId(self.event_kinds.len() as u16))?;
        self.event_kinds.push(kind);
        Some(id)
    }

    /// Adds a raw event with its bytes; `None` where there is no room, which is counted.
    pub fn add_event_record(&mut self, record: &EventRecord, bytes: &[u8]) -> Option<EventRecordId> {
        self.event_records.push(record, bytes)
    }

    /// Adds a sample and the raw event that it is of, with its bytes; only the sample where there is no room for the other, which is
    /// counted.
    pub fn add_sample_of_event(&mut self, sample: &Sample, kind: EventKindId, bytes: &[u8]) {
        let &Sample { time, thread, stack, cpu, attributes, .. } = sample;
        let record = EventRecord { time, thread, stack, cpu, kind, attributes };
        let record = self.event_records.push(&record, bytes);
        if let (Some(_), Some(record)) = (self.samples.push(sample), record) {
            self.samples.set_record(record);
        }
    }

    /// The raw events, to limit them.
    pub fn event_records_mut(&mut self) -> &mut EventRecords {
        &mut self.event_records
    }

    /// Shows the machine to `work` with the samples and raw events of some threads alone, those that `keep` takes, and the spans of these,
    /// of their processes and of nobody in particular. What is kept of samples is held twice meanwhile; where samples go into
    /// a file, those go into another one.
    pub fn with_part<T>(
        &mut self,
        keep: impl Fn(&Self, ThreadId) -> bool,
        work: impl FnOnce(&Self) -> T,
    ) -> T {
        let kept: Vec<bool> = (0..self.threads.len() as u32).map(|at| keep(self, ThreadId(at))).collect();
        let processes = self.processes_of(&kept);
        self.with_kept(&kept, &processes, work)
    }

    /// The same of whole processes, with the spans of those that have no thread, too.
    pub fn with_processes<T>(
        &mut self,
        keep: impl Fn(&Self, ProcessId) -> bool,
        work: impl FnOnce(&Self) -> T,
    ) -> T {
        let processes: Vec<bool> =
            (0..self.processes.len() as u32).map(|at| keep(self, ProcessId(at))).collect();
        let is_kept = |thread: &Thread| processes.get(thread.process.0 as usize) == Some(&true);
        let threads: Vec<bool> = self.threads.iter().map(is_kept).collect();
        self.with_kept(&threads, &processes, work)
    }

    /// The same of threads and of processes, each by position.
    fn with_kept<T>(&mut self, threads: &[bool], processes: &[bool], work: impl FnOnce(&Self) -> T) -> T {
        let is_kept = |thread: ThreadId| threads.get(thread.0 as usize) == Some(&true);
        let part = self.samples.part(|sample| is_kept(sample.thread));
        let all = std::mem::replace(&mut self.samples, part);
        let removed = self.event_records.hide(|thread| !is_kept(thread));
        let spans = self.spans.clone();
        let owners = self.kept_timelines(threads, processes);
        self.spans.retain(|span| owners.get(span.timeline.0 as usize) == Some(&true));
        let brought = work(self);
        self.spans = spans;
        self.event_records.show_all_but(removed);
        self.samples = all;
        brought
    }

    /// Of each process, whether it has one of these threads.
    fn processes_of(&self, threads: &[bool]) -> Vec<bool> {
        let mut processes = vec![false; self.processes.len()];
        for (thread, _) in self.threads.iter().zip(threads).filter(|(_, kept)| **kept) {
            processes.get_mut(thread.process.0 as usize).into_iter().for_each(|process| *process = true);
        }
        processes
    }

    /// Of each timeline, whether it is one of these threads and processes, or nobody's in particular.
    fn kept_timelines(&self, threads: &[bool], processes: &[bool]) -> Vec<bool> {
        let is_kept = |timeline: &Timeline| match timeline.owner {
            TimelineOwner::Recording => true,
            TimelineOwner::Process(process) => processes.get(process.0 as usize) == Some(&true),
            TimelineOwner::Thread(thread) => threads.get(thread.0 as usize) == Some(&true),
        };
        self.timelines.iter().map(is_kept).collect()
    }

    /// The samples, to change them, or to have them written into a file beyond a limit.
    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Adds a process that the recording was asked to tell of.
    pub fn add_life(&mut self, life: ProcessLife) {
        self.lives.push(life);
    }

    /// Adds a sample, unless there are 4 billion: see [`Samples::refused`].
    pub fn add_sample(&mut self, sample: &Sample) {
        self.samples.push(sample);
    }
}

/// Reading.
impl ExportMachine {
    /// The machine and the span of time.
    pub fn system(&self) -> &SystemInfo {
        &self.system
    }

    /// A string.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// All lifetimes of processes; the position is the [`ProcessId`].
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// A process.
    ///
    /// # Panics
    /// For an id of another machine.
    pub fn process(&self, id: ProcessId) -> &Process {
        &self.processes[id.0 as usize]
    }

    /// The processes by name, each with all processes that are called so: several are one then, as the workers of a server are.
    pub fn split_by_comm(&self) -> BTreeMap<&str, Vec<ProcessId>> {
        let mut by_name: BTreeMap<&str, Vec<ProcessId>> = BTreeMap::new();
        for (process, at) in self.processes.iter().zip(0..) {
            by_name.entry(self.strings.get(process.name)).or_default().push(ProcessId(at));
        }
        by_name
    }

    /// The name of a process's user, where it is known. In a container the same number may be somebody else, whom nobody names.
    pub fn user_name(&self, process: &Process) -> Option<&str> {
        let known = process.user.filter(|_| process.container == StringId::EMPTY);
        self.users.get(&known?).map(|&name| self.strings.get(name))
    }

    /// All threads; the position is the [`ThreadId`].
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// A thread.
    ///
    /// # Panics
    /// For an id of another machine.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.0 as usize]
    }

    /// All modules; the position is the [`ModuleId`], the kernel is first.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// A module.
    ///
    /// # Panics
    /// For an id of another machine.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    /// What a module's file says of itself, where it says anything.
    pub fn details(&self, module: ModuleId) -> Option<&ModuleDetails> {
        self.details.get(&module)
    }

    /// Whether the addresses of a module's frames are relative to where its image starts, and not as it is linked.
    pub fn is_relative(&self, module: ModuleId) -> bool {
        self.relative.contains(&module)
    }

    /// All places of modules in processes, in the order they were seen.
    pub fn mappings(&self) -> &[ModuleMapping] {
        &self.mappings
    }

    /// Code that the kernel held when the recording started, and that was removed since.
    pub fn removed_codes(&self) -> &RemovedCodes {
        &self.removed_codes
    }

    /// All distinct frames.
    pub fn frames(&self) -> &InternedFrames {
        &self.frames
    }

    /// All distinct call stacks.
    pub fn stacks(&self) -> &InternedCallstacks {
        &self.stacks
    }

    /// All kinds of sample; the position is the [`SampleKindId`].
    pub fn kinds(&self) -> &[SampleKind] {
        &self.kinds
    }

    /// The kind that is to be looked at first, where that was said.
    pub fn main_kind(&self) -> Option<SampleKindId> {
        self.main_kind
    }

    /// The kind that is shown where there is room for one: that which is to be looked at first, as long as there are samples of it, or
    /// the first one with samples.
    pub fn shown_kind(&self) -> Option<SampleKindId> {
        let mut kinds = self.samples.kinds();
        self.main_kind.filter(|&main| self.samples.has_kind(main)).or_else(|| kinds.next())
    }

    /// All samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// What an attribute says, as text.
    pub fn attribute_text(&self, value: AttributeValue) -> Cow<'_, str> {
        match value {
            AttributeValue::Label(text) => self.string(text).into(),
            AttributeValue::Number(number) => number.to_string().into(),
        }
    }

    /// What a list of attributes says by a name, if it has it.
    pub fn attribute(&self, list: AttributeListId, name: &str) -> Option<Cow<'_, str>> {
        let list = self.attributes.get(list);
        let (_, value) = list.iter().find(|(key, _)| self.string(*key) == name)?;
        Some(self.attribute_text(*value))
    }

    /// The lists of attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// All kinds of raw events; the position is the [`EventKindId`].
    pub fn event_kinds(&self) -> &[EventKind] {
        &self.event_kinds
    }

    /// All raw events.
    pub fn event_records(&self) -> &EventRecords {
        &self.event_records
    }

    /// Tables of what was counted.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Histograms of what was counted.
    pub fn histograms(&self) -> &[Histogram] {
        &self.histograms
    }

    /// Numbers of the embedding program's own, in the order in which they were added.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Processes that the recording was asked to tell of, in the order in which they were made.
    pub fn lives(&self) -> &[ProcessLife] {
        &self.lives
    }
}
