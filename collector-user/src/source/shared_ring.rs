//! Events of one CPU that write to one ring.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::{fs, io};

use perf_event_open_sys::bindings::perf_event_attr;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use super::scope::Scope;
use crate::doctor;
use crate::sys::perf_event::{PerfEvent, Whom};
use crate::sys::perf_ring::PerfRing;

/// How often a process is looked at for threads that were made meanwhile, at once: each look takes less time than the one
/// before, unless threads are made faster than events are opened.
const MOST_LOOKS: usize = 16;

/// What each thread or CPU has an event of.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) attr: perf_event_attr,
    /// Of a tracepoint, which occurrences are recorded.
    pub(crate) filter: Option<CString>,
}

impl From<perf_event_attr> for Wanted {
    fn from(attr: perf_event_attr) -> Self {
        Self { attr, filter: None }
    }
}

impl Wanted {
    fn open(&self, whom: Whom<'_>, cpu: u32, inherit: bool) -> io::Result<PerfEvent> {
        let mut attr = self.attr;
        attr.set_inherit(inherit.into());
        let event = PerfEvent::open(&attr, whom, cpu)?;
        if let Some(filter) = &self.filter {
            // A kernel that does not take it records more, of which the event's own filter leaves out the same.
            let _ = event.set_filter(filter);
        }
        Ok(event)
    }
}

/// An event, as one of several kinds.
pub(crate) struct Opened {
    /// Position of its attributes among those that the ring was opened with.
    pub(crate) kind: usize,
    pub(crate) event: PerfEvent,
    /// Its thread may have inherited an event of this kind before: each time that it happens is told by both then.
    pub(crate) may_be_second: bool,
}

/// Events with their ring. It is the first event's; the others send to it.
pub(crate) struct SharedRing {
    cpu: u32,
    kinds: Box<[Wanted]>,
    pub(crate) events: Vec<Opened>,
    processes: Processes,
    pub(crate) ring: PerfRing,
}

impl SharedRing {
    /// Opens events of some kinds on a CPU, with a ring of 2^n pages: n is the last of `orders`, or where so much memory may
    /// not be locked (`kernel.perf_event_mlock_kb`, `ulimit -l`) the largest of them that may.
    pub(crate) fn open(
        kinds: impl Into<Box<[Wanted]>>,
        scope: &Scope,
        cpu: u32,
        orders: RangeInclusive<u32>,
    ) -> io::Result<Self> {
        let kinds = kinds.into();
        let mut processes = Processes::default();
        let events = match scope {
            Scope::Machine => open_each(&kinds, Whom::Anyone, cpu)?,
            Scope::Cgroup(folder) => open_each(&kinds, Whom::Cgroup(folder.as_fd()), cpu)?,
            Scope::Processes(pids) => {
                let mut events = Vec::new();
                for &pid in pids {
                    processes.pids.insert(pid);
                    events.extend(processes.open_threads(&kinds, pid, cpu)?);
                }
                if events.is_empty() {
                    return Err(rustix::io::Errno::SRCH.into());
                }
                events
            }
        };
        let (first, others) = events.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let ring = map_largest(&first.event, orders)?;
        others.iter().try_for_each(|other| other.event.write_to(&first.event))?;
        Ok(Self { cpu, kinds, events, processes, ring })
    }

    /// Opens the events for one more process. Gives the new ones.
    pub(crate) fn follow(&mut self, pid: u32) -> io::Result<&[Opened]> {
        self.processes.pids.insert(pid);
        let mut opened = self.processes.open_threads(&self.kinds, pid, self.cpu)?;
        // It may descend from a process that had its events when it forked.
        for opened in &mut opened {
            opened.may_be_second = true;
        }
        self.add(opened)
    }

    /// Opens the events for threads that have been made since, and may have inherited none: the one that made them may have
    /// been about to when it got its own. Gives the new ones.
    pub(crate) fn catch_up(&mut self) -> io::Result<&[Opened]> {
        let mut opened = Vec::new();
        for pid in self.processes.pids.clone() {
            opened.extend(self.processes.open_threads(&self.kinds, pid, self.cpu)?);
        }
        self.add(opened)
    }

    fn add(&mut self, opened: Vec<Opened>) -> io::Result<&[Opened]> {
        let known = self.events.len();
        opened.iter().try_for_each(|opened| opened.event.write_to(&self.events[0].event))?;
        self.events.extend(opened);
        Ok(&self.events[known..])
    }

    /// The CPU.
    pub(crate) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Starts all events.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.events.iter().try_for_each(|opened| opened.event.enable())
    }

    /// Stops all events.
    pub(crate) fn disable(&self) -> io::Result<()> {
        self.events.iter().try_for_each(|opened| opened.event.disable())
    }
}

impl AsFd for SharedRing {
    /// Becomes readable when the ring wants to be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events[0].event.as_fd()
    }
}

fn map_largest(event: &PerfEvent, orders: RangeInclusive<u32>) -> io::Result<PerfRing> {
    let smallest = *orders.start();
    for order in orders.rev() {
        match PerfRing::map(event, order) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                if order == smallest {
                    return Err(io::Error::other(LockLimit::of_this_process(order)));
                }
            }
            result => return result,
        }
    }
    Err(io::ErrorKind::InvalidInput.into())
}

/// As much memory is locked for rings as may be.
#[derive(Debug, Error)]
#[error(
    "a ring of {ring_kib} KiB needs more locked memory than is left of {by_cpu} KiB a CPU \
     (`sysctl kernel.perf_event_mlock_kb`) and {more_kib} KiB (`ulimit -l`), which all perf events of a user share: raise one \
     of them, end other recordings, or run it with sudo"
)]
struct LockLimit {
    ring_kib: u64,
    by_cpu: i64,
    more_kib: u64,
}

impl LockLimit {
    fn of_this_process(order: u32) -> Self {
        Self {
            ring_kib: (rustix::param::page_size() as u64) << order >> 10,
            by_cpu: doctor::locked_kib_by_cpu().unwrap_or(0),
            more_kib: getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX) >> 10,
        }
    }
}

/// An event of each kind.
fn open_each(kinds: &[Wanted], whom: Whom<'_>, cpu: u32) -> io::Result<Vec<Opened>> {
    let open = |(kind, wanted): (usize, &Wanted)| {
        Ok(Opened { kind, event: wanted.open(whom, cpu, false)?, may_be_second: false })
    };
    kinds.iter().enumerate().map(open).collect()
}

/// Processes whose threads have events, and those threads.
#[derive(Default)]
struct Processes {
    pids: BTreeSet<u32>,
    threads: BTreeSet<u32>,
}

impl Processes {
    /// Opens events of some kinds on a CPU for all threads of a process that have none, and what they make from now on: none
    /// of a process that has ended.
    fn open_threads(&mut self, kinds: &[Wanted], pid: u32, cpu: u32) -> io::Result<Vec<Opened>> {
        let mut opened = Vec::new();
        self.find_threads(
            || threads_of(pid),
            |thread, may_be_second| {
                for (kind, wanted) in kinds.iter().enumerate() {
                    match wanted.open(Whom::Thread(thread), cpu, true) {
                        Ok(event) => opened.push(Opened { kind, event, may_be_second }),
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            },
        )?;
        Ok(opened)
    }

    /// Has each thread of a process opened that is new. Meanwhile others are made by those that have no event yet, so it looks
    /// again until there is no new one. Such a thread may as well have been made a moment later, and have inherited an event.
    fn find_threads(
        &mut self,
        mut threads: impl FnMut() -> Vec<u32>,
        mut open: impl FnMut(u32, bool) -> io::Result<()>,
    ) -> io::Result<()> {
        let was_looked_at = threads().iter().any(|thread| self.threads.contains(thread));
        for look in 0..MOST_LOOKS {
            let mut new = threads();
            new.retain(|&thread| self.threads.insert(thread));
            if new.is_empty() {
                break;
            }
            new.into_iter().try_for_each(|thread| open(thread, look > 0 || was_looked_at))?;
        }
        Ok(())
    }
}

/// The threads that a process has now.
pub(super) fn threads_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_made_while_others_are_opened() {
        let running = std::cell::RefCell::new(vec![1, 2]);
        let mut opened = Vec::new();
        let mut processes = Processes::default();
        let mut look = |makes: u32| {
            let threads = || running.borrow().clone();
            let open = |thread, may_be_second| {
                opened.push((thread, may_be_second));
                if thread == makes {
                    // A thread that has no event yet makes another one, and that one too.
                    running.borrow_mut().push(makes + 1);
                }
                Ok(())
            };
            processes.find_threads(threads, open).unwrap();
        };
        look(2);
        look(0);
        running.borrow_mut().push(9);
        look(9);
        assert_eq!(opened, [(1, false), (2, false), (3, true), (9, true), (10, true)]);
    }

    #[test]
    fn a_process_that_makes_threads_without_end_is_left() {
        let mut made = 0..;
        let mut processes = Processes::default();
        let mut opened = 0;
        let open = |_, _| {
            opened += 1;
            Ok(())
        };
        processes.find_threads(|| { &mut made }.take(1).collect(), open).unwrap();
        assert_eq!(opened, MOST_LOOKS);
    }
}
