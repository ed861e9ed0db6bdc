//! Looks at processes in `/proc`: what they were executed with, whose they are, and in which cgroup.
//!
//! A process that executes a program is looked at as soon as that is told, since it may end soon; one that was forked and
//! executes nothing only when it has lived for a while, since it is as the one that forked it, mostly, and many end before. A look takes
//! some 30 µs, and so many at a time are taken, at most: when hundreds of processes come at once, the rest waits for the next time.
//!
//! What is read is of when it is read. The sideband of before then is known a round later; if it tells that the process had executed
//! another program by then, the arguments that were read are that one's:
//!
//! ```text
//! process   execs a ──── execs b ────
//! sideband        told ─────────── told
//! look                       ▲ arguments of b, taken for those of a until b is told
//! ```

use std::collections::{BTreeSet, VecDeque};

use collector_common::ids::{Nanos, Pid, Uid};
use collector_common::record::{ExportMachine, ProcessId, ProgramId};
use rustc_hash::FxHashMap;

use super::outside::{Outside, Question, Subject};
use crate::procfs::{self, Surroundings};

/// Looks that are taken at a time.
const MOST_AT_ONCE: usize = 100;

/// How long a process lives that is looked at although it executed nothing.
const LIVED: Nanos = Nanos(100_000_000);

/// How long arguments are waited for: who executes a program may have to wait for a CPU before they are in place.
const SETTLED: Nanos = Nanos(2_000_000_000);

/// Looks that wait at most: further processes are not looked at.
const MOST_WAITING: usize = 1 << 16;

/// Bytes of all arguments that are kept: further programs have none.
const MOST_BYTES: usize = 16 << 20;

/// A program whose process is to be looked at.
struct Executed {
    process: ProcessId,
    program: ProgramId,
    /// When it was executed. Its arguments are there a moment later.
    time: Nanos,
}

/// Looks that were taken, and that are to be.
#[derive(Default)]
pub(super) struct Looks {
    executed: VecDeque<Executed>,
    forked: VecDeque<(ProcessId, Nanos)>,
    /// Processes whose arguments may turn out to be another program's, with when they were read.
    fresh: FxHashMap<ProcessId, Nanos>,
    /// When all processes had been looked at that were there before the recording.
    scanned: Nanos,
    /// Of all arguments.
    bytes: usize,
    left_out: u64,
}

impl Looks {
    /// A process executed a program.
    pub(super) fn executed(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        program: ProgramId,
        time: Nanos,
    ) {
        let read = self.fresh.remove(&process);
        let before = machine.programs_of(process).nth(1);
        if let Some(before) = before {
            let was_found = machine.program(before).since == Nanos(0);
            if time <= read.unwrap_or(if was_found { self.scanned } else { Nanos(0) }) {
                machine.set_arguments(before, &[], false);
            }
        }
        if self.executed.len() < MOST_WAITING {
            self.executed.push_back(Executed { process, program, time });
        } else {
            self.left_out += 1;
        }
    }

    /// All processes have been looked at that were there before the recording.
    pub(super) fn scanned(&mut self, time: Nanos) {
        self.scanned = time;
    }

    /// A process was forked. Its rights and its cgroup are those of its parent, unless it is found otherwise.
    pub(super) fn forked(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        parent: Option<ProcessId>,
        time: Nanos,
    ) {
        let inherited = parent.map(|parent| machine.process(parent).clone());
        if let (Some(parent), Some(process)) = (inherited, machine.process_mut(process)) {
            (process.user, process.cgroup, process.container) =
                (parent.user, parent.cgroup, parent.container);
        }
        if self.forked.len() < MOST_WAITING {
            self.forked.push_back((process, time));
        }
    }

    /// Looks at processes that executed a program, and at some that were forked and have lived for a while. All that the sideband has
    /// so far is told.
    pub(super) fn take(
        &mut self,
        machine: &mut ExportMachine,
        outside: &mut Outside,
        clock: impl Fn() -> Nanos,
    ) {
        let now = |outside: &mut Outside| {
            outside.ask(Question::new(Subject::Now, 0_u64), || Some(clock())).unwrap_or(Nanos(0))
        };
        let mut left = MOST_AT_ONCE;
        for _ in 0..self.executed.len() {
            let Some(Executed { process, program, time }) = self.executed.pop_front() else { break };
            let is_last = machine.programs_of(process).next() == Some(program);
            let Some(pid) = running(machine, process).filter(|_| is_last) else { continue };
            if left == 0 {
                self.executed.push_front(Executed { process, program, time });
                break;
            }
            left -= 1;
            surround(machine, outside, process, pid);
            let is_known = self.read_arguments(machine, outside, program, pid);
            if is_known {
                self.fresh.insert(process, now(outside));
            } else if now(outside).0.saturating_sub(time.0) < SETTLED.0 {
                self.executed.push_back(Executed { process, program, time });
            }
        }
        while let Some(&(process, since)) = self.forked.front()
            && left > 0
            && now(outside).0.saturating_sub(since.0) >= LIVED.0
        {
            self.forked.pop_front();
            let executed = machine.programs_of(process).next().is_some();
            if let Some(pid) = running(machine, process).filter(|_| !executed) {
                left -= 1;
                surround(machine, outside, process, pid);
            }
        }
    }

    /// Looks at a process that was there before it was told of, and at the program of that name that it executes.
    pub(super) fn found(
        &mut self,
        machine: &mut ExportMachine,
        outside: &mut Outside,
        process: ProcessId,
        program: Option<&str>,
    ) {
        let pid = machine.process(process).pid;
        surround(machine, outside, process, pid);
        if let Some(name) = program {
            let program = machine.add_program(process, Nanos(0), name);
            self.read_arguments(machine, outside, program, pid);
        }
    }

    /// All that was told up to `watermark` is known.
    pub(super) fn prune(&mut self, watermark: Nanos) {
        self.fresh.retain(|_, read| *read > watermark);
    }

    /// Programs whose arguments there was no room for.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Tells whether there were any.
    fn read_arguments(
        &mut self,
        machine: &mut ExportMachine,
        outside: &mut Outside,
        program: ProgramId,
        pid: Pid,
    ) -> bool {
        let question = Question::new(Subject::Arguments, pid.0);
        let told =
            outside.ask(question, || procfs::arguments(pid).ok().map(|(all, cut)| (Box::from(all), cut)));
        let Some((arguments, are_cut)): Option<(Box<[u8]>, bool)> = told else { return false };
        if self.bytes + arguments.len() > MOST_BYTES {
            self.left_out += 1;
            return true;
        }
        if machine.set_arguments(program, &arguments, are_cut) {
            self.bytes += arguments.len();
        }
        !arguments.is_empty()
    }
}

/// Tells the names of all users that processes are of.
pub(super) fn name_users(machine: &mut ExportMachine, outside: &mut Outside) {
    let mut unnamed: BTreeSet<Uid> = machine.processes().iter().filter_map(|process| process.user).collect();
    let names = outside.ask(Question::new(Subject::Users, 0_u64), || {
        let mut names = Vec::new();
        procfs::users(|user, name| {
            if unnamed.remove(&user) {
                names.push((user, name.to_owned()));
            }
        });
        Some(names)
    });
    names.iter().flatten().for_each(|(user, name)| machine.name_user(*user, name));
}

/// The pid of a process that has not ended, as far as that was told.
fn running(machine: &ExportMachine, process: ProcessId) -> Option<Pid> {
    let process = machine.process(process);
    process.end.is_none().then_some(process.pid)
}

/// Reads where a process lives, and whose it is. Of one that has ended nothing is there to be read.
fn surround(machine: &mut ExportMachine, outside: &mut Outside, process: ProcessId, pid: Pid) {
    let question = Question::new(Subject::Surroundings, pid.0);
    let here: Option<Surroundings> = outside.ask(question, || procfs::surroundings(pid).ok());
    let Some(here) = here else { return };
    if let Some(path) = here.cgroup {
        machine.set_cgroup(process, &path);
    }
    if let Some(process) = machine.process_mut(process) {
        (process.user, process.namespace_pid) = (here.user, here.namespace_pid);
    }
}
