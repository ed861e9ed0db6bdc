//! The ticks of a sampling clock: how many there should have been.

/// One CPU's sampling clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds it counted.
    pub(crate) counted_ns: u64,
    /// Nanoseconds for which the CPU was idle meanwhile, to about 10 ms.
    pub(crate) idle_ns: u64,
    /// Ticks that were told of and interrupted something.
    pub(crate) busy_runs: u64,
    /// Ticks that were told of and interrupted the idle task.
    pub(crate) idle_runs: u64,
}

impl Clock {
    /// Periods whose tick was not told of, while the CPU was busy. An idle CPU may sleep through its ticks, as one of a virtual
    /// machine's does; these were no samples.
    ///
    /// A CPU that was never idle is accounted for exactly. Where one was, what can't be told from idle time is not
    /// called a loss: `/proc/stat` counts in steps of 10 ms, at both ends, and does not count the time in which
    /// an idle CPU serves its ticks, for which a 32nd is allowed.
    pub(crate) fn not_run(&self, period_ns: u64) -> u64 {
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
