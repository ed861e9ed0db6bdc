//! The clock that closures are told times in. In: what the clocks showed, read in each round of a session, or told by a recording.
//! Out: times of the recording's own clock in the one that was chosen.
//!
//! ```text
//! readings     r──r──r──r     r──r──r──r──r     of the time of day, on the recording's clock
//! stretches   └─── + a ───┴────── + b ───────►
//!                         ^ the time was set, or the machine slept, somewhere between two readings: each is believed up to half way
//! ```
//!
//! Within a stretch the kernel keeps the clocks' difference (see [`collector_common::record::ClockAnchor`]), so that one number is added to
//! all times, and their order is kept.

use std::collections::VecDeque;
use std::fmt;

use collector_common::ids::Nanos;
use collector_common::record::ClockAnchor;

/// Stretches that are remembered: what is older than the oldest is told by that one.
const MOST_STRETCHES: usize = 64;

/// Nanoseconds by which two differences of clocks may differ as each reading is a whole number of them.
const ROUNDED: u64 = 2;

/// The clock that closures are told times in: [`Context::time`](collector_common::event::Context::time). The recording keeps
/// `CLOCK_MONOTONIC`, whichever it is, and so do samples that hooks see.
///
/// The first that a session reads of the other clocks is taken for all times until somebody sets the time of day or the machine sleeps.
/// It is the best of five tries, and is off by half of what that one took, mostly below 0.1 µs. In each round, which come every
/// 100 ms at least, the clocks are read again. Where they differ by more than the two readings may be off, the new one is taken for what
/// happened nearer to it: what happened in the half of a round around that may be told by the other side's, and times that are told
/// jump, as the clock did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventClock {
    /// `CLOCK_MONOTONIC`, which never jumps and stands while the machine sleeps. Of a recording that is replayed: its own clock, which is
    /// another one where `perf record` was told so with `-k`, or not told `-k mono`.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`: nanoseconds since 1970 in UTC, 0 for what was before.
    Realtime,
    /// `CLOCK_BOOTTIME`: as the first, with the time that the machine slept.
    Boottime,
}

impl fmt::Display for EventClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
        })
    }
}

/// What the clocks showed, as far as that can be read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    pub(crate) anchor: ClockAnchor,
    /// By how much the anchor may be off.
    pub(crate) off_by: Nanos,
}

impl ClockReading {
    /// Whether the clocks may differ as they did at another reading.
    fn agrees_with(&self, other: &Self) -> bool {
        let allowed = self.off_by.0.saturating_add(other.off_by.0).saturating_add(ROUNDED);
        let [own, others] = [self, other].map(|reading| reading.anchor);
        let of_day = own.unix_at(Nanos(0)).abs_diff(others.unix_at(Nanos(0)));
        let since_boot = own.boottime_at(Nanos(0)).zip(others.boottime_at(Nanos(0)));
        let since_boot = since_boot.map(|(own, others)| own.0.wrapping_sub(others.0).cast_signed());
        of_day <= allowed.into() && since_boot.is_none_or(|difference| difference.unsigned_abs() <= allowed)
    }
}

/// A time in which the clocks kept their difference.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// From behind this on it is believed.
    since: Nanos,
    first: ClockReading,
    /// When the last reading was that agrees with the first.
    last: Nanos,
}

/// Tells times in the chosen clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventTimes {
    clock: EventClock,
    /// In their order.
    stretches: VecDeque<Stretch>,
}

impl EventTimes {
    /// Nothing is known of other clocks yet.
    pub(crate) fn in_clock(clock: EventClock) -> Self {
        Self { clock, stretches: VecDeque::new() }
    }

    /// The clock.
    pub(crate) fn clock(&self) -> EventClock {
        self.clock
    }

    /// Takes in what the clocks showed, which is later than what they showed before.
    pub(crate) fn take(&mut self, reading: ClockReading) {
        let at = reading.anchor.monotonic;
        let since = match self.stretches.back_mut() {
            Some(stretch) if stretch.first.agrees_with(&reading) => {
                stretch.last = at;
                return;
            }
            Some(stretch) => Nanos(stretch.last.0.midpoint(at.0)),
            None => Nanos(0),
        };
        if self.stretches.len() == MOST_STRETCHES {
            self.stretches.pop_front();
        }
        self.stretches.push_back(Stretch { since, first: reading, last: at });
    }

    /// Whether times can be told.
    pub(crate) fn are_known(&self) -> bool {
        match self.clock {
            EventClock::Monotonic => true,
            EventClock::Realtime => !self.stretches.is_empty(),
            EventClock::Boottime => {
                self.stretches.front().is_some_and(|stretch| stretch.first.anchor.boottime.is_some())
            }
        }
    }

    /// A time of the recording's clock in the chosen one.
    pub(crate) fn tell(&self, time: Nanos) -> Nanos {
        let told = match self.clock {
            EventClock::Monotonic => None,
            EventClock::Realtime => self.anchor_of(time).map(|anchor| {
                let unix = anchor.unix_at(time).clamp(0, u64::MAX.into());
                Nanos(unix as u64)
            }),
            EventClock::Boottime => self.anchor_of(time).and_then(|anchor| anchor.boottime_at(time)),
        };
        told.unwrap_or(time)
    }

    /// What tells of a time: mostly the last, as closures hear of what just happened.
    fn anchor_of(&self, time: Nanos) -> Option<&ClockAnchor> {
        let is_of_it = |stretch: &&Stretch| stretch.since < time;
        let stretch = self.stretches.iter().rev().find(is_of_it).or_else(|| self.stretches.front());
        stretch.map(|stretch| &stretch.first.anchor)
    }
}

#[cfg(test)]
mod tests {
    use collector_common::record::Clocks;

    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    /// A reading that is off by at most 10 ns.
    fn reading(monotonic: u64, realtime: u64, boottime: u64) -> ClockReading {
        let boottime = Some(Nanos(boottime));
        let anchor = ClockAnchor { monotonic: Nanos(monotonic), realtime, boottime };
        ClockReading { anchor, off_by: Nanos(10) }
    }

    fn times(clock: EventClock, readings: &[ClockReading]) -> EventTimes {
        let mut times = EventTimes::in_clock(clock);
        for reading in readings {
            times.take(*reading);
        }
        times
    }

    /// What is told of these times of the recording's clock.
    fn told<const N: usize>(clock: EventClock, readings: &[ClockReading], at: [u64; N]) -> [u64; N] {
        let times = times(clock, readings);
        at.map(|at| times.tell(Nanos(at)).0)
    }

    #[test]
    fn a_difference_is_added() {
        let read = [reading(1_000, 50_000, 3_000)];
        assert_eq!(told(EventClock::Monotonic, &read, [0, 900, 1_500]), [0, 900, 1_500]);
        assert_eq!(told(EventClock::Realtime, &read, [0, 900, 1_500]), [49_000, 49_900, 50_500]);
        assert_eq!(told(EventClock::Boottime, &read, [0, 900, 1_500]), [2_000, 2_900, 3_500]);
    }

    #[test]
    fn readings_that_are_off_do_not_change_the_order_of_events() {
        // Each is off by 9 ns in the other direction than the one before.
        let read: Vec<_> =
            (0..100).map(|at| reading(at * 1_000, 50_000 + at * 1_000 + 18 * (at % 2), at * 1_000)).collect();
        let times = times(EventClock::Realtime, &read);
        for at in 1..100_000 {
            assert_eq!(times.tell(Nanos(at)), Nanos(50_000 + at));
        }
        assert_eq!(times.stretches.len(), 1);
    }

    #[test]
    fn a_time_of_day_that_was_set_holds_from_half_way_to_where_it_was_seen() {
        let read = [
            reading(1_000, HOUR + 1_000, 1_000),
            reading(2_000, HOUR + 2_000, 2_000),
            // Set forward by an hour, and back by two.
            reading(3_000, 2 * HOUR + 3_000, 3_000),
            reading(4_000, 2 * HOUR + 4_000, 4_000),
            reading(5_000, 5_000, 5_000),
        ];
        let at = [500, 2_500, 2_501, 3_500, 4_500, 4_501, 9_000];
        let of_day =
            [HOUR + 500, HOUR + 2_500, 2 * HOUR + 2_501, 2 * HOUR + 3_500, 2 * HOUR + 4_500, 4_501, 9_000];
        assert_eq!(told(EventClock::Realtime, &read, at), of_day);
        assert_eq!(told(EventClock::Boottime, &read, at), at);
    }

    #[test]
    fn sleep_is_told_by_both_other_clocks() {
        // The recording's clock stands while the machine sleeps for an hour.
        let read = [reading(1_000, 60_000, 1_000), reading(2_000, HOUR + 61_000, HOUR + 2_000)];
        assert_eq!(told(EventClock::Realtime, &read, [1_400, 1_600]), [60_400, HOUR + 60_600]);
        assert_eq!(told(EventClock::Boottime, &read, [1_400, 1_600]), [1_400, HOUR + 1_600]);
    }

    #[test]
    fn two_readings_tell_what_anchors_of_a_recording_do() {
        let [start, end] = [reading(1_000, 500_000, 4_000), reading(2_001, 501_050, 5_007)];
        let clocks = Clocks { start: Some(start.anchor), end: Some(end.anchor) };
        let [of_day, since_boot] =
            [EventClock::Realtime, EventClock::Boottime].map(|clock| times(clock, &[start, end]));
        for at in (0..3_000).map(Nanos) {
            assert_eq!(i128::from(of_day.tell(at).0), clocks.unix_at(at).unwrap(), "{at:?}");
            assert_eq!(Some(since_boot.tell(at)), clocks.boottime_at(at), "{at:?}");
        }
    }

    #[test]
    fn what_is_before_1970_or_beyond_all_time_is_as_near_as_can_be() {
        assert_eq!(told(EventClock::Realtime, &[reading(1_000, 100, 0)], [800, 900, 950]), [0, 0, 50]);
        let late = [reading(0, u64::MAX - 10, 0)];
        assert_eq!(told(EventClock::Realtime, &late, [10, 20]), [u64::MAX; 2]);
    }

    #[test]
    fn a_clock_that_is_set_all_the_time_costs_no_memory() {
        let mut times = EventTimes::in_clock(EventClock::Realtime);
        for number in 0..10_000 {
            times.take(reading(number * 1_000, number * HOUR, 0));
        }
        assert_eq!(times.stretches.len(), MOST_STRETCHES);
        assert_eq!(times.tell(Nanos(9_999_400)), Nanos(9_999 * HOUR + 400));
        // The oldest that is known tells of all before.
        let oldest = 10_000 - MOST_STRETCHES as u64;
        assert_eq!(times.tell(Nanos(0)), Nanos(oldest * HOUR - oldest * 1_000));
    }

    #[test]
    fn a_clock_is_known_from_what_tells_of_it() {
        let without_boottime = ClockAnchor { boottime: None, ..reading(1_000, 50_000, 0).anchor };
        let without_boottime = ClockReading { anchor: without_boottime, off_by: Nanos(0) };
        let known = |clock, readings: &[ClockReading]| times(clock, readings).are_known();
        for (clock, expected) in [
            (EventClock::Monotonic, [true, true, true]),
            (EventClock::Realtime, [false, true, true]),
            (EventClock::Boottime, [false, false, true]),
        ] {
            let whole = reading(1_000, 50_000, 3_000);
            assert_eq!(
                [known(clock, &[]), known(clock, &[without_boottime]), known(clock, &[whole])],
                expected
            );
        }
    }
}
