//! A perf event array as a source: a perf event for each CPU, whose descriptors are the map's elements. A program's records go to
//! that of the CPU that it runs on.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use collector_common::event::EventFlags;
use collector_common::ids::Nanos;
use collector_common::loss::Ledger;

use super::error::BpfMapError;
use super::map::BpfMap;
use crate::source::perf::{PerfError, PerfEvents};
use crate::source::{
    Account, EventIndex, EventRequest, Hook, Settings, Source, SourceRecord, Targets, Trigger,
};
use crate::sys::bpf;

/// Events of a CPU, with the clock that tells whether they go on.
const FILES_BY_CPU: usize = 2;

/// A perf event array with events of ours in it while a recording goes on. Dropping it takes them out.
pub(super) struct Slots {
    /// `None` once it is closed: the kernel takes out what a descriptor of its own has put in when that is closed, and nothing
    /// that others have put there since (`perf_event_fd_array_release` in `kernel/bpf/arraymap.c`).
    map: Option<BpfMap>,
    events: PerfEvents,
    cpus: Vec<u32>,
}

impl Slots {
    pub(super) fn open(
        map: BpfMap,
        hook: &Hook,
        index: EventIndex,
        settings: &Settings,
        cpus: &[u32],
    ) -> Result<Self, BpfMapError> {
        let failed = |source| BpfMapError::Perf { map: map.name.clone(), source };
        // On a CPU without a slot no program can write.
        let cpus: Vec<u32> = cpus.iter().copied().filter(|&cpu| cpu < map.entries).collect();
        let stack = hook.event.flags().contains(EventFlags::CALLSTACK);
        let request = EventRequest { stack, ..EventRequest::new(index, Trigger::BpfMap) };
        // The kernel takes events of CPUs alone.
        let settings = Settings { targets: Targets::default(), ..settings.clone() };
        PerfError::check_open_files(1, cpus.len(), FILES_BY_CPU).map_err(failed)?;
        let events = PerfEvents::open(&settings, false, &[request], &cpus).map_err(failed)?;
        Ok(Self { map: Some(map), events, cpus })
    }

    /// Puts a CPU's event into its slot.
    fn fill(&self, cpu: u32) -> io::Result<()> {
        match (&self.map, self.events.output(cpu)) {
            (Some(map), Some(event)) => bpf::set_element(&map.fd, cpu, event.as_raw_fd().cast_unsigned()),
            _ => Ok(()),
        }
    }

    /// Takes all out again.
    fn leave(&mut self) {
        if let Some(map) = self.map.take().filter(|map| map.keeps_elements) {
            for &cpu in &self.cpus {
                // One that is there no more has been taken out by somebody else.
                let _ = bpf::delete_element(&map.fd, cpu);
            }
        }
    }
}

impl Source for Slots {
    fn name(&self) -> &'static str {
        "bpf_map"
    }

    fn start(&mut self) -> io::Result<()> {
        self.events.start()?;
        self.cpus.iter().try_for_each(|&cpu| self.fill(cpu))
    }

    fn stop(&mut self) -> io::Result<()> {
        self.leave();
        self.events.stop()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.events.descriptors()
    }

    fn drain(&mut self, until: Nanos, visit: &mut dyn FnMut(&SourceRecord<'_>)) {
        self.events.drain(until, visit);
    }

    fn keeps_order(&self) -> bool {
        self.events.keeps_order()
    }

    fn oldest(&mut self) -> Option<Nanos> {
        self.events.oldest()
    }

    fn dropped(&self) -> u64 {
        self.events.dropped()
    }

    fn close(&mut self, ledger: &mut Ledger) -> io::Result<Account> {
        self.events.close(ledger)
    }

    fn covers(&mut self, cpu: u32) -> bool {
        let has_slot = self.map.as_ref().is_some_and(|map| cpu < map.entries);
        !has_slot || self.events.covers(cpu)
    }

    fn add_cpu(&mut self, cpu: u32, _: &[u32]) -> io::Result<Option<BorrowedFd<'_>>> {
        self.events.add_cpu(cpu, &[])?;
        self.fill(cpu)?;
        if !self.cpus.contains(&cpu) {
            self.cpus.push(cpu);
        }
        Ok(self.events.output(cpu))
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.leave();
    }
}
