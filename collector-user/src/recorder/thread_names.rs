//! Names of threads for samples that come without them, as those of plain perf events: the sideband tells of each change, and
//! what a thread was called before is in `/proc`.

use std::fs;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::COMM_LEN;
use rustc_hash::FxHashMap;

use super::outside::{Outside, Question, Subject};

/// A name as the kernel keeps it: up to 15 bytes, then NULs.
pub(super) type Name = [u8; COMM_LEN];

/// The name of each thread over time, as far back as samples may come from.
#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    /// What is in `/proc` now is of other threads.
    recorded: bool,
    /// Who is asked for a thread's name.
    pub(super) outside: Outside,
    /// Each with the time since which it holds, oldest first.
    names: FxHashMap<Tid, Vec<(Nanos, Name)>>,
    /// Threads that were named since the last pruning, and those that ended.
    changed: Vec<Tid>,
    ended: Vec<(Tid, Nanos)>,
}

impl ThreadNames {
    /// A thread was named.
    pub(super) fn set(&mut self, thread: Tid, name: Name, time: Nanos) {
        self.names.entry(thread).or_default().push((time, name));
        self.changed.push(thread);
    }

    /// A thread was made: it is called as the one that made it, which is looked up if it was never heard of. Later it may have
    /// another name, or have ended.
    pub(super) fn inherit(
        &mut self,
        thread: Tid,
        (parent_pid, parent): (Pid, Tid),
        time: Nanos,
        parent_process_name: &str,
    ) {
        let name = self.at(parent_pid, parent, time, parent_process_name);
        self.set(thread, name, time);
    }

    /// A thread ended.
    pub(super) fn end(&mut self, thread: Tid, time: Nanos) {
        self.ended.push((thread, time));
    }

    /// Those that are asked for of somebody else than the machine.
    pub(super) fn of(outside: Outside) -> Self {
        Self { outside, ..Self::default() }
    }

    /// Those of a recording that was made earlier.
    pub(super) fn recorded() -> Self {
        Self { recorded: true, ..Self::default() }
    }

    /// A thread's name at a time. One that was never heard of is looked up; where it has ended or was renamed meanwhile, it is
    /// called as its process was when that was first heard of.
    pub(super) fn at(&mut self, pid: Pid, thread: Tid, time: Nanos, process_name: &str) -> Name {
        let known = self.names.entry(thread).or_default();
        if let Some((_, name)) = known.iter().rev().find(|(since, _)| *since <= time) {
            return *name;
        }
        let is_asked = known.is_empty() && !self.recorded;
        let now = || fs::read(format!("/proc/{pid}/task/{thread}/comm")).ok().map(Box::from);
        let question = Question { at: thread.0.into(), ..Question::new(Subject::ThreadName, pid.0) };
        let outside = &mut self.outside;
        let name: Option<Box<[u8]>> = is_asked.then(|| outside.ask(question, now)).flatten();
        let name = match name {
            Some(line) => kept_name(line.strip_suffix(b"\n").unwrap_or(&line)),
            None => kept_name(process_name.as_bytes()),
        };
        known.insert(0, (Nanos(0), name));
        name
    }

    /// No sample from before `watermark` will come.
    pub(super) fn prune(&mut self, watermark: Nanos) {
        for thread in std::mem::take(&mut self.changed) {
            if let Some(names) = self.names.get_mut(&thread) {
                let later = names.iter().skip(1).take_while(|(since, _)| *since <= watermark).count();
                names.drain(..later);
                if names.len() > 1 {
                    self.changed.push(thread);
                }
            }
        }
        for (thread, end) in std::mem::take(&mut self.ended) {
            if end > watermark {
                self.ended.push((thread, end));
            } else if self
                .names
                .get(&thread)
                .is_some_and(|names| names.iter().all(|(since, _)| *since <= end))
            {
                // It was not made anew.
                self.names.remove(&thread);
            }
        }
    }
}

/// A name as the kernel keeps it.
pub(super) fn kept_name(name: &[u8]) -> Name {
    let mut kept = [0; COMM_LEN];
    let len = name.len().min(COMM_LEN - 1);
    kept[..len].copy_from_slice(&name[..len]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_from_its_time_to_the_next() {
        let mut names = ThreadNames::default();
        let (pid, main, other) = (Pid(u32::MAX), Tid(7), Tid(8));
        let at = |names: &mut ThreadNames, thread, time| names.at(pid, thread, Nanos(time), "process");
        names.set(main, kept_name(b"shell"), Nanos(10));
        names.inherit(other, (pid, main), Nanos(15), "process");
        names.set(main, kept_name(b"a long name of a program"), Nanos(20));
        names.end(other, Nanos(30));
        // All of that is known when the first of the samples is taken in.
        assert_eq!(at(&mut names, main, 12), kept_name(b"shell"));
        assert_eq!(at(&mut names, main, 20), *b"a long name of \0");
        assert_eq!(at(&mut names, other, 29), kept_name(b"shell"));
        names.prune(Nanos(25));
        assert_eq!(names.names[&main].len(), 1);
        assert_eq!(at(&mut names, other, 29), kept_name(b"shell"));
        // Its number is used again before the end was pruned.
        names.set(other, kept_name(b"new"), Nanos(40));
        names.prune(Nanos(50));
        assert_eq!(at(&mut names, other, 51), kept_name(b"new"));
        names.end(other, Nanos(60));
        names.prune(Nanos(70));
        assert_eq!(at(&mut names, other, 71), kept_name(b"process"), "neither known nor in /proc");
    }

    #[test]
    fn a_name_is_not_that_of_a_later_time() {
        let mut names = ThreadNames::default();
        let (gone, thread) = (Pid(u32::MAX), Tid(7));
        // A child that executes a program, and the thread that made it, which nothing was heard of before.
        names.inherit(thread, (gone, Tid(8)), Nanos(10), "shell");
        names.set(thread, kept_name(b"program"), Nanos(20));
        names.set(Tid(8), kept_name(b"renamed"), Nanos(30));
        assert_eq!(names.at(gone, thread, Nanos(15), "other"), kept_name(b"shell"));
        assert_eq!(names.at(gone, thread, Nanos(20), "other"), kept_name(b"program"));
        assert_eq!(names.at(gone, Tid(8), Nanos(15), "other"), kept_name(b"shell"));
        // Renamed before any sample of it came.
        names.set(Tid(9), kept_name(b"late"), Nanos(50));
        assert_eq!(names.at(gone, Tid(9), Nanos(40), "process"), kept_name(b"process"));
        assert_eq!(names.at(gone, Tid(9), Nanos(50), "process"), kept_name(b"late"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_makes_a_thread_is_looked_up() {
        let mut names = ThreadNames::default();
        let own = fs::read_link("/proc/thread-self").unwrap();
        let own: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let called = fs::read("/proc/thread-self/comm").unwrap();
        names.inherit(Tid(u32::MAX), (Pid(std::process::id()), Tid(own)), Nanos(5), "other");
        let name = names.at(Pid(u32::MAX), Tid(u32::MAX), Nanos(6), "process");
        assert_eq!(name, kept_name(called.strip_suffix(b"\n").unwrap()));
    }
}
