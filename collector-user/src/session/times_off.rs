//! Joins the two records of a time that a thread was off its CPU: the one that was made when it went off, with its stacks,
//! and the one that was made when it came back, which tells for how long. The stacks are unwound when they come; only what
//! they are interned as is kept.
//!
//! Rings of different CPUs are emptied one after the other, so within a round the second record may be met first. At the
//! end of a round both have been met, for what happened before is in the rings before.

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::{CHANCES, LockWait, OffCpu, SampleFlags, SampleHeader};
use rustc_hash::FxHashMap;

use crate::recorder::{Recorder, Taken};
use crate::scenario::TimeOff;
use crate::source::SourceRecord;

/// A time off, whole.
#[derive(Clone, Copy)]
pub(super) struct Joined {
    /// The stacks of it; its time is when it began.
    pub(super) taken: Taken,
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    pub(super) data: TimeOff,
}

/// A thread that came back, and what it was taken as where there are no stacks.
struct Back {
    header: SampleHeader,
    without_stack: Option<Taken>,
}

/// Times off of which not all is known yet.
pub(super) struct TimesOff {
    /// What takes so long stands for itself alone.
    period: Nanos,
    /// By thread and when it went off.
    gone: FxHashMap<(Tid, u64), Taken>,
    back: Vec<Back>,
}

impl TimesOff {
    pub(super) fn new(period: Nanos) -> Self {
        Self { period, gone: FxHashMap::default(), back: Vec::new() }
    }

    /// Takes one of the two records.
    pub(super) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        let header = record.header;
        if header.flags().has(SampleFlags::BACK) {
            let is_bare = data_of(header).chance == 0;
            let without_stack = if is_bare { recorder.take_none(record) } else { None };
            self.back.push(Back { header: *header, without_stack });
        } else if let Some(taken) = recorder.take_stack(record) {
            self.gone.insert((Tid(header.tid), header.time), taken);
        }
    }

    /// Hands over what was joined in this round.
    pub(super) fn end_round(&mut self, mut visit: impl FnMut(Joined)) {
        for Back { header, without_stack } in self.back.drain(..) {
            let off = data_of(&header);
            let tid = Tid(header.tid);
            let since = Nanos(off.since);
            let taken = self.gone.remove(&(tid, off.since)).or(without_stack);
            // Where it is missing, the thread is not one to be recorded.
            if let Some(taken) = taken {
                let data = data(&header, &off, self.period);
                visit(Joined { taken: Taken { time: since, ..taken }, pid: Pid(header.pid), tid, data });
            }
        }
        self.forget();
    }

    /// Forgets times off of threads that went off again since: they were too short, or the record of their end was lost,
    /// which both is counted in the kernel.
    fn forget(&mut self) {
        let mut last: FxHashMap<Tid, u64> = FxHashMap::default();
        for &(tid, since) in self.gone.keys() {
            let known = last.entry(tid).or_default();
            *known = since.max(*known);
        }
        if last.len() < self.gone.len() {
            self.gone.retain(|(tid, since), _| last.get(tid) == Some(since));
        }
    }
}

fn data_of(header: &SampleHeader) -> OffCpu {
    bytemuck::cast(header.data)
}

/// What is known of a time off when the thread is back.
fn data(back: &SampleHeader, off: &OffCpu, period: Nanos) -> TimeOff {
    let took = back.time.saturating_sub(off.since);
    let waited_ns = if off.woken == 0 { 0 } else { back.time.saturating_sub(off.woken.max(off.since)) };
    let stands_alone = off.chance == 0 || took >= period.0;
    let weight = if stands_alone { 1.0 } else { f64::from(CHANCES) / f64::from(off.chance) };
    TimeOff {
        blocked_ns: took.saturating_sub(waited_ns),
        waited_ns,
        weight,
        state: off.state,
        is_open: back.flags().has(SampleFlags::STILL_OFF).into(),
        waker_pid: off.waker_pid,
        waker_tid: off.waker_tid,
        waker_comm: off.waker_comm,
        lock: off.lock,
        is_lock: LockWait(off.lock_wait).is_for_a_lock().into(),
        is_released: (off.lock_wait & LockWait::RELEASED != 0).into(),
    }
}
