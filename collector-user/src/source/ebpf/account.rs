//! The account of a recording: what the kernel ran, what the programs counted, and the ledger that follows.

use collector_common::loss::{Ledger, LossCause};
use collector_common::wire::Counter;

/// Figures of the sampling programs, taken after the events were stopped and the rings emptied.
#[derive(Clone, Copy, Debug, Default)]
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

/// One CPU's sampling clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Nanoseconds it counted.
    pub(super) counted_ns: u64,
    /// Nanoseconds for which the CPU was idle meanwhile, to about 10 ms.
    pub(super) idle_ns: u64,
    /// Runs of the program that interrupted something.
    pub(super) busy_runs: u64,
    /// Runs of the program that interrupted the idle task.
    pub(super) idle_runs: u64,
}

impl Clock {
    /// Periods without a run, while the CPU was busy. An idle CPU may sleep through its ticks, as one of a virtual
    /// machine's does; these were no samples.
    ///
    /// A CPU that was never idle is accounted for exactly. Where one was, what can't be told from idle time is not
    /// called a loss: `/proc/stat` counts in steps of 10 ms, at both ends, and does not count the time in which
    /// an idle CPU serves its ticks, for which a 32nd is allowed.
    pub(super) fn not_run(&self, period_ns: u64) -> u64 {
        const IDLE_STEPS_NS: u64 = 20_000_000;
        const TICK_SHARE: u64 = 32;
        let period = period_ns.max(1);
        let missing = (self.counted_ns / period).saturating_sub(self.busy_runs + self.idle_runs);
        if self.idle_ns == 0 {
            return missing;
        }
        let idle_ns = self.idle_ns + self.idle_ns / TICK_SHARE + IDLE_STEPS_NS;
        let slept = (idle_ns / period).saturating_sub(self.idle_runs);
        missing.saturating_sub(slept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1_000_000;

    #[test]
    fn ticks_that_an_idle_cpu_slept_through_are_no_samples() {
        let second = 1_000 * PERIOD;
        let slept = Clock { counted_ns: 10 * second, idle_ns: 9 * second, busy_runs: 900, idle_runs: 0 };
        assert_eq!(slept.not_run(PERIOD), 0, "100 missing periods are within what an idle CPU hides");
        let lost = Clock { busy_runs: 0, ..slept };
        // 10,000 periods, of which 9,000 + 9,000 / 32 + 20 may have been idle.
        assert_eq!(lost.not_run(PERIOD), 10_000 - 9_000 - 281 - 20);
    }

    #[test]
    fn a_busy_cpu_is_accounted_for_exactly() {
        let busy = Clock { counted_ns: 1_000 * PERIOD, idle_ns: 0, busy_runs: 990, idle_runs: 0 };
        assert_eq!(busy.not_run(PERIOD), 10);
    }
}
