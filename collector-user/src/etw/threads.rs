//! Which thread a number was at a time: of which process, and called what.
//!
//! A number is used again: a life is one use of it. What is met without a beginning has been there from before the trace.

use std::collections::HashMap;

use collector_common::ids::{Nanos, Pid, Tid};
use windows_etw::decode::kernel::{KernelEvent, Thread};
use windows_etw::decode::windows::WindowsEvent;

use super::name;

/// Lives that are kept.
const MOST: usize = 1 << 20;
/// Names that a thread may have one after the other.
const MOST_NAMES: usize = 1 << 10;

#[derive(Debug)]
struct Life {
    pid: Pid,
    /// 0 from before the trace.
    start: Nanos,
    has_ended: bool,
    /// In order, with when each was given.
    names: Vec<(Nanos, Box<str>)>,
}

/// A thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) pid: Pid,
    /// Empty where it has none.
    pub(super) name: &'a str,
    /// So it is from then on,
    pub(super) from: Nanos,
    /// until then.
    pub(super) until: Nanos,
}

/// All threads of a trace.
#[derive(Debug, Default)]
pub(super) struct Threads {
    lives: HashMap<Tid, Vec<Life>>,
    count: usize,
    left_out: u64,
}

impl Threads {
    /// Takes an event; those that tell nothing of threads are passed over.
    pub(super) fn take(&mut self, event: &KernelEvent<'_>, at: Nanos) {
        match event {
            KernelEvent::ThreadStart(thread) => {
                self.begin(thread.tid, thread.pid, at);
                self.rename(thread.tid, at, &own_name(thread));
            }
            KernelEvent::ThreadStartV0(thread) => self.begin(thread.tid, thread.pid, at),
            KernelEvent::ThreadStartV1(thread) => self.begin(thread.tid, thread.pid, at),
            KernelEvent::ThreadDcStart(thread) | KernelEvent::ThreadDcStop(thread) => {
                self.meet(thread.tid, thread.pid);
                self.rename(thread.tid, Nanos(0), &own_name(thread));
            }
            KernelEvent::ThreadDcStartV0(thread) | KernelEvent::ThreadDcStopV0(thread) => {
                self.meet(thread.tid, thread.pid);
            }
            KernelEvent::ThreadDcStartV1(thread) => self.meet(thread.tid, thread.pid),
            KernelEvent::ThreadDcStopV1(thread) => self.meet(thread.tid, thread.pid),
            KernelEvent::ThreadStop(thread) => self.end(thread.tid, thread.pid),
            KernelEvent::ThreadStopV0(thread) => self.end(thread.tid, thread.pid),
            KernelEvent::ThreadStopV1(thread) => self.end(thread.tid, thread.pid),
            KernelEvent::ThreadName(thread) => {
                self.meet(thread.tid, thread.pid);
                self.rename(thread.tid, at, &thread.thread_name.to_string());
            }
            _ => {}
        }
    }

    /// The same of an event of `Microsoft-Windows-Kernel-Process`.
    pub(super) fn take_manifest(&mut self, event: &WindowsEvent<'_>, at: Nanos) {
        match event {
            WindowsEvent::ThreadStart(thread) => self.begin(thread.tid, thread.pid, at),
            WindowsEvent::ThreadStop(thread) => self.end(thread.tid, thread.pid),
            _ => {}
        }
    }

    /// The thread that has a number at a time; one that has ended may still be told of.
    pub(super) fn at(&self, tid: Tid, at: Nanos) -> Option<Found<'_>> {
        let lives = self.lives.get(&tid)?;
        let behind = lives.partition_point(|life| life.start <= at);
        let life = lives.get(behind.checked_sub(1)?)?;
        let next = lives.get(behind).map_or(Nanos(u64::MAX), |next| next.start);
        let renamed = life.names.partition_point(|(since, _)| *since <= at);
        let called = renamed.checked_sub(1).and_then(|index| life.names.get(index));
        Some(Found {
            pid: life.pid,
            name: called.map_or("", |(_, name)| name),
            from: called.map_or(life.start, |(since, _)| (*since).max(life.start)),
            until: life.names.get(renamed).map_or(next, |(since, _)| (*since).min(next)),
        })
    }

    /// Lives that there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn running(&mut self, tid: Tid) -> Option<&mut Life> {
        self.lives.get_mut(&tid)?.last_mut().filter(|life| !life.has_ended)
    }

    fn add(&mut self, tid: Tid, pid: Pid, start: Nanos) {
        if self.count >= MOST {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        let lives = self.lives.entry(tid).or_default();
        // A record may come late; lives are in the order of their beginnings.
        let start = lives.last().map_or(start, |last| start.max(last.start));
        lives.push(Life { pid, start, has_ended: false, names: Vec::new() });
    }

    /// What begins while it is there has lost its end, unless both ways of telling told of it.
    fn begin(&mut self, tid: Tid, pid: Pid, at: Nanos) {
        if self.running(tid).is_none_or(|life| life.pid != pid || life.start == Nanos(0)) {
            self.add(tid, pid, at);
        }
    }

    fn meet(&mut self, tid: Tid, pid: Pid) {
        if self.running(tid).is_none_or(|life| life.pid != pid) {
            // What has ended before has begun before; what follows it has lost its beginning.
            self.add(tid, pid, Nanos(0));
        }
    }

    fn end(&mut self, tid: Tid, pid: Pid) {
        let last = self.lives.get(&tid).and_then(|lives| lives.last());
        if last.is_none_or(|last| last.pid != pid) {
            self.add(tid, pid, Nanos(0));
        }
        if let Some(life) = self.running(tid) {
            life.has_ended = true;
        }
    }

    fn rename(&mut self, tid: Tid, at: Nanos, called: &str) {
        let Some(life) = self.running(tid) else { return };
        let last = life.names.last().map_or("", |(_, name)| name);
        if called.is_empty() || called == last || life.names.len() >= MOST_NAMES {
            return;
        }
        let at = life.names.last().map_or(at, |(since, _)| at.max(*since));
        life.names.push((at, name(called).into()));
    }
}

fn own_name(thread: &Thread<'_>) -> String {
    thread.thread_name.map(|name| name.0.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TID: Tid = Tid(9);

    fn pid_at(threads: &Threads, at: u64) -> Option<u32> {
        threads.at(TID, Nanos(at)).map(|found| found.pid.0)
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let mut threads = Threads::default();
        threads.meet(TID, Pid(1));
        threads.end(TID, Pid(1));
        threads.begin(TID, Pid(2), Nanos(100));
        threads.meet(TID, Pid(2));
        let pids = [0, 99, 100, 500].map(|at| pid_at(&threads, at));
        assert_eq!(pids, [Some(1), Some(1), Some(2), Some(2)]);
        let first = threads.at(TID, Nanos(50)).unwrap();
        assert_eq!((first.from, first.until), (Nanos(0), Nanos(100)));
        assert_eq!(threads.at(Tid(8), Nanos(0)), None);
    }

    #[test]
    fn what_is_told_of_at_the_end_alone_was_there_from_the_beginning() {
        let mut threads = Threads::default();
        threads.end(TID, Pid(7));
        assert_eq!((pid_at(&threads, 0), pid_at(&threads, 9)), (Some(7), Some(7)));
    }

    #[test]
    fn both_ways_of_telling_make_one_thread() {
        let mut threads = Threads::default();
        threads.begin(TID, Pid(1), Nanos(5));
        threads.begin(TID, Pid(1), Nanos(6));
        threads.end(TID, Pid(1));
        threads.end(TID, Pid(1));
        assert_eq!(threads.count, 1);
    }

    #[test]
    fn a_thread_has_its_names_one_after_the_other() {
        let mut threads = Threads::default();
        threads.begin(TID, Pid(1), Nanos(5));
        threads.rename(TID, Nanos(10), "first");
        threads.rename(TID, Nanos(20), "second");
        let called = |at| threads.at(TID, Nanos(at)).map(|it| (it.name, it.from.0, it.until.0)).unwrap();
        assert_eq!(called(7), ("", 5, 10));
        assert_eq!(called(10), ("first", 10, 20));
        assert_eq!(called(30), ("second", 20, u64::MAX));
    }
}
