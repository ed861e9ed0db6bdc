//! The programs at many functions of the kernel, and at their returns: attached to those of each event while it is recorded.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use aya::Ebpf;
use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{Counter, FunctionCall, SampleFlags, SampleHeader};

use super::attached::Attached;
use super::load::LoadError;
use super::multi_probe::MultiProbe;
use super::object::object;
use super::part::{Ended, Part};
use crate::probe::KernelFunctions;
use crate::source::{Account, EventIndex};
use crate::sys::bpf_program::Functions as Place;

/// The programs.
pub(super) struct Functions {
    /// The functions of each event.
    events: Vec<(EventIndex, Arc<KernelFunctions>)>,
    /// There are none at tracepoints.
    at_tracepoints: Attached,
    /// Each with whether it is at returns.
    programs: Vec<(bool, MultiProbe)>,
    links: Vec<OwnedFd>,
    /// Records taken out of the rings.
    taken: u64,
}

impl Functions {
    /// The numbers are those of the events' records.
    pub(super) fn new(events: Vec<(EventIndex, Arc<KernelFunctions>)>) -> Self {
        let at_tracepoints = Attached::new(&[]);
        Self { events, at_tracepoints, programs: Vec::new(), links: Vec::new(), taken: 0 }
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
            self.links.push(link.map_err(|error| {
                let count = addresses.len();
                io::Error::new(
                    error.kind(),
                    format!("{count} functions of the kernel can't be probed: {error}"),
                )
            })?);
        }
        Ok(())
    }

    fn stopped(&mut self, _ebpf: &mut Ebpf) -> io::Result<()> {
        self.links.clear();
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

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, _account: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::FunctionsLost));
        let recorded = ended.counted.counter(Counter::FunctionsRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        let left_out = self.programs.iter().map(|(_, program)| program.left_out());
        ledger.lose(LossCause::NotRun, left_out.sum());
        Ok(())
    }
}
