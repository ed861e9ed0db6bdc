//! The recorder's state, and what the sideband does to it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::loss::Ledger;
use collector_common::perf::{self, Ksymbol, KsymbolFlags, Misc, Mmap2, Parsed, Record, Task};
use collector_common::record::{
    ExportMachine, FrameId, KernelCode, ModuleMapping, Process, ProcessId, SampleKindId, ThreadId, Unit,
};
use collector_common::track::{MappedModule, Tracker};
use collector_common::wire::{COMM_LEN, OuterPlaces};
use rustc_hash::FxHashMap;
use unwinder::Unwinder;
use unwinder::aarch64::Aarch64;
use unwinder::x86::X86;

use super::found::Found;
use super::inherited::Inherited;
use super::kernel_code::AddedCodes;
use super::late::LateMemory;
use super::looks::{Looks, name_users};
use super::outside::{Outside, Question, Subject};
use super::reread::Rereads;
use super::tally::StackTally;
use super::thread_names::{Name, ThreadNames, kept_name};
use crate::event_clock::EventTimes;
use crate::hooks::{SampleHook, SampleHooks};
use crate::longest_name::LONGEST_NAME;
use crate::modules::{Beginning, MappedFile, Modules, RecordedFiles, Resolved};
use crate::procfs::{self, Identity, MapsEntry};

/// Generations of processes that are looked through.
const MAX_ANCESTORS: usize = 64;

/// A thread as its last sample named it.
#[derive(Clone, Copy)]
pub(super) struct KnownThread {
    pub(super) process: ProcessId,
    pub(super) comm: [u8; COMM_LEN],
    pub(super) id: ThreadId,
}

/// How long guesses go by code that may have been replaced in the same mapping, as JIT compilers do.
const CODE_LIFETIME: Nanos = Nanos(10_000_000_000);

/// Two forks that gave the same pid within this time are one: pids are given in turn.
const TOLD_TWICE: Nanos = Nanos(1_000_000);

/// The longest time from a thread's end to its last record: it may have to wait for a CPU in between.
const LAST_OF_THREAD: Nanos = Nanos(2_000_000_000);

/// Fills an [`ExportMachine`].
pub struct Recorder {
    /// Whether the processes can be asked, as they are while they run.
    pub(super) is_live: bool,
    /// Who is asked for what no record tells.
    pub(super) outside: Outside,
    pub(super) machine: ExportMachine,
    pub(super) hooks: SampleHooks,
    /// Tells closures when their events happened.
    pub(super) event_times: EventTimes,
    pub(super) tracker: Tracker,
    pub(super) inherited: Inherited,
    pub(super) modules: Modules,
    pub(super) unwinder: Unwinder,
    /// Since when the unwinder remembers what code it has looked at says.
    code_known_since: Nanos,
    /// For threads that run 32-bit code.
    pub(super) compat_unwinder: Unwinder<X86>,
    /// For recordings of aarch64.
    pub(super) aarch64_unwinder: Unwinder<Aarch64>,
    pub(super) ledger: Ledger,
    pub(super) tally: StackTally,
    pub(super) threads: FxHashMap<Tid, KnownThread>,
    /// Threads that ended lately, with when, and their processes.
    ended: FxHashMap<Tid, (Nanos, Pid)>,
    /// The last names of processes that did not keep that of the process that forked them: a process may rename itself
    /// without end.
    names: FxHashMap<ProcessId, Box<[u8]>>,
    /// Names of threads, where the samples do not tell them.
    pub(super) thread_names: Option<ThreadNames>,
    /// Threads of other names are not recorded.
    pub(super) only: Option<Name>,
    pub(super) kernel_codes: AddedCodes,
    /// Of processes that had something mapped which nobody told of.
    pub(super) rereads: Rereads<ProcessId>,
    /// What was read of stacks in this round.
    pub(super) late: RefCell<LateMemory>,
    /// Frames of the stack in hand; kept for its memory.
    pub(super) walked: Vec<unwinder::Frame>,
    /// Threads whose stacks went beyond the mapping where the kernel has them end, since this was last asked for.
    pub(super) left_mappings: Vec<Tid>,
    /// Where the outer frames lie of threads whose stacks are larger than their copies, since this was last asked for.
    pub(super) outer_places: FxHashMap<Tid, OuterPlaces>,
    /// Processes that have ended, with when, since this was last asked for.
    ended_processes: Vec<(Pid, Nanos)>,
    pub(super) frames: Vec<FrameId>,
    /// At processes, for what the sideband does not tell of them.
    looks: Looks,
    /// A command that was forked and waits: its command line is that of who forked it.
    waiting: Option<Pid>,
    /// What was found in `/proc`, if somebody wants to know.
    found: Option<Vec<Found>>,
    /// When `/proc` had been scanned: the sideband tells of some things before that which the scan saw, too.
    scanned_at: Nanos,
    sideband_lost: u64,
    /// Whether mappings and processes may be missing.
    has_gaps: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// A recorder without a kind of sample.
    pub fn new() -> Self {
        Self {
            is_live: true,
            outside: Outside::Machine,
            machine: ExportMachine::default(),
            hooks: SampleHooks::default(),
            event_times: EventTimes::default(),
            tracker: Tracker::default(),
            inherited: Inherited::default(),
            modules: Modules::default(),
            unwinder: Unwinder::new(),
            code_known_since: Nanos(0),
            compat_unwinder: Unwinder::new(),
            aarch64_unwinder: Unwinder::new(),
            ledger: Ledger::default(),
            tally: StackTally::default(),
            threads: FxHashMap::default(),
            ended: FxHashMap::default(),
            names: FxHashMap::default(),
            thread_names: None,
            only: None,
            kernel_codes: AddedCodes::default(),
            rereads: Rereads::default(),
            late: RefCell::default(),
            walked: Vec::new(),
            left_mappings: Vec::new(),
            outer_places: FxHashMap::default(),
            ended_processes: Vec::new(),
            frames: Vec::new(),
            looks: Looks::default(),
            waiting: None,
            found: None,
            scanned_at: Nanos(0),
            sideband_lost: 0,
            has_gaps: false,
        }
    }

    /// One for a recording that was made earlier, without a kind of sample. What its records do not tell nobody does.
    pub fn of_recording(files: RecordedFiles) -> Self {
        Self {
            is_live: false,
            modules: Modules::of_recording(files),
            thread_names: Some(ThreadNames::recorded()),
            late: RefCell::new(LateMemory::gone()),
            ..Self::new()
        }
    }

    /// One for what a journal has: it is told what another one was, and asks for what that one asked for.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_journal(files: RecordedFiles) -> Self {
        Self {
            outside: Outside::told(),
            modules: Modules::of_recording(files),
            late: RefCell::new(LateMemory::of(Outside::told())),
            ..Self::new()
        }
    }

    /// Has hooks see each sample from now on.
    pub(crate) fn add_sample_hooks(&mut self, hooks: Vec<SampleHook>) {
        self.hooks.add(hooks);
    }

    /// Adds a kind of sample: what its value counts, and what one sample stands for in `unit`s of the period's own clock.
    pub fn add_kind(&mut self, name: &str, unit: Unit, period: u64) -> SampleKindId {
        self.machine.add_kind(name, unit, period)
    }

    /// Finds out the names of threads from what the sideband tells, for samples that do not have them. With `only`, those of
    /// other names are left out; a name is compared as the kernel keeps it, up to 15 bytes.
    pub fn name_threads(&mut self, only: Option<&str>) {
        self.thread_names = Some(ThreadNames::of(self.outside.sibling()));
        self.only = only.map(|name| kept_name(name.as_bytes()));
    }

    /// Keeps what is found in `/proc` and not told by the sideband, for [`Self::take_found`].
    pub(crate) fn keep_found(&mut self) {
        self.found = Some(Vec::new());
    }

    /// What was found since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        self.found.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Says that a process waits to execute its first program.
    pub(crate) fn set_waiting(&mut self, command: Pid) {
        self.waiting = Some(command);
    }

    /// Takes in all processes that run now. The sideband must be open already, so that nothing falls between.
    pub fn scan(&mut self, now: impl FnOnce() -> Nanos) -> std::io::Result<()> {
        for pid in self.pids()? {
            self.discover(pid);
        }
        let now = self.outside.ask(Question::new(Subject::Now, 0_u64), || Some(now()));
        self.scanned_at = now.unwrap_or(Nanos(0));
        self.looks.scanned(self.scanned_at);
        Ok(())
    }

    /// The children of some processes, and theirs, as of the scan and what was told since; with when each was made, as far as
    /// that was told.
    pub fn descendants(&self, pids: &BTreeSet<u32>) -> Vec<(Pid, Nanos)> {
        if pids.is_empty() {
            return Vec::new();
        }
        let is_below = |process: &&Process| {
            let parents = std::iter::successors(self.parent(process), |parent| self.parent(parent));
            parents.take(MAX_ANCESTORS).any(|parent| pids.contains(&parent.pid.0))
        };
        let below = self.machine.processes().iter().filter(is_below);
        below.map(|process| (process.pid, process.start)).collect()
    }

    /// Those of [`Self::descendants`] that have not ended.
    pub fn running_descendants(&self, pids: &BTreeSet<u32>) -> Vec<u32> {
        let found = self.descendants(pids).into_iter();
        let is_running = |(pid, start): &(Pid, Nanos)| {
            let process = self.tracker.process_at(*pid, Nanos(u64::MAX)).map(|id| self.machine.process(id));
            process.is_some_and(|process| process.start == *start && process.end.is_none())
        };
        found.filter(is_running).map(|(pid, _)| pid.0).collect()
    }

    fn parent(&self, process: &Process) -> Option<&Process> {
        let known = process.parent.or_else(|| {
            // A parent may have a higher pid than its child, and be scanned after it. The first process has none.
            let summary = procfs::summary(process.pid).ok()?;
            self.tracker.process_at(summary.parent, self.scanned_at)
        });
        known.map(|parent| self.machine.process(parent))
    }

    /// Takes in one process that runs already; one that ended meanwhile gets an empty entry.
    pub(super) fn discover(&mut self, pid: Pid) -> ProcessId {
        let summary = if self.is_live { self.summary(pid) } else { None };
        let threads = summary.as_ref().map(|summary| self.threads_of(pid, summary)).unwrap_or_default();
        let reader = threads.first().copied();
        if let Some(found) = &mut self.found {
            found.extend(threads.iter().filter_map(|&thread| Found::thread(pid, thread)));
        }
        let name = summary.as_ref().map_or("", |summary| &summary.name);
        let parent = summary.as_ref().and_then(|summary| self.tracker.process_at(summary.parent, Nanos(0)));
        let process = self.tracker.existing(pid, threads);
        let added = self.machine.add_process(pid, name, parent, Nanos(0));
        debug_assert_eq!(process, added);
        if let Some(summary) = &summary {
            let program = Some(summary.name.as_str()).filter(|_| self.waiting != Some(pid));
            self.looks.found(&mut self.machine, &mut self.outside, process, program);
        }
        if let Some(thread) = reader {
            self.read_mappings(process, thread, Nanos(0));
        }
        process
    }

    /// Says that the sideband has missed something: see [`Self::rescan`].
    pub fn distrust_sideband(&mut self) {
        self.has_gaps = true;
    }

    /// Whether the sideband has missed something since the last [`Self::rescan`].
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// Takes in what all processes have mapped at `now`. Where `/proc` can't be read, the gaps stay.
    pub fn rescan(&mut self, now: Nanos) {
        let Ok(pids) = self.pids() else { return };
        for pid in pids {
            let process = self.process_at(pid, now);
            let threads = self.threads_now(pid);
            if let Some(&thread) = threads.first() {
                self.read_mappings(process, thread, now);
            }
            self.tracker.threads_found(process, threads);
        }
        self.has_gaps = false;
    }

    /// A process that ends while it is read keeps what was read.
    pub(super) fn read_mappings(&mut self, process: ProcessId, thread: Tid, since: Nanos) {
        let Self { tracker, machine, modules, outside, found, .. } = self;
        let pid = machine.process(process).pid;
        let hands_on = found.is_some();
        let mut below = None;
        mappings(outside, thread, hands_on, |entry| {
            // Who unwinds from what is handed on wants the files' other parts, too.
            let is_wanted = entry.executable || entry.readable && entry.identity.inode != 0;
            if let Some(found) = found.as_mut().filter(|_| is_wanted) {
                found.push(Found::mapping(pid, thread, entry, since));
            }
            if !entry.executable {
                below = Beginning::of_entry(entry).or_else(|| below.take());
                return;
            }
            let mapped = MappedFile {
                start: entry.start,
                end: entry.end,
                file_offset: entry.file_offset,
                identity: Some(entry.identity),
                build_id: None,
                path: &entry.path,
                thread,
                since,
            };
            let resolved = modules.resolve_above(machine, process, pid, &mapped, below.as_ref());
            below = below.take().filter(|beginning| beginning.is_base_of(&resolved));
            enter(tracker, machine, process, &mapped, resolved);
        });
    }

    /// Takes in a record of the sideband, written at `time`.
    pub fn apply(&mut self, parsed: &Parsed<'_>, time: Nanos) {
        match &parsed.record {
            Record::Mmap2(mmap) if mmap.is_executable() => {
                self.apply_mapping(mmap.pid, &mapped_file(mmap, &mmap.path.bytes().to_cow(), time));
            }
            Record::Mmap2(mmap) if !self.is_live => {
                if let Some(process) = self.tracker.process_at(mmap.pid, time) {
                    let path = mmap.path.bytes().to_cow();
                    self.modules.data_mapped(process, &mapped_file(mmap, &path, time));
                }
            }
            Record::Mmap(mmap) if !parsed.misc.contains(Misc::MMAP_DATA) => {
                let path = mmap.path.bytes().to_cow();
                let mapped = MappedFile {
                    start: mmap.start,
                    end: mmap.start.0.saturating_add(mmap.len).into(),
                    file_offset: mmap.file_offset,
                    identity: None,
                    build_id: None,
                    path: &path,
                    thread: mmap.tid,
                    since: time,
                };
                self.apply_mapping(mmap.pid, &mapped);
            }
            Record::Comm(comm) => {
                let exec = parsed.misc.contains(Misc::COMM_EXEC);
                self.apply_name(comm.pid, comm.tid, exec, &comm.name.bytes().to_cow(), time);
            }
            Record::Fork(task) => self.apply_fork(task, time),
            Record::Exit(task) => self.apply_exit(task.pid, task.tid, time),
            Record::Ksymbol(symbol) => self.apply_kernel_symbol(symbol, time),
            Record::Lost(lost) => {
                self.sideband_lost = self.sideband_lost.saturating_add(lost.count);
                self.distrust_sideband();
            }
            _ => {}
        }
    }

    fn apply_kernel_symbol(&mut self, symbol: &Ksymbol<'_>, time: Nanos) {
        let Ksymbol { start, len, flags, name, .. } = *symbol;
        let (start, end) = (Svma(start.0), Svma(start.0.saturating_add(len.into())));
        let name = self.machine.intern_string(&name.to_string_lossy());
        let removed = flags.contains(KsymbolFlags::UNREGISTER);
        let change = if removed { AddedCodes::remove } else { AddedCodes::add };
        change(&mut self.kernel_codes, &mut self.machine, KernelCode { start, end, name }, time);
    }

    fn apply_mapping(&mut self, pid: Pid, mapped: &MappedFile<'_>) {
        // The kernel's own.
        if pid.0 == u32::MAX {
            return;
        }
        let process = self.process_at(pid, mapped.since);
        let resolved = self.modules.resolve(&mut self.machine, process, pid, mapped);
        enter(&mut self.tracker, &mut self.machine, process, mapped, resolved);
    }

    fn apply_name(&mut self, pid: Pid, tid: Tid, exec: bool, name: &[u8], time: Nanos) {
        let process = self.process_at(pid, time);
        // The kernel's are short; each child has that of its parent.
        let name = name.get(..LONGEST_NAME).unwrap_or(name);
        if let Some(names) = &mut self.thread_names {
            names.set(tid, kept_name(name), time);
        }
        if exec {
            self.tracker.exec(process, time);
            self.modules.executed(process);
            let program = self.machine.add_program(process, time, &String::from_utf8_lossy(name));
            if self.is_live {
                self.looks.executed(&mut self.machine, process, program, time);
            }
        }
        if tid.0 == pid.0 {
            self.names.insert(process, name.into());
        }
    }

    /// A child has the name of the thread that forked it, which the sideband does not tell, until it is given another.
    pub(super) fn name_of_main_thread(&mut self, process: ProcessId, name: &[u8]) {
        let was_forked = self.machine.process(process).start > Nanos(0);
        if was_forked && !self.names.contains_key(&process) {
            self.names.insert(process, name.into());
        }
    }

    fn apply_exit(&mut self, pid: Pid, tid: Tid, time: Nanos) {
        self.threads.remove(&tid);
        self.ended.insert(tid, (time, pid));
        if let Some(names) = &mut self.thread_names {
            names.end(tid, time);
        }
        let Some(process) = self.tracker.process_at(pid, time) else { return };
        // The start of another one may have been lost.
        if self.is_live && self.sideband_lost > 0 && self.tracker.is_last_thread(process, tid) {
            for thread in self.threads_now(pid) {
                self.tracker.thread_started(process, thread);
            }
        }
        if self.tracker.thread_ended(process, tid, time) {
            // In a replay nobody asks for them.
            if self.is_live {
                self.ended_processes.push((pid, time));
            }
            self.machine.end_process(process, time);
            self.modules.ended(process);
        }
    }

    fn apply_fork(&mut self, task: &Task, time: Nanos) {
        let Task { pid, parent_pid: parent, tid, parent_tid, .. } = *task;
        if let Some(names) = &mut self.thread_names {
            let process = self.tracker.process_at(parent, time).map(|known| self.machine.process(known).name);
            let process_name = process.map_or("", |name| self.machine.string(name));
            names.inherit(tid, (parent, parent_tid), time, process_name);
        }
        if tid.0 != pid.0 {
            if let Some(process) = self.tracker.process_at(pid, time) {
                self.tracker.thread_started(process, tid);
            }
            return;
        }
        // Told twice, by events that its parent has twice, each with the time of its own turn.
        if let Some(known) = self.tracker.process_at(pid, time)
            && time.0.saturating_sub(self.machine.process(known).start.0) < TOLD_TWICE.0
        {
            return;
        }
        // Forked while `/proc` was scanned, and seen by the scan.
        if time < self.scanned_at && self.tracker.process_at(pid, time).is_some() {
            return;
        }
        let (process, parent) = self.tracker.fork(parent, pid, time);
        let name = parent.map_or(String::new(), |parent| match self.names.get(&parent) {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => self.machine.string(self.machine.process(parent).name).to_owned(),
        });
        let added = self.machine.add_process(pid, &name, parent, time);
        debug_assert_eq!(process, added);
        if self.is_live {
            self.looks.forked(&mut self.machine, process, parent, time);
        }
    }

    /// A process was in a cgroup at a time.
    pub(crate) fn set_cgroup(&mut self, pid: Pid, time: Nanos, path: &str) {
        let Some(process) = self.tracker.process_at(pid, time) else { return };
        if self.machine.string(self.machine.process(process).cgroup) != path {
            self.machine.set_cgroup(process, path);
        }
    }

    /// Looks at processes that the sideband told of since the last call, for what it does not tell.
    pub(crate) fn look_at_processes(&mut self, now: impl Fn() -> Nanos) {
        self.looks.take(&mut self.machine, &mut self.outside, now);
    }

    /// Programs whose arguments are not known, since they are too many.
    pub(crate) fn without_arguments(&self) -> u64 {
        self.looks.left_out()
    }

    /// The process behind a pid; one that was never heard of is looked up in `/proc`.
    pub(super) fn process_at(&mut self, pid: Pid, time: Nanos) -> ProcessId {
        match self.tracker.process_at(pid, time) {
            Some(process) => process,
            None => self.discover(pid),
        }
    }

    /// The process that a thread was of which has ended a moment ago. It gives up its CPU after that, with records that tell
    /// no process.
    pub fn process_of_ended(&self, thread: Tid) -> Option<Pid> {
        self.ended.get(&thread).map(|&(_, pid)| pid)
    }

    /// The threads whose stacks went beyond the mapping where the kernel has them end, since the last call.
    pub fn take_left_mappings(&mut self) -> Vec<Tid> {
        let mut threads = std::mem::take(&mut self.left_mappings);
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Where the outer frames lie that had to be read behind their samples, since the last call.
    pub fn take_outer_places(&mut self) -> FxHashMap<Tid, OuterPlaces> {
        std::mem::take(&mut self.outer_places)
    }

    /// The processes that have ended by a time, with when, since the last call.
    pub fn take_ended_processes(&mut self, until: Nanos) -> Vec<(Pid, Nanos)> {
        self.ended_processes.extract_if(.., |(_, time)| *time <= until).collect()
    }

    /// No sample from before `watermark` will come.
    pub fn prune(&mut self, watermark: Nanos) {
        self.tracker.prune(watermark);
        self.kernel_codes.prune(watermark);
        self.ended.retain(|_, (end, _)| watermark.0.saturating_sub(end.0) < LAST_OF_THREAD.0);
        self.rereads.end_round(watermark);
        self.looks.prune(watermark);
        if let Some(names) = &mut self.thread_names {
            names.prune(watermark);
        }
        self.late.borrow_mut().end_round(watermark);
        if watermark.0.saturating_sub(self.code_known_since.0) >= CODE_LIFETIME.0 {
            self.unwinder.forget_code();
            self.compat_unwinder.forget_code();
            self.aarch64_unwinder.forget_code();
            self.code_known_since = watermark;
        }
    }

    /// What is recorded so far.
    pub fn machine(&self) -> &ExportMachine {
        &self.machine
    }

    /// What is recorded so far, to be completed.
    pub fn machine_mut(&mut self) -> &mut ExportMachine {
        &mut self.machine
    }

    /// The ledger, into which the source enters its losses at the end.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Delivered and lost samples.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How stacks ended.
    pub fn tally(&self) -> &StackTally {
        &self.tally
    }

    /// The files that were executed.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Whether a thread's process has executed another program since.
    pub(crate) fn has_executed_since(&self, thread: ThreadId, time: Nanos) -> bool {
        let process = self.machine.thread(thread).process;
        self.tracker.executed(process).is_some_and(|executed| executed > time)
    }

    /// The files that were executed, to be looked for otherwise.
    pub(crate) fn modules_mut(&mut self) -> &mut Modules {
        &mut self.modules
    }

    /// Records of the sideband that the kernel had no room for: mappings may be missing.
    pub fn sideband_lost(&self) -> u64 {
        self.sideband_lost
    }

    /// Gives the users of all processes their names.
    pub(crate) fn name_users(&mut self) {
        name_users(&mut self.machine, &mut self.outside);
    }

    /// Ends the recording.
    pub fn into_parts(mut self) -> (ExportMachine, Modules, Ledger, StackTally) {
        for (process, name) in self.names {
            self.machine.rename_process(process, &String::from_utf8_lossy(&name));
        }
        self.modules.jit_mut().finish(&mut self.machine);
        (self.machine, self.modules, self.ledger, self.tally)
    }
}

/// What a record tells of a mapping.
fn mapped_file<'a>(mmap: &Mmap2<'_>, path: &'a [u8], time: Nanos) -> MappedFile<'a> {
    let (identity, build_id) = match mmap.file {
        perf::MappedFile::Inode { major, minor, inode, generation } => {
            (Some(Identity { major, minor, inode, generation }), None)
        }
        perf::MappedFile::BuildId(id) => (None, id),
    };
    let end = mmap.start.0.saturating_add(mmap.len).into();
    let Mmap2 { start, file_offset, tid: thread, .. } = *mmap;
    MappedFile { start, end, file_offset, identity, build_id, path, thread, since: time }
}

/// Mappings of a thread, where they can be read: those of code, or with `all` the others, too.
fn mappings(outside: &mut Outside, thread: Tid, all: bool, mut visit: impl FnMut(&MapsEntry<'_>)) {
    if outside.is_machine() {
        let _ = procfs::mappings(thread, visit);
        return;
    }
    let entries = outside.ask(Question::new(Subject::Mappings, thread.0), || {
        let mut entries = Vec::new();
        let _ = procfs::mappings(thread, |entry| {
            if all || entry.executable || Beginning::of_entry(entry).is_some() {
                entries.push(MapsEntry { path: entry.path.to_vec().into(), ..*entry });
            }
        });
        Some(entries)
    });
    entries.iter().flatten().for_each(|entry: &MapsEntry<'static>| visit(entry));
}

/// Enters a mapping into the tracked state and the records.
fn enter(
    tracker: &mut Tracker,
    machine: &mut ExportMachine,
    process: ProcessId,
    mapped: &MappedFile<'_>,
    resolved: Resolved,
) {
    let Resolved { module, bias, file_offset } = resolved;
    let MappedFile { start, end, since, .. } = *mapped;
    if tracker.map(process, MappedModule { start, end, file_offset, bias, module, since }) {
        machine.add_mapping(ModuleMapping { process, module, start, end, file_offset, bias, since });
    }
}
