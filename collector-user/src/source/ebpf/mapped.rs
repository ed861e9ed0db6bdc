//! The program at the exit of system calls that give memory.

use std::io;

use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::{Counter, SampleFlags, SampleHeader};

use super::attached::Attached;
use super::part::{Ended, Part};
use crate::source::{Account, EventIndex};

/// The program.
pub(super) struct Mapped {
    programs: Attached,
    event: EventIndex,
    /// Records taken out of the rings.
    taken: u64,
}

impl Mapped {
    /// `event` is the number of its records, `program` the one for this kernel.
    pub(super) fn new(event: EventIndex, program: &'static str) -> Self {
        Self { programs: Attached::new(&[(program, "sys_exit")]), event, taken: 0 }
    }
}

impl Part for Mapped {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
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
