//! The clock of a recording: `CLOCK_MONOTONIC`, which the sideband, `bpf_ktime_get_ns` and this share.

use collector_common::ids::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Now.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Nanoseconds since 1970 in UTC at `time`.
pub fn unix_at(time: Nanos) -> u64 {
    unix_now().saturating_sub(now().0.saturating_sub(time.0))
}

/// Nanoseconds since 1970 in UTC.
pub fn unix_now() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
