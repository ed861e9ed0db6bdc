//! Events that the kernel makes stand still, as they happen too often in a tick of its timer: for how long.

use collector_common::ids::Nanos;
use collector_common::perf::Throttling;
use rustc_hash::FxHashMap;

/// The events of a CPU. Each stands still for itself, and so does each thread's that inherited it.
#[derive(Debug, Default)]
pub(super) struct Throttled {
    /// Since when, by the event's own number.
    since: FxHashMap<u64, Nanos>,
    /// Nanoseconds of all that go on again.
    ended_ns: u64,
}

impl Throttled {
    /// An event stands still from now on.
    pub(super) fn begin(&mut self, throttling: &Throttling) {
        self.since.entry(throttling.stream_id).or_insert(throttling.time);
    }

    /// It goes on.
    pub(super) fn end(&mut self, throttling: &Throttling) {
        if let Some(since) = self.since.remove(&throttling.stream_id) {
            self.ended_ns += throttling.time.0.saturating_sub(since.0);
        }
    }

    /// For how many nanoseconds events stood still, together.
    pub(super) fn until(&self, end: Nanos) -> u64 {
        let still = self.since.values().map(|since| end.0.saturating_sub(since.0));
        self.ended_ns + still.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_stands_still_for_itself() {
        // Two events, and one that a thread has inherited from the second.
        let at = |time, id, stream_id| Throttling { time: Nanos(time), id, stream_id };
        let mut throttled = Throttled::default();
        throttled.begin(&at(10, 1, 1));
        throttled.begin(&at(12, 2, 2));
        throttled.begin(&at(13, 2, 3));
        throttled.end(&at(20, 1, 1));
        throttled.end(&at(22, 2, 2));
        assert_eq!(throttled.until(Nanos(30)), 10 + 10 + 17);
        // Told of as it goes on, but not as it stopped.
        throttled.end(&at(40, 9, 9));
        throttled.end(&at(40, 2, 3));
        assert_eq!(throttled.until(Nanos(50)), 10 + 10 + 27);
    }
}
