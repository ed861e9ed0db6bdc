//! The clock of a recording: `CLOCK_MONOTONIC`, which the sideband, `bpf_ktime_get_ns` and this share; and what others show then.

use collector_common::ids::Nanos;
use collector_common::record::ClockAnchor;
use rustix::time::{ClockId, clock_gettime};

use crate::event_clock::ClockReading;

/// Now.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// What the other clocks show now. Of five tries it is the one that took the least time: it may be off by half of that.
pub fn anchor() -> ClockAnchor {
    reading().anchor
}

/// [`anchor`], with how far it may be off.
pub(crate) fn reading() -> ClockReading {
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
        ClockReading { anchor, off_by: Nanos((after.0 - before.0).div_ceil(2)) }
    };
    (1..TRIES).map(read).fold(read(0), |best, other| if other.off_by < best.off_by { other } else { best })
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

    #[test]
    fn a_reading_is_off_by_no_more_than_it_says() {
        let before = now();
        let ClockReading { anchor, off_by } = reading();
        let after = now();
        let [since_boot, of_day] = [ClockId::Boottime, ClockId::Realtime].map(|clock| {
            let [earlier, shown, later] = [now(), read(clock), now()];
            (earlier, shown, later)
        });
        assert!(before <= anchor.monotonic && anchor.monotonic <= after);
        // What the clocks show later is between what the anchor tells of before and after it, but for what that is off by.
        let is_between = |told: &dyn Fn(Nanos) -> u64, (earlier, shown, later): (Nanos, Nanos, Nanos)| {
            told(earlier) <= shown.0 + off_by.0 + 1 && shown.0 <= told(later) + off_by.0 + 1
        };
        assert!(is_between(&|time| anchor.boottime_at(time).unwrap().0, since_boot), "{anchor:?}");
        assert!(is_between(&|time| anchor.unix_at(time) as u64, of_day), "{anchor:?}");
    }
}
