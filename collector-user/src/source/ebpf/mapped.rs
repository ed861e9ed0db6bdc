//! The program at the exit of system calls that give memory, and those that are told of new heaps.

use std::io;

use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{Counter, GrowthOffsets, SampleFlags, SampleHeader};

use super::attached::Attached;
use super::btf::{BtfError, KernelTypes};
use super::part::{Ended, Part};
use crate::source::{Account, EventIndex};

/// The programs.
pub(super) struct Mapped {
    programs: Attached,
    event: EventIndex,
    /// Records taken out of the rings.
    taken: u64,
}

impl Mapped {
    /// `event` is the number of its records, `program` the one at the exit of calls for this kernel.
    pub(super) fn new(event: EventIndex, program: &'static str) -> Self {
        let programs = [
            ("heap_is_copied", "sched_process_fork"),
            ("heap_is_made", "sched_process_exec"),
            (program, "sys_exit"),
        ];
        Self { programs: Attached::new(&programs), event, taken: 0 }
    }
}

impl Part for Mapped {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn globals(&self, types: &KernelTypes) -> Result<Vec<(&'static str, Vec<u8>)>, BtfError> {
        let offsets = GrowthOffsets {
            heap_end: types.offset(&["mm_struct", "brk"])?,
            mapping_file: types.offset(&["vm_area_struct", "vm_file"])?,
            mapping_flags: types.offset(&["vm_area_struct", "vm_flags"])?,
        };
        Ok(vec![("GROWTH_OFFSETS", bytemuck::bytes_of(&offsets).to_vec())])
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        let is_ours = header.flags().has(SampleFlags::MAPPED);
        self.taken += u64::from(is_ours);
        is_ours.then_some(self.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::MappedLost]
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, _: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::MappedLost));
        let recorded = ended.counted.counter(Counter::MappedRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        Ok(())
    }
}
