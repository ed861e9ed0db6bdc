//! Threads that have an event more than once: inherited from the thread that made them, which may have had more than one, and
//! their own, as it can't be known whether they inherited one. Of what all of them tell, one is taken.
//!
//! They have different numbers in general, and about the same time. On recent kernels (6.18) all of a thread's events of what the
//! kernel counts itself (`___perf_sw_event` in `kernel/events/core.c`) tell with the number and time of the first of them.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// Threads that are remembered, at most.
const MOST_THREADS: usize = 1 << 16;

/// Events of a thread tell in turn. If so much was told since the one that is taken told something, that has ended: the
/// thread's number was used again. A thread has fewer events: one, and one more for each look at its process.
const IN_A_ROW: u8 = 64;

/// An event of a CPU, by the number in its records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) id: u64,
    pub(super) tid: u32,
    pub(super) time: u64,
    /// Position of its kind.
    pub(super) kind: usize,
    /// Whether its thread may have inherited another one.
    pub(super) may_be_second: bool,
}

/// Which event of a CPU is taken, by thread and kind.
#[derive(Debug, Default)]
pub(super) struct Taken {
    events: FxHashMap<(u32, usize), Event>,
}

#[derive(Debug)]
struct Event {
    id: u64,
    /// Of what was told last.
    time: u64,
    may_be_second: bool,
    /// How often others have told something since.
    passed_over: u8,
}

impl Taken {
    /// Whether a record tells what another one of the same thread tells as well.
    pub(super) fn is_told_twice(&mut self, told: Told) -> bool {
        let Told { id, tid, time, kind, may_be_second } = told;
        if self.events.len() >= MOST_THREADS {
            self.events.clear();
        }
        let new = Event { id, time, may_be_second, passed_over: 0 };
        let taken = match self.events.entry((tid, kind)) {
            Entry::Occupied(taken) => taken.into_mut(),
            Entry::Vacant(none) => {
                none.insert(new);
                return false;
            }
        };
        if taken.id == id {
            taken.passed_over = 0;
            return std::mem::replace(&mut taken.time, time) == time;
        }
        let is_second = (may_be_second || taken.may_be_second) && taken.passed_over < IN_A_ROW;
        if is_second {
            taken.passed_over += 1;
        } else {
            *taken = new;
        }
        is_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INHERITED: Told = Told { id: 1, tid: 7, time: 0, kind: 0, may_be_second: false };
    const OWN: Told = Told { id: 2, may_be_second: true, ..INHERITED };

    fn taken(told: &[Told]) -> Vec<u64> {
        let mut taken = Taken::default();
        let told = told.iter().zip(1..).map(|(told, time)| Told { time, ..*told });
        told.filter(|told| !taken.is_told_twice(*told)).map(|told| told.id).collect()
    }

    #[test]
    fn events_that_tell_with_one_number_tell_at_one_time() {
        let mut taken = Taken::default();
        let told = [1, 1, 1, 2, 2, 3].map(|time| taken.is_told_twice(Told { time, ..OWN }));
        assert_eq!(told, [false, true, true, false, true, false]);
    }

    #[test]
    fn of_two_events_of_a_thread_one_is_taken() {
        assert_eq!(taken(&[INHERITED, OWN, INHERITED, OWN, OWN, INHERITED]), [1, 1, 1]);
        assert_eq!(taken(&[OWN, INHERITED, OWN, INHERITED]), [2, 2]);
        let elsewhere = [Told { tid: 8, ..OWN }, Told { kind: 1, ..OWN }];
        assert_eq!(taken(&[INHERITED, elsewhere[0], elsewhere[1]]), [1, 2, 2]);
    }

    #[test]
    fn a_thread_whose_number_is_used_again_has_other_events() {
        let other = Told { id: 3, ..INHERITED };
        assert_eq!(taken(&[INHERITED, other, other]), [1, 3, 3], "none of them can be a second one");
        let later = [OWN; IN_A_ROW as usize + 2];
        assert_eq!(taken(&[&[INHERITED], &later[..]].concat()), [1, 2, 2]);
    }
}
