//! The clocks of the recorded machine: what the others showed at times of the recording's own.
//!
//! All times of a recording are of `CLOCK_MONOTONIC`, which stands while the machine is suspended; `CLOCK_REALTIME` and
//! `CLOCK_BOOTTIME` go on. The kernel adjusts the rate of all three alike, so that the time of day differs from the first by what is
//! constant until somebody sets the time or suspends the machine, and time since boot by what is until the latter. Hence anchors
//! at the start and at the end tell both, and what the machine slept besides (`Documentation/core-api/timekeeping.rst`).

use crate::ids::Nanos;

/// What the clocks showed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockAnchor {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: Nanos,
    /// `CLOCK_REALTIME`: nanoseconds since 1970 in UTC.
    pub realtime: u64,
    /// `CLOCK_BOOTTIME`, where it is known.
    pub boottime: Option<Nanos>,
}

impl ClockAnchor {
    /// That of a time of day in nanoseconds since 1970 in UTC, which may be before that: then of when 1970 will have begun. None where one
    /// of the two has no room in 64 bits.
    ///
    /// ```
    /// use collector_common::ids::Nanos;
    /// use collector_common::record::ClockAnchor;
    ///
    /// let anchor = ClockAnchor::at(Nanos(50), -30).unwrap();
    /// assert_eq!((anchor.monotonic, anchor.realtime), (Nanos(80), 0));
    /// assert_eq!(anchor.unix_at(Nanos(50)), -30);
    /// ```
    pub fn at(monotonic: Nanos, unix: i128) -> Option<Self> {
        let until_1970 = u64::try_from(unix.min(0).unsigned_abs()).ok()?;
        let monotonic = Nanos(monotonic.0.checked_add(until_1970)?);
        Some(Self { monotonic, realtime: unix.max(0).try_into().ok()?, boottime: None })
    }

    /// Nanoseconds since 1970 in UTC at a time of the recording, which may be before that.
    pub fn unix_at(&self, time: Nanos) -> i128 {
        i128::from(self.realtime) + i128::from(time.0) - i128::from(self.monotonic.0)
    }

    /// `CLOCK_BOOTTIME` at a time of the recording.
    pub fn boottime_at(&self, time: Nanos) -> Option<Nanos> {
        self.boottime.map(|boottime| Nanos(boottime.0.wrapping_add(time.0).wrapping_sub(self.monotonic.0)))
    }
}

/// Anchors of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// From its start.
    pub start: Option<ClockAnchor>,
    /// From its end.
    pub end: Option<ClockAnchor>,
}

impl Clocks {
    /// Nanoseconds since 1970 in UTC at a time of the recording, which may be before that, by the anchor that is nearer to it.
    pub fn unix_at(&self, time: Nanos) -> Option<i128> {
        self.nearest(time).map(|anchor| anchor.unix_at(time))
    }

    /// `CLOCK_BOOTTIME` at a time of the recording, by the anchor that is nearer to it.
    pub fn boottime_at(&self, time: Nanos) -> Option<Nanos> {
        self.nearest(time)?.boottime_at(time)
    }

    /// When the machine was booted, in nanoseconds since 1970 in UTC, by the first anchor that tells time since then.
    pub fn booted(&self) -> Option<u64> {
        let mut anchors = [self.start, self.end].into_iter().flatten();
        anchors.find_map(|anchor| anchor.realtime.checked_sub(anchor.boottime?.0))
    }

    /// By how many nanoseconds the time of day was set forward while it was recorded, give or take what the anchors are off by.
    /// Time that the machine was suspended is not among them where the anchors tell of it by time since boot.
    pub fn set_forward(&self) -> i64 {
        let (Some(start), Some(end)) = (self.start, self.end) else { return 0 };
        let went_on = i128::from(end.realtime) - start.unix_at(end.monotonic);
        let slept = start.boottime_at(end.monotonic).zip(end.boottime);
        let slept = slept.map_or(0, |(expected, boottime)| boottime.0.wrapping_sub(expected.0));
        let set = went_on - i128::from(slept.cast_signed());
        set.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn nearest(&self, time: Nanos) -> Option<ClockAnchor> {
        let (start, end) = (self.start.or(self.end)?, self.end.or(self.start)?);
        let is_late = time.0.abs_diff(end.monotonic.0) < time.0.abs_diff(start.monotonic.0);
        Some(if is_late { end } else { start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: ClockAnchor =
        ClockAnchor { monotonic: Nanos(1_000), realtime: 500_000, boottime: Some(Nanos(4_000)) };

    fn anchor(monotonic: u64, realtime: u64, boottime: u64) -> ClockAnchor {
        ClockAnchor { monotonic: Nanos(monotonic), realtime, boottime: Some(Nanos(boottime)) }
    }

    #[test]
    fn times_are_told_by_the_nearer_anchor() {
        // 50 more than the recording's clock, somewhere between: suspended for 7, and set forward by the rest.
        let clocks = Clocks { start: Some(START), end: Some(anchor(2_000, 501_050, 5_007)) };
        assert_eq!(clocks.unix_at(Nanos(900)), Some(499_900));
        assert_eq!(clocks.unix_at(Nanos(1_500)), Some(500_500));
        assert_eq!(clocks.unix_at(Nanos(1_501)), Some(500_551));
        assert_eq!(clocks.boottime_at(Nanos(1_100)), Some(Nanos(4_100)));
        assert_eq!(clocks.boottime_at(Nanos(2_100)), Some(Nanos(5_107)));
        assert_eq!(clocks.set_forward(), 43);
        assert_eq!(clocks.booted(), Some(496_000));
    }

    #[test]
    fn a_time_that_went_on_while_the_machine_slept_was_not_set() {
        let slept = anchor(2_000, 501_007, 5_007);
        assert_eq!(Clocks { start: Some(START), end: Some(slept) }.set_forward(), 0);
        let unknown = ClockAnchor { boottime: None, ..slept };
        assert_eq!(Clocks { start: Some(START), end: Some(unknown) }.set_forward(), 7);
    }

    #[test]
    fn one_anchor_is_as_good_where_nothing_was_set() {
        let clocks = Clocks { start: None, end: Some(START) };
        assert_eq!(clocks.unix_at(Nanos(10)), Some(499_010));
        assert_eq!(clocks.set_forward(), 0);
        assert_eq!(
            Clocks { start: Some(ClockAnchor { realtime: 500, ..START }), end: None }.unix_at(Nanos(10)),
            Some(-490)
        );
        assert_eq!(Clocks::default().unix_at(Nanos(10)), None);
        let unknown = ClockAnchor { boottime: None, ..START };
        assert_eq!(unknown.boottime_at(Nanos(10)), None);
    }

    #[test]
    fn a_time_that_was_set_back_is_negative() {
        let clocks = Clocks { start: Some(START), end: Some(anchor(2_000, 500_000, 5_000)) };
        assert_eq!(clocks.set_forward(), -1_000);
    }
}
