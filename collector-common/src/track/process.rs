//! Lifetimes of processes: a pid that is used again is another process, an execution of a program is another
//! [`Space`] of the same process.

use std::num::NonZeroU64;

use hashbrown::{HashMap, HashSet};

use super::space::{MappedModule, Space};
use crate::ids::{Avma, Nanos, Pid, Tid};
use crate::intern::Seeded;
use crate::record::ProcessId;

/// Processes before the last one of a pid that are known, while samples could still mean them: the kernel gives a number again
/// when it has given all others.
const MOST_PREVIOUS: u32 = 64;

/// One lifetime of a process.
#[derive(Debug)]
struct Tracked {
    pid: Pid,
    start: Nanos,
    /// When its last thread ended.
    end: Option<Nanos>,
    /// Threads that are known to run. A set, not a number: what is told twice, by the sideband and by a look at the
    /// process, makes no difference.
    threads: HashSet<Tid, Seeded>,
    /// The process that had the pid before, while a sample could still mean it.
    previous: Option<ProcessId>,
    /// How many there are before it.
    depth: u32,
    /// Images in the order they were executed, with the time each began.
    images: Vec<(Nanos, Space)>,
    /// When the last one began.
    executed: Nanos,
}

impl Tracked {
    /// Whether it executed a program of which nothing is mapped yet.
    fn is_executing(&self) -> bool {
        self.images.last().is_some_and(|(since, space)| *since > self.start && space.is_empty())
    }
}

/// All processes of a recording. [`ProcessId`]s count up from 0 in the order processes are seen.
#[derive(Debug, Default)]
pub struct Tracker {
    /// The last process of each pid.
    current: HashMap<Pid, ProcessId, Seeded>,
    processes: Vec<Tracked>,
    /// Ended processes that still hold state, and processes with more than one image.
    historic: Vec<ProcessId>,
    /// Changes of mappings so far.
    changes: u64,
}

impl Tracker {
    /// A process that runs when the recording starts or is found later, with its threads.
    pub fn existing(&mut self, pid: Pid, threads: impl IntoIterator<Item = Tid>) -> ProcessId {
        self.add(pid, Nanos(0), Space::default(), threads.into_iter().collect())
    }

    /// `parent` made the process `pid`. Gives the new process and its parent.
    pub fn fork(&mut self, parent: Pid, pid: Pid, time: Nanos) -> (ProcessId, Option<ProcessId>) {
        let parent = self.process_at(parent, time);
        let space = parent.and_then(|id| self.space_at(id, time)).map(Space::fork).unwrap_or_default();
        (self.add(pid, time, space, HashSet::from_iter([Tid(pid.0)])), parent)
    }

    fn add(&mut self, pid: Pid, start: Nanos, space: Space, threads: HashSet<Tid, Seeded>) -> ProcessId {
        let id = ProcessId(self.processes.len() as u32);
        let mut previous = self.current.insert(pid, id);
        let mut depth = 0;
        if let Some(known) = previous.and_then(|previous| self.processes.get_mut(previous.0 as usize)) {
            depth = known.depth + 1;
            // Nobody told of its end.
            if known.end.is_none() {
                known.end = Some(start);
                self.historic.extend(previous);
            }
        }
        if depth > MOST_PREVIOUS {
            (previous, depth) = (None, 0);
        }
        let images = vec![(start, space)];
        self.processes.push(Tracked {
            pid,
            start,
            end: None,
            threads,
            previous,
            depth,
            images,
            executed: start,
        });
        id
    }

    /// A thread was added to a process.
    pub fn thread_started(&mut self, process: ProcessId, thread: Tid) {
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.threads.insert(thread);
        }
    }

    /// A look at a process showed these threads: what was heard of others was not all.
    pub fn threads_found(&mut self, process: ProcessId, threads: impl IntoIterator<Item = Tid>) {
        if let Some(process) = self.processes.get_mut(process.0 as usize) {
            process.threads = threads.into_iter().collect();
        }
    }

    /// Whether a thread is the only one that is known to run.
    pub fn is_last_thread(&self, process: ProcessId, thread: Tid) -> bool {
        let tracked = self.processes.get(process.0 as usize);
        tracked.is_some_and(|tracked| tracked.threads.len() == 1 && tracked.threads.contains(&thread))
    }

    /// A thread ended. Tells whether it was the process's last.
    ///
    /// The kernel writes such a record, too, for a thread that executes a program which may not be watched by all
    /// (setuid, or not readable), before it maps anything of it: `begin_new_exec` of `fs/exec.c` takes the thread's own
    /// events from it as from one that ends.
    pub fn thread_ended(&mut self, process: ProcessId, thread: Tid, time: Nanos) -> bool {
        let Some(tracked) = self.processes.get_mut(process.0 as usize) else { return false };
        if tracked.is_executing() {
            return false;
        }
        tracked.threads.remove(&thread);
        if !tracked.threads.is_empty() || tracked.end.is_some() {
            return false;
        }
        tracked.end = Some(time);
        self.historic.push(process);
        true
    }

    /// The process executed a program: its mappings are gone. All but one of its threads are, too, and that one has the
    /// main thread's id now, whichever it had.
    pub fn exec(&mut self, process: ProcessId, time: Nanos) {
        if let Some(tracked) = self.processes.get_mut(process.0 as usize) {
            tracked.threads = HashSet::from_iter([Tid(tracked.pid.0)]);
            tracked.images.push((time, Space::default()));
            tracked.executed = time;
            self.historic.push(process);
        }
    }

    /// When the process was made, or executed its last program.
    pub fn executed(&self, process: ProcessId) -> Option<Nanos> {
        self.processes.get(process.0 as usize).map(|tracked| tracked.executed)
    }

    /// The process mapped executable memory.
    /// `false` when just that was mapped there already.
    pub fn map(&mut self, process: ProcessId, mapping: MappedModule) -> bool {
        self.changes += 1;
        let generation = NonZeroU64::MIN.saturating_add(self.changes);
        if let Some(tracked) = self.processes.get_mut(process.0 as usize) {
            let image = tracked.images.iter_mut().rev().find(|(since, _)| *since <= mapping.since);
            if let Some((_, space)) = image {
                let new = space.map(mapping, generation);
                if space.has_history() {
                    self.historic.push(process);
                }
                return new;
            }
        }
        false
    }

    /// The process that had `pid` at `time`: the last one that had started by then, and for a time before all
    /// of them the first that is still known.
    pub fn process_at(&self, pid: Pid, time: Nanos) -> Option<ProcessId> {
        let mut id = *self.current.get(&pid)?;
        loop {
            let tracked = self.processes.get(id.0 as usize)?;
            match tracked.previous {
                Some(previous) if tracked.start > time => id = previous,
                _ => return Some(id),
            }
        }
    }

    /// The mappings of `process` at `time`.
    pub fn space_at(&self, process: ProcessId, time: Nanos) -> Option<&Space> {
        let images = &self.processes.get(process.0 as usize)?.images;
        let started = images.iter().rev().find(|(since, _)| *since <= time);
        started.or(images.first()).map(|(_, space)| space)
    }

    /// The mapping that held `address` in `process` at `time`.
    pub fn mapping_at(&self, process: ProcessId, address: Avma, time: Nanos) -> Option<&MappedModule> {
        self.space_at(process, time)?.mapping_at(address, time)
    }

    /// No query for a time before `watermark` will come: drops the state only those could need.
    pub fn prune(&mut self, watermark: Nanos) {
        let mut historic = std::mem::take(&mut self.historic);
        historic.sort_unstable();
        historic.dedup();
        historic.retain(|&id| self.prune_process(id, watermark));
        self.historic = historic;
    }

    /// Whether the process still holds history.
    fn prune_process(&mut self, id: ProcessId, watermark: Nanos) -> bool {
        let Some(tracked) = self.processes.get_mut(id.0 as usize) else { return false };
        if tracked.end.is_some_and(|end| end <= watermark) {
            let pid = tracked.pid;
            tracked.images = Vec::new();
            if self.current.get(&pid) == Some(&id) {
                self.current.remove(&pid);
            } else {
                self.unlink(pid, id);
            }
            return false;
        }
        let keep_from = tracked.images.iter().rposition(|(since, _)| *since <= watermark).unwrap_or(0);
        tracked.images.drain(..keep_from);
        for (_, space) in &mut tracked.images {
            space.prune(watermark);
        }
        let history = tracked.images.iter().any(|(_, space)| space.has_history());
        tracked.end.is_some() || tracked.images.len() > 1 || history
    }

    /// Takes an ended process out of the chain of its pid.
    fn unlink(&mut self, pid: Pid, id: ProcessId) {
        let mut at = self.current.get(&pid).copied();
        while let Some(tracked) = at.and_then(|at| self.processes.get_mut(at.0 as usize)) {
            if tracked.previous == Some(id) {
                tracked.previous = None;
                return;
            }
            at = tracked.previous;
        }
    }
}
