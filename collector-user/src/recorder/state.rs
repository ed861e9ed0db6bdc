//! The recorder's state, and what the sideband does to it.

use std::cell::RefCell;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::Ledger;
use collector_common::perf::{Mmap2, Record, SampleId};
use collector_common::record::{
    ExportMachine, FrameId, ModuleMapping, ProcessId, SampleKindId, ThreadId, Unit,
};
use collector_common::track::{MappedModule, Tracker};
use collector_common::wire::COMM_LEN;
use rustc_hash::FxHashMap;
use unwinder::Unwinder;

use super::late::LateMemory;
use super::tally::StackTally;
use crate::modules::{MappedFile, Modules};
use crate::procfs;

/// A thread as its last sample named it.
#[derive(Clone, Copy)]
pub(super) struct KnownThread {
    pub(super) process: ProcessId,
    pub(super) comm: [u8; COMM_LEN],
    pub(super) id: ThreadId,
}

/// Fills an [`ExportMachine`].
pub struct Recorder {
    pub(super) machine: ExportMachine,
    pub(super) tracker: Tracker,
    pub(super) modules: Modules,
    pub(super) unwinder: Unwinder,
    pub(super) ledger: Ledger,
    pub(super) tally: StackTally,
    pub(super) kind: SampleKindId,
    pub(super) threads: FxHashMap<Tid, KnownThread>,
    /// What was read of stacks in this round.
    pub(super) late: RefCell<LateMemory>,
    /// Frames of the stack in hand; kept for its memory.
    pub(super) walked: Vec<unwinder::Frame>,
    pub(super) frames: Vec<FrameId>,
    /// When `/proc` had been scanned: the sideband tells of some things before that which the scan saw, too.
    scanned_at: Nanos,
    sideband_lost: u64,
    /// Processes that ended since this was last asked for.
    ended: Vec<Pid>,
}

impl Recorder {
    /// A recorder of CPU samples that stand for `period` each.
    pub fn new(period: Nanos) -> Self {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("cpu", Unit::Count, period.0);
        Self {
            machine,
            tracker: Tracker::default(),
            modules: Modules::default(),
            unwinder: Unwinder::new(),
            ledger: Ledger::default(),
            tally: StackTally::default(),
            kind,
            threads: FxHashMap::default(),
            late: RefCell::default(),
            walked: Vec::new(),
            frames: Vec::new(),
            scanned_at: Nanos(0),
            sideband_lost: 0,
            ended: Vec::new(),
        }
    }

    /// Takes in all processes that run now. The sideband must be open already, so that nothing falls between.
    pub fn scan(&mut self, now: impl FnOnce() -> Nanos) -> std::io::Result<()> {
        for pid in procfs::pids()? {
            self.discover(pid);
        }
        self.scanned_at = now();
        Ok(())
    }

    /// Takes in one process that runs already; one that ended meanwhile gets an empty entry.
    pub(super) fn discover(&mut self, pid: Pid) -> ProcessId {
        let summary = procfs::summary(pid).ok();
        let threads = summary.as_ref().map_or(1, |summary| summary.threads);
        let name = summary.as_ref().map_or("", |summary| &summary.name);
        let parent = summary.as_ref().and_then(|summary| self.tracker.process_at(summary.parent, Nanos(0)));
        let process = self.tracker.existing(pid, threads);
        let added = self.machine.add_process(pid, name, parent, Nanos(0));
        debug_assert_eq!(process, added);
        let (tracker, machine, modules) = (&mut self.tracker, &mut self.machine, &mut self.modules);
        // A process that ends while it is read keeps what was read.
        let _ = procfs::executable_mappings(pid, |entry| {
            let mapped = MappedFile {
                start: entry.start,
                end: entry.end,
                file_offset: entry.file_offset,
                identity: entry.identity,
                path: &entry.path,
            };
            map(tracker, machine, modules, process, pid, &mapped, Nanos(0));
        });
        process
    }

    /// Takes in a record of the sideband.
    pub fn apply(&mut self, record: &Record<'_>, id: &SampleId) {
        match *record {
            Record::Mmap2(mmap) if mmap.is_executable() => self.apply_mapping(&mmap, id.time),
            Record::Comm { pid, tid, exec, name } => self.apply_name(pid, tid, exec, name, id.time),
            Record::Fork { pid, parent, tid } => self.apply_fork(pid, parent, tid, id.time),
            Record::Exit { pid, tid } => {
                self.threads.remove(&tid);
                if let Some(process) = self.tracker.process_at(pid, id.time)
                    && self.tracker.thread_ended(process, id.time)
                {
                    self.machine.end_process(process, id.time);
                    self.ended.push(pid);
                }
            }
            Record::Lost(count) => self.sideband_lost += count,
            _ => {}
        }
    }

    fn apply_mapping(&mut self, mmap: &Mmap2<'_>, time: Nanos) {
        let process = self.process_at(mmap.pid, time);
        let mapped = MappedFile {
            start: mmap.start,
            end: mmap.start.0.saturating_add(mmap.len).into(),
            file_offset: mmap.file_offset,
            identity: mmap.identity,
            path: mmap.path,
        };
        let (tracker, machine, modules) = (&mut self.tracker, &mut self.machine, &mut self.modules);
        map(tracker, machine, modules, process, mmap.pid, &mapped, time);
    }

    fn apply_name(&mut self, pid: Pid, tid: Tid, exec: bool, name: &[u8], time: Nanos) {
        let process = self.process_at(pid, time);
        if exec {
            self.tracker.exec(process, time);
        }
        if tid.0 == pid.0 {
            self.machine.rename_process(process, &String::from_utf8_lossy(name));
        }
    }

    fn apply_fork(&mut self, pid: Pid, parent: Pid, tid: Tid, time: Nanos) {
        if tid.0 != pid.0 {
            if time >= self.scanned_at
                && let Some(process) = self.tracker.process_at(pid, time)
            {
                self.tracker.thread_started(process);
            }
            return;
        }
        // Forked while `/proc` was scanned, and seen by the scan.
        if time < self.scanned_at && self.tracker.process_at(pid, time).is_some() {
            return;
        }
        let (process, parent) = self.tracker.fork(parent, pid, time);
        let name = parent.map_or(String::new(), |parent| {
            self.machine.string(self.machine.process(parent).name).to_owned()
        });
        let added = self.machine.add_process(pid, &name, parent, time);
        debug_assert_eq!(process, added);
    }

    /// The process behind a pid; one that was never heard of is looked up in `/proc`.
    pub(super) fn process_at(&mut self, pid: Pid, time: Nanos) -> ProcessId {
        match self.tracker.process_at(pid, time) {
            Some(process) => process,
            None => self.discover(pid),
        }
    }

    /// The pids of processes that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.ended)
    }

    /// No sample from before `watermark` will come.
    pub fn prune(&mut self, watermark: Nanos) {
        self.tracker.prune(watermark);
        self.late.borrow_mut().clear();
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

    /// Records of the sideband that the kernel had no room for: mappings may be missing.
    pub fn sideband_lost(&self) -> u64 {
        self.sideband_lost
    }

    /// Ends the recording.
    pub fn into_parts(self) -> (ExportMachine, Modules, Ledger, StackTally) {
        (self.machine, self.modules, self.ledger, self.tally)
    }
}

/// Enters a mapping into the tracked state and the records.
fn map(
    tracker: &mut Tracker,
    machine: &mut ExportMachine,
    modules: &mut Modules,
    process: ProcessId,
    pid: Pid,
    mapped: &MappedFile<'_>,
    since: Nanos,
) {
    let (module, bias) = modules.resolve(machine, process, pid, mapped);
    let MappedFile { start, end, file_offset, .. } = *mapped;
    if tracker.map(process, MappedModule { start, end, file_offset, bias, module, since }) {
        machine.add_mapping(ModuleMapping { process, module, start, end, file_offset, bias, since });
    }
}
