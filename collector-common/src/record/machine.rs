//! [`ExportMachine`]: everything that was recorded.

use rustc_hash::FxHashMap;

use super::{
    Attributes, Clocks, EventKind, EventKindId, EventRecord, EventRecordId, EventRecords, Frame, FrameId,
    Histogram, InternedFrames, KernelCode, Metric, Module, ModuleId, ModuleKind, ModuleMapping, Process,
    ProcessId, ProcessLife, RemovedCodes, Sample, SampleKind, SampleKindId, Samples, Table, Thread, ThreadId,
    Unit,
};
use crate::ids::{Nanos, Pid, Tid};
use crate::intern::{InternedCallstacks, InternedStrings, StackId, StringId};

/// The machine and the span of time that were recorded.
#[derive(Clone, Debug, Default)]
pub struct SystemInfo {
    /// Host name.
    pub host: String,
    /// Operating system and kernel release, as `Linux 6.18.0`.
    pub kernel: String,
    /// Architecture as the system names it, as `x86_64`.
    pub architecture: String,
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
    /// Samples lost, for any cause; 0 where that is not known.
    pub lost: u64,
    /// Samples lost by cause and how stacks ended, a line each, for people; empty where that is not known.
    pub account: Vec<String>,
}

/// What was recorded: the only thing that symbolizers and formats read.
#[derive(Debug)]
pub struct ExportMachine {
    system: SystemInfo,
    strings: InternedStrings,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    thread_index: FxHashMap<Thread, ThreadId>,
    modules: Vec<Module>,
    mappings: Vec<ModuleMapping>,
    removed_codes: RemovedCodes,
    frames: InternedFrames,
    stacks: InternedCallstacks,
    kinds: Vec<SampleKind>,
    samples: Samples,
    attributes: Attributes,
    event_kinds: Vec<EventKind>,
    event_records: EventRecords,
    tables: Vec<Table>,
    histograms: Vec<Histogram>,
    metrics: Vec<Metric>,
    lives: Vec<ProcessLife>,
}

impl Default for ExportMachine {
    fn default() -> Self {
        let mut strings = InternedStrings::default();
        let kernel = Module { kind: ModuleKind::Kernel, path: strings.intern("[kernel]"), build_id: None };
        Self {
            system: SystemInfo::default(),
            strings,
            processes: Vec::new(),
            threads: Vec::new(),
            thread_index: FxHashMap::default(),
            modules: vec![kernel],
            mappings: Vec::new(),
            removed_codes: RemovedCodes::default(),
            frames: InternedFrames::default(),
            stacks: InternedCallstacks::default(),
            kinds: Vec::new(),
            samples: Samples::default(),
            attributes: Attributes::default(),
            event_kinds: Vec::new(),
            event_records: EventRecords::default(),
            tables: Vec::new(),
            histograms: Vec::new(),
            metrics: Vec::new(),
            lives: Vec::new(),
        }
    }
}

/// Recording.
impl ExportMachine {
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
        self.processes.push(Process { pid, name, parent, start, end: None });
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
    /// For more than 256 kinds.
    pub fn add_kind(&mut self, name: &str, unit: Unit, period: u64) -> SampleKindId {
        assert!(self.kinds.len() < 256, "more than 256 kinds of sample");
        let name = self.strings.intern(name);
        self.kinds.push(SampleKind { name, unit, period });
        SampleKindId(self.kinds.len() as u8 - 1)
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
        let mut samples = std::mem::take(&mut self.samples);
        let left_out = samples.retain(|sample| keep(self, sample));
        self.samples = samples;
        for record in left_out {
            self.event_records.remove(record);
        }
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
        self.samples.push(sample);
        if let Some(record) = record {
            self.samples.set_record(record);
        }
    }

    /// The raw events, to limit them.
    pub fn event_records_mut(&mut self) -> &mut EventRecords {
        &mut self.event_records
    }

    /// The samples, to change their values.
    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Adds a process as it was told of from its beginning to its end.
    pub fn add_life(&mut self, life: ProcessLife) {
        self.lives.push(life);
    }

    /// Adds a sample.
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

    /// All samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
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

    /// Processes as they were told of, where that was asked for, in the order in which they were made.
    pub fn lives(&self) -> &[ProcessLife] {
        &self.lives
    }
}
