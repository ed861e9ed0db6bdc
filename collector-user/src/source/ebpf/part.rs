//! What the programs at tracepoints have in common, whatever they record.

use std::io;
use std::os::fd::BorrowedFd;

use aya::Ebpf;
use collector_common::loss::Ledger;
use collector_common::wire::{Counter, SampleHeader};

use super::account::KernelAccount;
use super::attached::Attached;
use super::btf::{BtfError, KernelTypes};
use super::error::LoadError;
use crate::source::{Account, EventIndex, Gone, NewFile, SourceRecord};

/// What there is when nothing is recorded any more.
pub(super) struct Ended<'a> {
    /// The maps.
    pub(super) ebpf: &'a Ebpf,
    /// What the programs counted.
    pub(super) counted: KernelAccount,
}

/// Programs for one thing that a session asks for, beside the sampling program: made before the object is loaded, attached
/// while it is recorded.
pub(super) trait Part: Send {
    /// The programs at tracepoints.
    fn programs(&mut self) -> &mut Attached;

    /// Globals of the object that are set for this, by their names.
    ///
    /// # Errors
    /// When the kernel's types lack something.
    fn globals(&self, _types: &KernelTypes) -> Result<Vec<(&'static str, Vec<u8>)>, BtfError> {
        Ok(Vec::new())
    }

    /// Maps of the object that are larger for this, with the number of their entries; of a ring its bytes.
    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        Vec::new()
    }

    /// The object is in the kernel.
    ///
    /// # Errors
    /// When it lacks something.
    fn loaded(&mut self, _ebpf: &mut Ebpf) -> Result<(), LoadError> {
        Ok(())
    }

    /// Whether it copies the records of a tracepoint.
    fn copies(&self, _event: EventIndex) -> bool {
        false
    }

    /// Records on a CPU, too, from the beginning or, where that is over, from now on: its ring is there.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn add_cpu(&mut self, _ebpf: &Ebpf, _cpu: u32) -> Result<(), LoadError> {
        Ok(())
    }

    /// Whether what it has on a CPU goes on.
    fn covers(&mut self, _cpu: u32) -> bool {
        true
    }

    /// Programs at tracepoints are attached: attaches others.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn started(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Files with code were mapped that were not seen before; the first ones when recording begins.
    fn files_mapped(&mut self, _ebpf: &mut Ebpf, _files: &[NewFile]) {}

    /// A round is over.
    fn end_round(&mut self, _gone: &Gone) {}

    /// The number of a record that was found in a ring of samples; `None` where it is another program's.
    fn event_of(&mut self, _header: &SampleHeader) -> Option<EventIndex> {
        None
    }

    /// Whether its records are handed over in the order of their times over all CPUs, as closures want them that follow one thing
    /// through several events.
    fn keeps_order(&self) -> bool {
        false
    }

    /// It becomes readable when a ring of its own fills.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes in what is in a ring of its own.
    fn drain_own(&mut self) {}

    /// Those are detached. What else writes to maps ends here.
    ///
    /// # Errors
    /// When the kernel does not give what is in a map.
    fn stopped(&mut self, _ebpf: &mut Ebpf) -> io::Result<()> {
        Ok(())
    }

    /// Hands over what belongs behind all that is in the rings.
    fn drain_last(&mut self, _visit: &mut dyn FnMut(&SourceRecord<'_>)) {}

    /// Time in the programs in nanoseconds, and runs.
    fn cost(&mut self, ebpf: &mut Ebpf) -> [u64; 2] {
        self.programs().cost(ebpf)
    }

    /// Counters of what is lost, which are told while it is recorded.
    fn lost(&self) -> &'static [Counter] {
        &[]
    }

    /// Enters into the ledger what was lost, and into the account what was counted in the kernel and what a user should know.
    ///
    /// # Errors
    /// When the kernel does not give what is in a map.
    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()>;
}
