//! Names of threads for samples that come without them, as those of plain perf events: the sideband tells of each change, and
//! what a thread was called before is in `/proc`.

use std::fs;

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::COMM_LEN;
use rustc_hash::FxHashMap;

/// A name as the kernel keeps it: up to 15 bytes, then NULs.
pub(super) type Name = [u8; COMM_LEN];

/// The name of each thread over time, as far back as samples may come from.
#[derive(Debug, Default)]
pub(super) struct ThreadNames {
    /// What is in `/proc` now is of other threads.
    recorded: bool,
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

    /// A thread was made: it is called as the one that made it, if that is known.
    pub(super) fn inherit(&mut self, thread: Tid, parent: Tid, time: Nanos) {
        if let Some(name) = self.known(parent, time) {
            self.set(thread, name, time);
        }
    }

    /// A thread ended.
    pub(super) fn end(&mut self, thread: Tid, time: Nanos) {
        self.ended.push((thread, time));
    }

    /// Those of a recording that was made earlier.
    pub(super) fn recorded() -> Self {
        Self { recorded: true, ..Self::default() }
    }

    /// A thread's name at a time. One that was never heard of is looked up; where it has ended meanwhile, it is called as
    /// its process.
    pub(super) fn at(&mut self, pid: Pid, thread: Tid, time: Nanos, process_name: &str) -> Name {
        self.known(thread, time).unwrap_or_else(|| {
            let now = (!self.recorded).then(|| fs::read(format!("/proc/{pid}/task/{thread}/comm")));
            let name = match now {
                Some(Ok(line)) => kept_name(line.strip_suffix(b"\n").unwrap_or(&line)),
                _ => kept_name(process_name.as_bytes()),
            };
            self.names.insert(thread, vec![(Nanos(0), name)]);
            name
        })
    }

    fn known(&self, thread: Tid, time: Nanos) -> Option<Name> {
        let names = self.names.get(&thread)?;
        let at_that_time = names.iter().rev().find(|(since, _)| *since <= time);
        at_that_time.or(names.first()).map(|(_, name)| *name)
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
        names.inherit(other, main, Nanos(15));
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
}
