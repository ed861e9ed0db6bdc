//! Samples whose user stack was put off: it comes in a record of its own, when the thread is about to go back to user code.
//!
//! ```text
//! sample       thread 7: kernel's addresses, USER_DEFERRED, cookie 5   ┐ held
//! sample       thread 7: kernel's addresses, USER_DEFERRED, cookie 5   ┘
//! ...          (of other threads)
//! CALLCHAIN_DEFERRED  thread 7: cookie 5, the process's addresses      ► both have them
//! ```
//!
//! Source: `PERF_RECORD_CALLCHAIN_DEFERRED` of `include/uapi/linux/perf_event.h`, `perf_unwind_deferred_callback` and
//! `perf_callchain_deferred_output` of `kernel/events/core.c`: one record serves all samples of an entry into the kernel. A
//! thread that is killed there has none. Minimum kernel: 6.19.

use std::collections::{BTreeMap, VecDeque};

use collector_common::ids::{Nanos, Tid};
use collector_common::perf::{OwnedRecord, ParseConfig};
use rustc_hash::FxHashMap;

use super::groups::Counted;

/// The most that is held. A thread may sleep in the kernel for as long as it likes.
const MOST_BYTES: usize = 64 << 20;

/// A sample that is held.
pub(super) struct Held {
    pub(super) record: OwnedRecord,
    pub(super) event: Option<usize>,
    pub(super) config: ParseConfig,
    /// The number that its stack will come under.
    pub(super) cookie: u64,
    pub(super) time: Nanos,
    /// What was read with it.
    pub(super) counted: Counted,
}

impl Held {
    /// With what it takes to find it again.
    fn bytes(&self) -> usize {
        const OTHERS: usize = 128;
        self.record.body.len() + size_of_val(&*self.counted.others) + OTHERS
    }
}

/// The samples that are held.
#[derive(Default)]
pub(super) struct PutOff {
    /// Of each thread in the order that they came in, with their places in it.
    threads: FxHashMap<Tid, VecDeque<(u64, Held)>>,
    /// All of them in that order.
    order: BTreeMap<u64, (Tid, Nanos)>,
    count: u64,
    bytes: usize,
}

impl PutOff {
    /// Holds a sample of a thread. The oldest one is given back where there are too many.
    pub(super) fn hold(&mut self, tid: Tid, sample: Held) -> Option<Held> {
        self.count += 1;
        self.bytes += sample.bytes();
        self.order.insert(self.count, (tid, sample.time));
        self.threads.entry(tid).or_default().push_back((self.count, sample));
        if self.bytes > MOST_BYTES { self.oldest() } else { None }
    }

    /// All samples of a thread that goes back to user code, or ends. None of them will have a stack from a later record.
    pub(super) fn take(&mut self, tid: Tid) -> impl Iterator<Item = Held> + use<> {
        let samples = self.threads.remove(&tid).unwrap_or_default();
        for (place, sample) in &samples {
            self.order.remove(place);
            self.bytes -= sample.bytes();
        }
        samples.into_iter().map(|(_, sample)| sample)
    }

    /// The oldest sample.
    pub(super) fn oldest(&mut self) -> Option<Held> {
        let (_, (tid, _)) = self.order.pop_first()?;
        let samples = self.threads.get_mut(&tid)?;
        let (_, sample) = samples.pop_front()?;
        if samples.is_empty() {
            self.threads.remove(&tid);
        }
        self.bytes -= sample.bytes();
        Some(sample)
    }

    /// When the oldest sample was made: what was so then is still asked for.
    pub(super) fn since(&self) -> Option<Nanos> {
        self.order.first_key_value().map(|(_, (_, time))| *time)
    }
}

#[cfg(test)]
mod tests {
    use collector_common::perf::{Misc, RecordKind};

    use super::*;

    fn sample(cookie: u64, len: usize) -> Held {
        let record = OwnedRecord { kind: RecordKind::SAMPLE, misc: Misc(0), body: vec![0; len] };
        let (config, counted) = (ParseConfig::default(), Counted::default());
        Held { record, event: Some(0), config, cookie, time: Nanos(cookie), counted }
    }

    #[test]
    fn samples_come_back_by_thread_and_the_oldest_first() {
        let mut held = PutOff::default();
        for (tid, cookie) in [(7, 1), (8, 2), (7, 3), (9, 4)] {
            assert!(held.hold(Tid(tid), sample(cookie, 0)).is_none());
        }
        assert_eq!(held.since(), Some(Nanos(1)));
        let cookies: Vec<u64> = held.take(Tid(7)).map(|sample| sample.cookie).collect();
        assert_eq!(cookies, [1, 3]);
        assert_eq!(held.take(Tid(7)).count(), 0);
        assert_eq!(held.since(), Some(Nanos(2)));
        assert_eq!(held.oldest().map(|sample| sample.cookie), Some(2));
        assert_eq!(held.oldest().map(|sample| sample.cookie), Some(4));
        assert!(held.oldest().is_none() && held.since().is_none() && held.bytes == 0);
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let mut held = PutOff::default();
        let fit = MOST_BYTES / sample(0, 1 << 20).bytes();
        for cookie in 0..fit as u64 {
            assert!(held.hold(Tid(1), sample(cookie, 1 << 20)).is_none());
        }
        assert_eq!(held.hold(Tid(2), sample(99, 1 << 20)).map(|sample| sample.cookie), Some(0));
        assert!(held.bytes <= MOST_BYTES);
    }
}
