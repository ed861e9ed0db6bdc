//! The clock that closures of a journal are told times in. What the clocks showed is put into a kept journal, which is of before journals
//! told it.

use collector_common::sharing::Writable;
use collector_user::journal::{Journal, JournalError};
use collector_user::session::{EventClock, Session, SessionError};

use crate::damaged::items;
use crate::recorded::bytes;

/// `CLOCKS` of the form.
const ITEM: u8 = 12;

const HOUR: u64 = 3_600_000_000_000;

/// Times that closures of its tracepoint are told.
fn told(journal: &[u8], event_clock: EventClock) -> Result<Vec<u64>, SessionError> {
    let journal = Journal::open(journal)?;
    let mut settings = journal.settings();
    settings.event_clock = event_clock;
    let times = Writable::new(Vec::new());
    let seen = times.clone();
    settings.events[0].event.add_closure(move |data| {
        let time = data.context().unwrap().time.0;
        Ok(seen.write(|seen| seen.push(time))?)
    });
    Session::replay(journal, settings)?;
    Ok(times.into_inner().unwrap())
}

/// What the clocks showed when the recording's own showed the first of these: the time of day and since boot, off by nothing.
fn shown([monotonic, realtime, boottime]: [u64; 3]) -> Vec<u8> {
    let numbers = [monotonic, realtime].map(u64::to_le_bytes).concat();
    let contents = [&numbers[..], &[1], &boottime.to_le_bytes(), &0_u64.to_le_bytes()].concat();
    let len = u32::try_from(contents.len()).unwrap();
    [&[ITEM][..], &len.to_le_bytes(), &contents].concat()
}

/// A journal with this behind its beginning.
fn with(journal: &[u8], readings: &[[u64; 3]]) -> Vec<u8> {
    let second = items(journal)[1];
    let readings = readings.iter().copied().flat_map(shown).collect::<Vec<u8>>();
    [&journal[..second], &readings, &journal[second..]].concat()
}

#[test]
fn closures_of_a_journal_are_told_times_by_what_it_tells_of_clocks() {
    let kept = bytes("tracepoint");
    let own = told(&kept, EventClock::Monotonic).unwrap();
    // A shell and three programs are executed, one after the other.
    let [first, second, third, last] = own[..] else { panic!("{own:?}") };
    assert!(first < second && second < third && third < last);
    // Between the second and the third, somebody set the time of day back by an hour, and the machine slept for two.
    let readings = [[second, 9 * HOUR, HOUR], [third, 10 * HOUR, 3 * HOUR]];
    let journal = with(&kept, &readings);
    assert_eq!(told(&journal, EventClock::Monotonic).unwrap(), own);
    let by =
        |[before, after]: [u64; 2]| vec![before - (second - first), before, after, after + (last - third)];
    assert_eq!(told(&journal, EventClock::Realtime).unwrap(), by([9 * HOUR, 10 * HOUR]));
    assert_eq!(told(&journal, EventClock::Boottime).unwrap(), by([HOUR, 3 * HOUR]));
}

#[test]
fn a_journal_that_does_not_tell_of_clocks_is_refused_where_it_would_have_to() {
    let kept = bytes("tracepoint");
    for clock in [EventClock::Realtime, EventClock::Boottime] {
        let error = told(&kept, clock).unwrap_err();
        let is_it = matches!(&error, SessionError::Journal(JournalError::NoClock { clock: named }) if *named == clock);
        assert!(is_it, "{error}");
        let message = error.to_string();
        assert!(message.contains(&format!("can't be told times in {clock}: ")), "{message}");
        assert!(message.contains("record it anew"), "{message}");
    }
}

#[test]
fn a_damaged_reading_of_clocks_is_named() {
    let kept = bytes("tracepoint");
    let mut journal = with(&kept, &[[1, 2, 3]]);
    // Whether the time since boot is known is neither 0 nor 1.
    let at = items(&journal)[1];
    journal[at + 5 + 16] = 2;
    match told(&journal, EventClock::Realtime) {
        Err(SessionError::Journal(JournalError::Damaged { at: place, what })) => {
            assert_eq!((place, what), (at as u64, "reading of clocks"));
        }
        other => panic!("{other:?}"),
    }
}
