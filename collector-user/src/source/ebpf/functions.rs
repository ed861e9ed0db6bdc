//! The programs at many functions of the kernel, and at their returns: attached to those of each event while it is recorded.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use aya::Ebpf;
use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{Counter, FunctionCall, SampleFlags, SampleHeader};

use super::attached::Attached;
use super::error::LoadError;
use super::multi_probe::MultiProbe;
use super::object::object;
use super::part::{Ended, Part};
use crate::probe::KernelFunctions;
use crate::source::remedy::remedy;
use crate::source::{Account, EventIndex, Targets};
use crate::sys::bpf_program::{Functions as Place, missed_of_link};

/// What is said of calls, and of returns, that the kernel did not run a program for.
const MISSED: [&str; 2] = [
    "calls of the kernel's functions were not recorded, as their CPU was in another probe: probe other functions",
    "returns of the kernel's functions were not recorded, as more calls waited in these than the kernel keeps, or came while their CPU was in \
     another probe: probe fewer functions, or some that return sooner",
];

/// The same where processes are chosen, which the kernel does not know of.
const MISSED_OF_ALL: [&str; 2] = [
    "calls of the kernel's functions in all processes came while their CPU was in another probe and were not recorded: some of them may be of \
     those that were chosen; probe other functions",
    "returns of the kernel's functions in all processes were not recorded, as more calls waited in these than the kernel keeps, or came while \
     their CPU was in another probe: some of them may be of those that were chosen; probe fewer functions, or some that return sooner",
];

/// The programs.
pub(super) struct Functions {
    /// The functions of each event.
    events: Vec<(EventIndex, Arc<KernelFunctions>)>,
    /// There are none at tracepoints.
    at_tracepoints: Attached,
    /// Each with whether it is at returns.
    programs: Vec<(bool, MultiProbe)>,
    /// Each with whether it is at returns.
    links: Vec<(bool, OwnedFd)>,
    /// Calls, and returns, that the kernel did not run a program for.
    missed: [u64; 2],
    /// Whether what only some threads do is recorded.
    are_chosen: bool,
    /// Records taken out of the rings.
    taken: u64,
}

impl Functions {
    /// The numbers are those of the events' records.
    pub(super) fn new(events: Vec<(EventIndex, Arc<KernelFunctions>)>, targets: &Targets) -> Self {
        let at_tracepoints = Attached::new(&[]);
        let are_chosen = *targets != Targets::default();
        Self {
            events,
            at_tracepoints,
            programs: Vec::new(),
            links: Vec::new(),
            missed: [0; 2],
            are_chosen,
            taken: 0,
        }
    }
}

impl Part for Functions {
    fn programs(&mut self) -> &mut Attached {
        &mut self.at_tracepoints
    }

    fn loaded(&mut self, ebpf: &mut Ebpf) -> Result<(), LoadError> {
        let object = object().ok_or(LoadError::NoObject)?;
        for (is_return, name) in [(false, "function_is_called"), (true, "function_returns")] {
            if self.events.iter().any(|(_, functions)| functions.is_return == is_return) {
                self.programs.push((is_return, MultiProbe::load(ebpf, object, Place::Kernel, name)?));
            }
        }
        Ok(())
    }

    fn started(&mut self) -> io::Result<()> {
        for (event, functions) in &self.events {
            let fits = |(is_return, _): &&(bool, MultiProbe)| *is_return == functions.is_return;
            let Some((_, program)) = self.programs.iter().find(fits) else { continue };
            let addresses = &functions.addresses;
            let link = program.attach_to_kernel(addresses, event.0.into(), functions.is_return);
            let link = link.map_err(|error| {
                let count = addresses.len();
                io::Error::new(
                    error.kind(),
                    format!("{count} functions of the kernel can't be probed: {error}; {}", remedy(&error)),
                )
            })?;
            self.links.push((functions.is_return, link));
        }
        Ok(())
    }

    fn stopped(&mut self, _ebpf: &mut Ebpf) -> io::Result<()> {
        for (is_return, link) in self.links.drain(..) {
            // Before Linux 6.7 it does not tell.
            self.missed[usize::from(is_return)] += missed_of_link(link.as_fd()).unwrap_or(0);
        }
        Ok(())
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::FUNCTION) {
            return None;
        }
        self.taken += 1;
        let FunctionCall { event, .. } = bytemuck::cast(header.data);
        u16::try_from(event).ok().map(EventIndex)
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::FunctionsLost]
    }

    fn cost(&mut self, _ebpf: &mut Ebpf) -> [u64; 2] {
        let costs = self.programs.iter().map(|(_, program)| program.cost());
        costs.fold([0; 2], |[time, runs], [more_time, more_runs]| [time + more_time, runs + more_runs])
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::FunctionsLost));
        let recorded = ended.counted.counter(Counter::FunctionsRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        let left_out = self.programs.iter().map(|(_, program)| program.left_out());
        ledger.lose(LossCause::NotRun, left_out.sum());
        let [calls, returns] = self.missed;
        if !self.are_chosen {
            ledger.lose(LossCause::NotRun, calls);
            ledger.lose(LossCause::NoRoom, returns);
        }
        let told = if self.are_chosen { MISSED_OF_ALL } else { MISSED };
        account.warnings.extend(self.missed.into_iter().zip(told));
        Ok(())
    }
}
