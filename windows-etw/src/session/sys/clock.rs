//! The performance counter, whose ticks raw records have.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GetSystemTimePreciseAsFileTime;

/// What a tick is, and which one was when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Ticks a second; never 0.
    pub frequency: i64,
    /// A tick.
    pub ticks: i64,
    /// What time it was then: units of 100 ns since 1601-01-01 UTC.
    pub file_time: u64,
}

impl Clock {
    /// As it is now.
    pub fn now() -> Self {
        let (mut frequency, mut ticks, mut time) = (0, 0, FILETIME::default());
        // SAFETY: each writes to the variable behind the pointer, which outlives the call.
        unsafe {
            QueryPerformanceFrequency(&raw mut frequency);
            QueryPerformanceCounter(&raw mut ticks);
            GetSystemTimePreciseAsFileTime(&raw mut time);
        }
        let file_time = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Self { frequency: frequency.max(1), ticks, file_time }
    }

    /// Nanoseconds from [`Self::ticks`] to `ticks`; before it they are negative.
    pub fn nanos_since(&self, ticks: i64) -> i64 {
        let nanos = (i128::from(ticks) - i128::from(self.ticks)) * 1_000_000_000 / i128::from(self.frequency);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_nanoseconds_by_the_frequency() {
        let clock = Clock { frequency: 10_000_000, ticks: 1_000, file_time: 0 };
        assert_eq!([clock.nanos_since(1_001), clock.nanos_since(0)], [100, -100_000]);
        assert_eq!(clock.nanos_since(i64::MAX), i64::MAX);
        assert_eq!(Clock { ticks: i64::MAX, ..clock }.nanos_since(i64::MIN), i64::MIN);
    }

    #[test]
    fn it_goes_on_and_is_in_this_century() {
        let (one, other) = (Clock::now(), Clock::now());
        assert!(one.frequency > 1 && other.ticks >= one.ticks && other.file_time >= one.file_time);
        // 2001-01-01 and 2101-01-01.
        assert!((126_227_808_000_000_000..157_784_544_000_000_000).contains(&one.file_time));
    }
}
