//! Journals that were cut, or changed.

use collector_user::journal::{Journal, JournalError};
use collector_user::session::{Recording, Session, SessionError};

use crate::recorded::{NAMES, bytes};

fn replay(bytes: &[u8]) -> Result<Recording, JournalError> {
    let journal = Journal::open(bytes)?;
    let settings = journal.settings();
    Session::replay(journal, settings).map_err(|error| match error {
        SessionError::Journal(error) => error,
        other => panic!("{other}"),
    })
}

/// Where the items begin, behind what a journal begins with.
pub(crate) fn items(bytes: &[u8]) -> Vec<usize> {
    let mut at = 18 + 4 + 2;
    let mut items = Vec::new();
    while at < bytes.len() {
        items.push(at);
        let len: [u8; 4] = bytes[at + 1..][..4].try_into().unwrap();
        at += 5 + u32::from_le_bytes(len) as usize;
    }
    items
}

#[test]
fn a_cut_journal_ends_where_it_was_cut() {
    for name in NAMES {
        let whole = bytes(name);
        let items = items(&whole);
        // Each place costs a replay of all before it. In the beginning of one it is each, elsewhere some, those between items among them.
        let begin = if name == "scheduling" { whole.len().min(700) } else { 0 };
        let each = (0..begin).chain((0..whole.len()).step_by(whole.len() / 15));
        for at in each.chain(items.iter().copied().step_by(items.len() / 15 + 1)) {
            match replay(&whole[..at]).err() {
                Some(JournalError::NoJournal) if at < 24 => {}
                Some(JournalError::Cut { at: place }) if at >= 24 => assert_eq!(place, at as u64, "{name}"),
                other => panic!("{name} up to {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_changed_journal_is_another_recording_or_an_error() {
    for name in NAMES {
        let whole = bytes(name);
        let items = items(&whole);
        for (at, bit) in (0..whole.len()).step_by(whole.len() / 50).zip((0..8).cycle()) {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 1 << bit;
            match replay(&spoilt) {
                Ok(_) => {}
                Err(JournalError::Damaged { at: place, .. }) => {
                    assert!(items.contains(&(place as usize)) || at as u64 <= place, "{name}: {at}, {place}");
                }
                Err(JournalError::Cut { at: place }) => assert_eq!(place, whole.len() as u64, "{name}: {at}"),
                Err(JournalError::NoJournal | JournalError::Version { .. }) => {
                    assert!(at < 24, "{name}: {at}");
                }
                Err(error) => panic!("{name}: {at}: {error}"),
            }
        }
    }
}

#[test]
fn other_versions_and_other_events_are_refused() {
    let whole = bytes("off_cpu");
    let mut other = whole.clone();
    other[18] += 1;
    let error = replay(&other).err().unwrap();
    assert!(error.to_string().starts_with("it is a journal of version 4 with"), "{error}");
    let journal = Journal::open(whole.as_slice()).unwrap();
    let events = Journal::open(bytes("syscalls").as_slice()).unwrap().settings();
    let error = Session::replay(journal, events).err().unwrap();
    assert_eq!(
        error.to_string(),
        "its events are [\"off_cpu\"], and [\"syscalls\"] are to have their records: take `Journal::settings`"
    );
    let mut long = whole;
    long.extend([11, 255, 255, 255, 255]);
    assert!(replay(&long).is_ok(), "nobody reads on behind the end");
}
