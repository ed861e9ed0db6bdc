//! Starts and ends of processes in, the lives that a process id had out.

use std::collections::BTreeMap;

use collector_common::intern::StringId;

use super::by_time::ALWAYS;
use super::code::Process;

/// Processes, one for each life of a process id.
#[derive(Debug, Default)]
pub(super) struct Lives {
    all: Vec<Life>,
    /// Positions by process id, in the order of time.
    by_pid: BTreeMap<u64, Vec<u32>>,
}

#[derive(Debug)]
struct Life {
    pid: u64,
    /// What is of the process id from then on is of this life, in ticks; 0 for the first one.
    since: u64,
    process: Process,
}

impl Lives {
    /// Every process id, with the positions of its lives.
    pub(super) fn by_pid(&self) -> impl Iterator<Item = (u64, &[u32])> {
        self.by_pid.iter().map(|(&pid, lives)| (pid, &**lives))
    }

    pub(super) fn process(&self, life: u32) -> Option<&Process> {
        self.all.get(life as usize).map(|life| &life.process)
    }

    /// # Panics
    /// Where there is no such life.
    pub(super) fn process_mut(&mut self, life: u32) -> &mut Process {
        &mut self.all[life as usize].process
    }

    /// The process id of a life.
    pub(super) fn pid(&self, life: u32) -> u64 {
        self.all.get(life as usize).map_or(0, |life| life.pid)
    }

    /// The last life of a process id by now.
    pub(super) fn last(&mut self, pid: u64) -> u32 {
        let last = self.by_pid.get(&pid).and_then(|lives| lives.last()).copied();
        last.unwrap_or_else(|| self.begin(pid, 0))
    }

    /// The life of a process id at a time, and the ticks, the last one excluded, at which it is that one.
    pub(super) fn at(&mut self, pid: u64, time: u64) -> (u32, [u64; 2]) {
        let lives = self.by_pid.get(&pid).map_or(&[][..], Vec::as_slice);
        let since = |life: &u32| self.all.get(*life as usize).map_or(0, |life| life.since);
        let next = lives.partition_point(|life| since(life) <= time);
        match next.checked_sub(1).and_then(|last| lives.get(last)) {
            Some(life) => (*life, [since(life), lives.get(next).map_or(u64::MAX, since)]),
            None => (self.begin(pid, 0), ALWAYS),
        }
    }

    fn begin(&mut self, pid: u64, since: u64) -> u32 {
        let life = self.all.len() as u32;
        self.all.push(Life { pid, since, process: Process::default() });
        self.by_pid.entry(pid).or_default().push(life);
        life
    }

    /// A process is told of: its name, and its pid in its pid namespace. What is told again of one that goes on is of the same.
    pub(super) fn told(
        &mut self,
        pid: u64,
        time: u64,
        is_new: bool,
        (name, namespace_pid): (StringId, Option<u32>),
    ) {
        let last = self.last(pid);
        let before = &self.all[last as usize];
        let has_ended = before.process.end.is_some_and(|end| end <= time);
        let is_known =
            before.process.name.is_some() && time > before.since.max(before.process.start.unwrap_or(0));
        let is_another = has_ended || is_new && is_known;
        let since = time.max(before.since);
        let life = if is_another { self.begin(pid, since) } else { last };
        let process = self.process_mut(life);
        (process.name, process.namespace_pid) = (Some(name), namespace_pid);
        if is_another || is_new {
            process.start = Some(time);
        }
    }

    /// The process that a process id was of ended.
    pub(super) fn ended(&mut self, pid: u64, time: u64) {
        let last = self.last(pid);
        let lives = self.by_pid.get(&pid).map_or(&[][..], Vec::as_slice);
        // What happened at once is told in the order of starts and ends.
        let has_begun_now = self.all[last as usize].since == time;
        let before = lives.iter().rev().nth(1).copied().filter(|_| has_begun_now);
        let before = before.filter(|&life| self.all[life as usize].process.end.is_none());
        self.process_mut(before.unwrap_or(last)).end = Some(time);
    }
}
