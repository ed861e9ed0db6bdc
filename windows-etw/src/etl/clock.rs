//! From ticks of a trace's clock to time. In: what the file's header says of its clock. Out: nanoseconds.

use collector_common::event::FileTime;

/// What a tick is (`ReservedFlags` of `TRACE_LOGFILE_HEADER`; `ClientContext` of the session).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// 1: `QueryPerformanceCounter`.
    PerformanceCounter,
    /// 2: the system's time, 100 ns a tick since 1601.
    SystemTime,
    /// 3: the CPU's own counter of cycles. How long one is, is the nominal speed in MHz.
    CpuCycles,
}

/// A trace's clock, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// What a tick is.
    pub kind: ClockKind,
    /// Ticks in a second; not 0.
    pub frequency: u64,
    /// Ticks when the trace began: those of the file's first record.
    pub start_ticks: i64,
    /// When that was.
    pub start: FileTime,
}

impl Clock {
    /// Nanoseconds since the trace began; negative before that. What is out of range is the nearest that is in it.
    pub fn nanos(&self, ticks: i64) -> i64 {
        let since = i128::from(ticks) - i128::from(self.start_ticks);
        let nanos = since * 1_000_000_000 / i128::from(self.frequency.max(1));
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub fn unix_nanos(&self, ticks: i64) -> i128 {
        self.start.unix_nanos() + i128::from(self.nanos(ticks))
    }
}
