//! What a CPU's events came to: how often each happened by the kernel's own count, what was handed over, what was lost.

use std::io;
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::loss::{Ledger, LossCause};

use super::attributes::Kind;
use crate::source::EventIndex;
use crate::source::shared_ring::{Opened, SharedRing};
use crate::source::ticks::Clock;
use crate::sys::perf_event::PerfEvent;

/// One kind of event on a CPU, by the kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// How often it happened; of a clock, nanoseconds.
    happened: u64,
    /// Of that, what there was no room for, where the kernel counts it.
    lost: u64,
}

/// Records of one kind of event on a CPU that were handed over.
#[derive(Clone, Copy, Debug, Default)]
struct HandedOver {
    records: u64,
    /// By how much all of them count.
    weight: u64,
    /// Whether the kernel made the event stand still, as it happened too often in a tick of its timer.
    was_throttled: bool,
}

impl HandedOver {
    /// How many records are missing, of something that happened so often and of which there was no room for some records: as many as have
    /// what is left of the weight, if each has as much as those that are there.
    fn missing(self, Counted { happened, lost }: Counted) -> u64 {
        let left = u128::from(happened.saturating_sub(self.weight));
        let records = match self.weight {
            0 => left,
            weight => left * u128::from(self.records) / u128::from(weight),
        };
        u64::try_from(records).unwrap_or(u64::MAX).saturating_sub(lost)
    }
}

/// A CPU's counts, by kind of event.
#[derive(Debug)]
pub(super) struct Counts {
    handed_over: Vec<HandedOver>,
    /// What records in the ring told to be lost, of whatever kind.
    told_lost: u64,
    /// Records that could not be read, of whatever kind.
    malformed: u64,
    /// Counts of events that ended, when the CPU was online earlier.
    before: Vec<Counted>,
}

impl Counts {
    pub(super) fn of(kinds: usize) -> Self {
        Self {
            handed_over: vec![HandedOver::default(); kinds],
            told_lost: 0,
            malformed: 0,
            before: vec![Counted::default(); kinds],
        }
    }

    /// A record was handed over, which counts by a weight.
    pub(super) fn hand_over(&mut self, kind: usize, weight: u64) {
        if let Some(handed_over) = self.handed_over.get_mut(kind) {
            handed_over.records += 1;
            handed_over.weight = handed_over.weight.saturating_add(weight);
        }
    }

    /// The kernel makes an event stand still.
    pub(super) fn throttle(&mut self, kind: usize) {
        if let Some(handed_over) = self.handed_over.get_mut(kind) {
            handed_over.was_throttled = true;
        }
    }

    /// How many kinds were made to stand still of which not each one has a record, so that nothing tells how many samples are missing.
    pub(super) fn throttled(&self, kinds: &[Kind]) -> u64 {
        let sampled = |kind: &Kind| kind.index != EventIndex::CLOCK && !kind.records_each();
        let throttled =
            kinds.iter().zip(&self.handed_over).filter(|(kind, of)| sampled(kind) && of.was_throttled);
        throttled.count() as u64
    }

    /// A record told of lost ones.
    pub(super) fn lost_is_told(&mut self, count: u64) {
        self.told_lost += count;
    }

    /// Records could not be read.
    pub(super) fn is_malformed(&mut self, count: u64) {
        self.malformed += count;
    }

    /// What records told of.
    pub(super) fn told_lost(&self) -> u64 {
        self.told_lost
    }

    /// Takes in what events have counted that are going to be closed.
    pub(super) fn keep(&mut self, shared: &SharedRing, counts_lost: bool) -> io::Result<()> {
        self.before = self.counted(shared, counts_lost)?;
        Ok(())
    }

    fn counted(&self, shared: &SharedRing, counts_lost: bool) -> io::Result<Vec<Counted>> {
        let mut counted = self.before.clone();
        for Opened { kind, event, .. } in &shared.events {
            let [happened, lost] = count_of(event, counts_lost)?;
            if let Some(counted) = counted.get_mut(*kind) {
                counted.happened += happened;
                counted.lost += lost;
            }
        }
        Ok(counted)
    }

    /// Enters what was lost into the ledger. `clock` is the sampling clock's period, and how long the CPU was idle.
    ///
    /// ```text
    /// clock:  periods ──┬─ not_run                  others: happened ──┬─ ring_full
    ///                   ├─ ring_full                                   ├─ malformed
    ///                   ├─ malformed                                   ├─ handed over
    ///                   └─ handed over                                 ├─ throttled, where it was
    ///                                                                  └─ unaccounted
    /// ```
    pub(super) fn enter(
        &self,
        shared: &SharedRing,
        kinds: &[Kind],
        counts_lost: bool,
        clock: (Nanos, Duration),
        ledger: &mut Ledger,
    ) -> io::Result<()> {
        let (period, idle) = clock;
        // Where the kernel does not count by event, what records told is one sum for all; so is what could not be read.
        let told = if counts_lost { 0 } else { self.told_lost };
        ledger.lose(LossCause::RingFull, told);
        ledger.lose(LossCause::Malformed, self.malformed);
        let mut told = told + self.malformed;
        for ((kind, counted), &handed_over) in
            kinds.iter().zip(self.counted(shared, counts_lost)?).zip(&self.handed_over)
        {
            ledger.lose(LossCause::RingFull, counted.lost);
            if kind.index == EventIndex::CLOCK {
                let clock = Clock {
                    counted_ns: counted.happened,
                    idle_ns: idle.as_nanos() as u64,
                    busy_runs: handed_over.records + counted.lost + told,
                    idle_runs: 0,
                };
                ledger.lose(LossCause::NotRun, clock.not_run(period.0));
                told = 0;
            } else if kind.records_each() {
                let missing = handed_over.missing(counted);
                let cause =
                    if handed_over.was_throttled { LossCause::Throttled } else { LossCause::Unaccounted };
                ledger.lose(cause, missing.saturating_sub(told));
                told = told.saturating_sub(missing);
            }
        }
        Ok(())
    }
}

/// How often an event happened, and how many of its records there was no room for.
fn count_of(event: &PerfEvent, counts_lost: bool) -> io::Result<[u64; 2]> {
    if counts_lost { event.read() } else { Ok([event.count()?, 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_in_records() {
        let missing = |happened, lost, records, weight| {
            HandedOver { records, weight, was_throttled: false }.missing(Counted { happened, lost })
        };
        // Each counts once.
        assert_eq!([missing(10, 0, 10, 10), missing(10, 3, 7, 7), missing(10, 1, 7, 7)], [0, 0, 2]);
        assert_eq!([missing(5, 0, 0, 0), missing(5, 5, 0, 0)], [5, 0]);
        // Four records of 100 on average.
        assert_eq!([missing(400, 0, 4, 400), missing(1000, 0, 4, 400), missing(1000, 6, 4, 400)], [0, 6, 0]);
    }
}
