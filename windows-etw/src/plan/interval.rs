//! How often CPUs are sampled.

use std::fmt;

/// Time between two CPU samples, in units of 100 ns (`TRACE_PROFILE_INTERVAL.Interval`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInterval(u32);

impl SampleInterval {
    /// What the timer of PCs allows at least: 8,190 samples a second.
    pub const SHORTEST: Self = Self(1_221);
    /// What Windows takes at most: one sample a second.
    pub const LONGEST: Self = Self(10_000_000);
    /// Samples a second that [`Self::SHORTEST`] is for.
    pub const MOST_HZ: u32 = Self::PER_SECOND / Self::SHORTEST.0;
    const PER_SECOND: u32 = 10_000_000;

    /// The interval for so many samples a second, rounded to 100 ns and kept between [`Self::SHORTEST`] and [`Self::LONGEST`].
    pub fn of_frequency(hz: u32) -> Self {
        let hz = hz.max(1);
        let units = (Self::PER_SECOND + hz / 2) / hz;
        Self(units.clamp(Self::SHORTEST.0, Self::LONGEST.0))
    }

    /// The interval that Windows tells, in units of 100 ns.
    pub fn told(units: u32) -> Self {
        Self(units.max(1))
    }

    /// In units of 100 ns.
    pub const fn units(self) -> u32 {
        self.0
    }

    /// In nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0 as u64 * 100
    }
}

impl fmt::Display for SampleInterval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} x 100 ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_rounded_and_bounded() {
        let units = |hz| SampleInterval::of_frequency(hz).units();
        assert_eq!([units(1000), units(997), units(99)], [10_000, 10_030, 101_010]);
        assert_eq!(SampleInterval::MOST_HZ, 8_190);
        assert_eq!([units(0), units(1)], [10_000_000, 10_000_000]);
        assert_eq!([units(20_000), units(u32::MAX)], [1_221, 1_221]);
        assert_eq!(SampleInterval::of_frequency(1000).nanos(), 1_000_000);
    }
}
