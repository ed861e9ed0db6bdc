//! Events of one CPU that write to one ring.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use perf_event_open_sys::bindings::perf_event_attr;

use super::scope::{Scope, open_for_process};
use crate::sys::perf_event::PerfEvent;
use crate::sys::perf_ring::PerfRing;

/// An event, as one of several kinds.
pub(crate) struct Opened {
    /// Position of its attributes among those that the ring was opened with.
    pub(crate) kind: usize,
    pub(crate) event: PerfEvent,
}

/// Events with their ring. It is the first event's; the others send to it.
pub(crate) struct SharedRing {
    cpu: u32,
    kinds: Box<[perf_event_attr]>,
    pub(crate) events: Vec<Opened>,
    pub(crate) ring: PerfRing,
}

impl SharedRing {
    /// Opens events of some kinds on a CPU, with a ring of 2^n pages: n is the last of `orders`, or where so much memory may
    /// not be locked (`kernel.perf_event_mlock_kb`, `ulimit -l`) the largest of them that may.
    pub(crate) fn open(
        kinds: impl Into<Box<[perf_event_attr]>>,
        scope: &Scope,
        cpu: u32,
        orders: RangeInclusive<u32>,
    ) -> io::Result<Self> {
        let kinds = kinds.into();
        let mut events = Vec::new();
        for (kind, attr) in kinds.iter().enumerate() {
            events.extend(scope.open(attr, cpu)?.into_iter().map(|event| Opened { kind, event }));
        }
        let (first, others) = events.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let ring = map_largest(&first.event, orders)?;
        others.iter().try_for_each(|other| other.event.write_to(&first.event))?;
        Ok(Self { cpu, kinds, events, ring })
    }

    /// Opens the events for one more process. Gives the new ones.
    pub(crate) fn follow(&mut self, pid: u32) -> io::Result<&[Opened]> {
        let known = self.events.len();
        for (kind, attr) in self.kinds.iter().enumerate() {
            for event in open_for_process(attr, pid, self.cpu)? {
                event.write_to(&self.events[0].event)?;
                self.events.push(Opened { kind, event });
            }
        }
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
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && order > smallest => {}
            result => return result,
        }
    }
    Err(io::ErrorKind::InvalidInput.into())
}
