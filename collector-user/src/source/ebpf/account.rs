//! The account of a recording: what the kernel ran, what the programs counted, and the ledger that follows.

use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::Counter;

/// Figures of the sampling programs, taken after the events were stopped and the rings emptied.
#[derive(Clone, Copy, Debug)]
pub struct KernelAccount {
    /// Runs of the program as the kernel counted them (`bpf_prog_info::run_cnt`).
    pub run_count: u64,
    /// Time in the program (`bpf_prog_info::run_time_ns`).
    pub run_ns: u64,
    /// What the programs counted, over all CPUs; indexed by [`Counter`].
    pub counters: [u64; Counter::COUNT as usize],
    /// Periods that the sampling clocks went through without running the program, while their CPU was not idle.
    pub not_run: u64,
    /// Nanoseconds for which the clocks were throttled.
    pub throttled_ns: u64,
    /// The clocks' period.
    pub period_ns: u64,
}

impl Default for KernelAccount {
    /// Nothing has happened.
    fn default() -> Self {
        Self {
            run_count: 0,
            run_ns: 0,
            counters: [0; Counter::COUNT as usize],
            not_run: 0,
            throttled_ns: 0,
            period_ns: 0,
        }
    }
}

impl KernelAccount {
    /// One counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// Enters into the ledger what was lost in the kernel, given what user space took out of the rings.
    ///
    /// ```text
    /// periods ────┬─ not_run
    ///             └─ run_count ──┬─ filtered (idle, not a target): not samples
    ///                            ├─ ring_full, no_ring
    ///                            ├─ submitted ─┬─ delivered
    ///                            │             └─ malformed (counted by the caller)
    ///                            └─ unaccounted: the kernel counts more than the program itself
    /// ```
    pub fn enter(&self, taken: u64, ledger: &mut Ledger) {
        let filtered = self.counter(Counter::FilteredIdle) + self.counter(Counter::FilteredTarget);
        let full = self.counter(Counter::RingFull);
        let no_ring = self.counter(Counter::NoRing);
        ledger.lose(LossCause::RingFull, full);
        ledger.lose(LossCause::NoRing, no_ring);
        ledger.lose(LossCause::NotRun, self.not_run);
        ledger.lose(LossCause::Throttled, self.throttled_ns / self.period_ns.max(1));
        ledger.lose(LossCause::Unaccounted, self.run_count.saturating_sub(filtered + full + no_ring + taken));
    }
}
