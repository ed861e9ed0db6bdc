//! The clock of a recording: `CLOCK_MONOTONIC`, which the sideband, `bpf_ktime_get_ns` and this share; and what others show then.

use collector_common::ids::Nanos;
use collector_common::record::ClockAnchor;
use rustix::time::{ClockId, clock_gettime};

/// Now.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// What the other clocks show now. Of some tries it is the one that took the least time, which is how far it may be off.
pub fn anchor() -> ClockAnchor {
    const TRIES: u32 = 5;
    let read = |_| {
        let before = now();
        let (realtime, boottime) = (read(ClockId::Realtime), read(ClockId::Boottime));
        let after = now();
        let anchor = ClockAnchor {
            monotonic: Nanos(before.0.midpoint(after.0)),
            realtime: realtime.0,
            boottime: Some(boottime),
        };
        (after.0 - before.0, anchor)
    };
    let (_, anchor) =
        (1..TRIES).map(read).fold(read(0), |best, other| if other.0 < best.0 { other } else { best });
    anchor
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn an_anchor_tells_the_time_of_day_and_since_boot() {
        let of_day = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
        // Hundredths of a second of `CLOCK_BOOTTIME`, rounded down (`fs/proc/uptime.c`).
        let up = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            let word = text.split(' ').next().unwrap().replace('.', "");
            word.parse::<u64>().unwrap() * 10_000_000
        };
        let (day_before, up_before) = (of_day(), up());
        let anchor = anchor();
        let (day_after, up_after) = (of_day(), up() + 10_000_000);
        assert!((day_before..=day_after).contains(&anchor.realtime), "{anchor:?}");
        let since_boot = anchor.boottime.unwrap().0;
        assert!((up_before..=up_after).contains(&since_boot), "{anchor:?} {up_before} {up_after}");
        let later = now();
        assert!(anchor.unix_at(later) >= anchor.realtime.into(), "{anchor:?} {later:?}");
    }
}
