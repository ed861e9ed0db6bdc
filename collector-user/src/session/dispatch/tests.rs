//! What closures are told, and at what cost.

use std::collections::BTreeSet;

use bytemuck::Zeroable as _;
use collector_common::event::{Event, EventId};
use collector_common::record::ClockAnchor;
use collector_common::sharing::Writable;
use collector_common::wire::SampleHeader;

use super::*;
use crate::event_clock::{ClockReading, EventClock, EventTimes};

const READ: ClockReading = ClockReading {
    anchor: ClockAnchor { monotonic: Nanos(1_000), realtime: 700_000, boottime: Some(Nanos(30_000)) },
    off_by: Nanos(0),
};

/// A session with one event, whose closures are told times in a clock, and the last of those.
fn told_in(clock: EventClock) -> (Dispatch, Recorder, Writable<u64>) {
    let last = Writable::new(0);
    let seen = last.clone();
    let mut event = Event::new(EventId(1), "own:told");
    event.add_closure(move |data| {
        let time = data.context().map_or(0, |context| context.time.0);
        Ok(seen.write(|last| *last = time)?)
    });
    let mut times = EventTimes::in_clock(clock);
    times.take(READ);
    let mut recorder = Recorder::new();
    recorder.set_event_times(times);
    let kept = Kept { bytes: 0, passed_over: &BTreeSet::new() };
    let dispatch = Dispatch::new(None, &Settings::default(), vec![Hook::own(event)], kept, &mut recorder);
    (dispatch, recorder, last)
}

#[test]
fn an_event_is_told_in_the_chosen_clock_and_allocates_nothing() {
    for (clock, expected) in
        [(EventClock::Monotonic, 1_200), (EventClock::Realtime, 700_200), (EventClock::Boottime, 30_200)]
    {
        let (mut dispatch, mut recorder, last) = told_in(clock);
        let mut take = |time| {
            let header = SampleHeader { time, pid: 7, tid: 7, ..SampleHeader::zeroed() };
            assert!(dispatch.take(&mut recorder, &SourceRecord::bare(EventIndex::of_hook(0), &header)));
        };
        // Whatever is made once is made by the first.
        take(1_100);
        let used = allocation_counter::measure(|| (1_101..=1_200).for_each(&mut take));
        assert_eq!(used.count_total, 0, "{clock}");
        assert_eq!(last.read(|last| *last).unwrap(), expected, "{clock}");
        assert_eq!(recorder.ledger().delivered(), 101);
    }
}
