//! Ticks of a trace's clock in, nanoseconds since the machine was booted out.

use collector_common::event::FileTime;
use collector_common::ids::Nanos;
use collector_common::record::ClockAnchor;
use windows_etw::etl::{Clock, ClockKind};

/// A trace's times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    clock: Clock,
    /// Nanoseconds from when the machine was booted to the trace's start; 0 where that is not told.
    start: u64,
}

impl Times {
    pub(super) fn new(clock: Clock, boot: Option<FileTime>) -> Self {
        let start = boot.map(|boot| clock.start.unix_nanos() - boot.unix_nanos());
        let start = start.and_then(|start| u64::try_from(start).ok()).unwrap_or(0);
        // Later ones would leave no room for the trace itself.
        Self { clock, start: if start < 1 << 62 { start } else { 0 } }
    }

    /// What is before boot is at boot.
    pub(super) fn at(&self, ticks: i64) -> Nanos {
        Nanos(self.start.saturating_add_signed(self.clock.nanos(ticks)))
    }

    /// How long so many ticks of the performance counter are; none where the trace has another clock, and does not tell that.
    pub(super) fn span(&self, ticks: u64) -> Option<Nanos> {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.clock.frequency.max(1));
        let is_known = self.clock.kind == ClockKind::PerformanceCounter;
        u64::try_from(nanos).ok().filter(|_| is_known).map(Nanos)
    }

    /// A time of day.
    pub(super) fn of(&self, time: FileTime) -> Nanos {
        let since = time.unix_nanos() - self.clock.start.unix_nanos();
        Nanos(u64::try_from(i128::from(self.start) + since).unwrap_or(self.start))
    }

    pub(super) fn start(&self) -> Nanos {
        Nanos(self.start)
    }

    /// What clocks showed at the start; none where no time of day is told, which would be of 1601.
    pub(super) fn anchor(&self) -> Option<ClockAnchor> {
        let unix = i64::try_from(self.clock.start.unix_nanos()).ok()?;
        let anchor = ClockAnchor::at(Nanos(self.start), unix.into())?;
        // That is of the same moment as the anchor, which is another one if 1970 was to come.
        let boottime = (self.start > 0).then_some(anchor.monotonic);
        Some(ClockAnchor { boottime, ..anchor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock {
        kind: ClockKind::PerformanceCounter,
        frequency: 10_000_000,
        start_ticks: 500,
        // 2020-01-01 00:00:00 UTC.
        start: FileTime(132_223_104_000_000_000),
    };

    #[test]
    fn times_are_since_boot() {
        // An hour before.
        let times = Times::new(CLOCK, Some(FileTime(CLOCK.start.0 - 36_000_000_000)));
        let hour = 3_600_000_000_000;
        assert_eq!((times.start(), times.at(500)), (Nanos(hour), Nanos(hour)));
        assert_eq!(times.at(510), Nanos(hour + 1000));
        assert_eq!(times.at(490), Nanos(hour - 1000));
        assert_eq!(times.at(i64::MIN), Nanos(0));
        assert_eq!(times.span(3), Some(Nanos(300)));
        assert_eq!(times.span(u64::MAX), None);
        let cycles = Clock { kind: ClockKind::CpuCycles, ..CLOCK };
        assert_eq!(Times::new(cycles, None).span(3), None);
        assert_eq!(times.of(FileTime(CLOCK.start.0 + 3)), Nanos(hour + 300));
        let anchor = times.anchor().unwrap();
        assert_eq!((anchor.realtime, anchor.boottime), (1_577_836_800_000_000_000, Some(Nanos(hour))));
        assert_eq!(anchor.unix_at(times.at(510)), 1_577_836_800_000_001_000);
    }

    #[test]
    fn without_boot_they_are_since_the_start() {
        for boot in [None, Some(FileTime(CLOCK.start.0 + 1))] {
            let times = Times::new(CLOCK, boot);
            assert_eq!((times.at(510), times.at(490)), (Nanos(1000), Nanos(0)));
            assert_eq!(times.anchor().unwrap().boottime, None);
        }
    }

    /// A clock that nobody set: 1969-12-31 23:59:59 UTC; and one that tells nothing, which would be 1601.
    #[test]
    fn a_time_of_day_may_be_before_1970() {
        let early = Clock { start: FileTime(116_444_735_990_000_000), ..CLOCK };
        for boot in [None, Some(FileTime(early.start.0 - 36_000_000_000))] {
            let times = Times::new(early, boot);
            let anchor = times.anchor().unwrap();
            assert_eq!(anchor.unix_at(times.start()), -1_000_000_000);
            assert_eq!(anchor.boottime_at(times.start()), boot.map(|_| times.start()));
        }
        assert_eq!(Times::new(Clock { start: FileTime(0), ..CLOCK }, None).anchor(), None);
    }
}
