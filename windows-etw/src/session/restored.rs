//! What a process that is killed leaves of how often CPUs are sampled, which is the machine's, not a session's: it is written down when it is changed,
//! beyond the end of the process and not that of Windows, and undone by the next one that records.
//!
//! A mutex says whose process goes on, as that of a session's name does. Another one is held by who reads or changes what is set and what is written
//! down of it, so that of two recordings that start at once none undoes what the other has just set.

use std::fmt;
use std::time::Duration;

use crate::plan::{IntervalChange, SampleInterval};

use super::error::Win32Error;
use super::sys::{self, Held, Mutex};

/// The mutex of who reads and changes it.
const LOCK: &str = "Global\\collector-etw-intervals";
/// It is held for some calls. A handler of a console that is closed has 5 s.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often CPUs are sampled is as it was before a recording that was killed, or was not let set it back.
///
/// Shown as a line for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What was left.
    pub from: SampleInterval,
    /// What it is again.
    pub to: SampleInterval,
}

impl fmt::Display for Restored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            out,
            "an earlier recording that was killed, or could not set it back, had left CPUs of the whole machine to be sampled every {from}; that is {to} again, as before it"
        )
    }
}

/// That this process has changed it, as long as it goes on.
#[derive(Debug)]
pub(super) struct Changed {
    name: String,
    /// Whether what is written down stays.
    is_left: bool,
    _mutex: Mutex,
}

impl Changed {
    /// None where it can't be written down: it is changed all the same, and remains so if the process is killed.
    pub(super) fn new() -> Option<Self> {
        let name = std::process::id().to_string();
        let mutex = sys::create_mutex(&mutex_name(&name)).ok().flatten()?;
        Some(Self { name, is_left: false, _mutex: mutex })
    }

    /// Writes down what there is to undo.
    pub(super) fn keep(&self, change: IntervalChange) {
        // What fails is as if it was not written down.
        let _: Result<(), Win32Error> = sys::keep(&self.name, &change.to_bytes());
    }

    /// Could not be undone: it is as if the process was killed, and the next start tries again, be it here.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // What remains is of a process that is over, and found by the next one to be undone or overtaken.
        let _: Result<(), Win32Error> = sys::forget(&self.name);
    }
}

/// To be held from when it is read what is set, or written down, until both are as they are to be. None where Windows does not give it in time.
pub(super) fn lock() -> Option<Held> {
    sys::hold(LOCK, PATIENCE).ok()
}

/// Sets again what was set before processes that were killed, unless somebody has set something else since.
pub(super) fn restore() -> Option<Restored> {
    // Without it this might undo what another one is about to set; the next start tries again.
    let _lock = lock()?;
    let (mut left, living) = changes(&sys::kept().ok()?);
    if left.is_empty() {
        return None;
    }
    sys::turn_on_profile_privilege().ok()?;
    let now = sys::interval().ok()?;
    let all: Vec<String> = left.iter().map(|(name, _)| name.clone()).collect();
    let units = IntervalChange::undone(now, &mut left, &living);
    if let Some(units) = units {
        sys::set_interval(units).ok()?;
    }
    // What a living one sets again may be what one of these had set.
    let is_over = |name: &&String| living.is_empty() || !left.iter().any(|(left, _)| left == *name);
    for name in all.iter().filter(is_over) {
        let _: Result<(), Win32Error> = sys::forget(name);
    }
    units.map(|units| Restored { from: SampleInterval::told(now), to: SampleInterval::told(units) })
}

/// The changes of processes that were killed, by name, and those of others that go on.
fn changes(kept: &[(String, Vec<u8>)]) -> (Vec<(String, IntervalChange)>, Vec<IntervalChange>) {
    let (mut left, mut living) = (Vec::new(), Vec::new());
    for (name, bytes) in kept {
        let Some(change) = IntervalChange::from_bytes(bytes) else { continue };
        match sys::create_mutex(&mutex_name(name)) {
            Ok(Some(_free)) => left.push((name.clone(), change)),
            _ => living.push(change),
        }
    }
    (left, living)
}

fn mutex_name(name: &str) -> String {
    format!("Global\\collector-etw-interval-{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_told_from_what_is_of_a_process_that_goes_on() {
        let change = |before| IntervalChange { before, ours: 5000 };
        let kept = |name: &str, before| (name.to_owned(), change(before).to_bytes().to_vec());
        let _living = sys::create_mutex(&mutex_name("restored-test-1")).unwrap().unwrap();
        let all =
            [kept("restored-test-1", 1), kept("restored-test-2", 2), ("restored-test-3".to_owned(), vec![1])];
        let (left, living) = changes(&all);
        assert_eq!((left, living), (vec![("restored-test-2".to_owned(), change(2))], vec![change(1)]));
        let (left, _) = changes(&all);
        assert_eq!(left.len(), 1, "to look at it changes nothing");
    }

    #[test]
    fn a_change_is_kept_until_it_is_undone() {
        let _turn = crate::session::console::turn();
        let own = std::process::id().to_string();
        let kept = || sys::kept().unwrap().into_iter().find(|(name, _)| *name == own).map(|(_, bytes)| bytes);
        let changed = Changed::new().unwrap();
        assert!(Changed::new().is_none() && kept().is_none());
        for ours in [5000, 5001] {
            let change = IntervalChange { before: 10_000, ours };
            changed.keep(change);
            assert_eq!(kept(), Some(change.to_bytes().to_vec()));
        }
        drop(changed);
        assert_eq!(kept(), None);
        let change = IntervalChange { before: 10_000, ours: 5000 };
        let changed = Changed::new().unwrap();
        changed.keep(change);
        changed.leave();
        let all = sys::kept().unwrap();
        assert!(changes(&all).0.contains(&(own.clone(), change)), "as of a process that was killed: {all:?}");
        sys::forget(&own).unwrap();
    }

    /// Of two at once the second reads what is there when the first is done, whatever that does.
    #[test]
    fn who_looks_for_what_was_left_waits_for_who_changes_it() {
        let _turn = crate::session::console::turn();
        let held = lock().unwrap();
        let (asks, asked) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            asks.send(()).unwrap();
            lock().map(|_lock| sys::kept().unwrap())
        });
        asked.recv().unwrap();
        let changed = Changed::new().unwrap();
        changed.keep(IntervalChange { before: 10_000, ours: 5000 });
        drop(held);
        let own = std::process::id().to_string();
        assert!(other.join().unwrap().unwrap().iter().any(|(name, _)| *name == own));
    }

    #[test]
    fn people_are_told_what_is_set_again() {
        let [from, to] = [10_030, 10_000].map(SampleInterval::told);
        let told = Restored { from, to }.to_string();
        assert!(
            told.ends_with("sampled every 10030 x 100 ns; that is 10000 x 100 ns again, as before it"),
            "{told}"
        );
    }
}
