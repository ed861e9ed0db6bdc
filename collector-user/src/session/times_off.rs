//! Joins the two records of a time that a thread was off its CPU: the one that was made when it went off, with its stacks,
//! and the one that was made when it came back, which tells for how long. The stacks are unwound when they come; only what
//! they are interned as is kept.
//!
//! Rings of different CPUs are emptied one after the other, so within a round the second record may be met first. At the
//! end of a round both have been met, for what happened before is in the rings before.

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::wire::{CHANCES, COMM_LEN, LockWait, OffCpu, SampleFlags, SampleHeader};
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
    /// Whether it stands for others, too.
    pub(super) is_short: bool,
    /// The thread's name.
    pub(super) comm: [u8; COMM_LEN],
    /// What is known of it as a wait for a lock.
    pub(super) lock_wait: LockWait,
}

impl Joined {
    /// From when the thread gave up its CPU until it had one again.
    pub(super) fn took(&self) -> Nanos {
        Nanos(self.data.blocked_ns + self.data.waited_ns)
    }
}

/// A thread that has ended, or that the recording ended for.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The thread, without a stack.
    pub(super) taken: Taken,
    pub(super) tid: Tid,
    /// Nanoseconds for which it was blocked in short times off.
    pub(super) short_blocked: u64,
    /// Nanoseconds for which it waited for a CPU in those.
    pub(super) short_waited: u64,
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
    ended: Vec<Ended>,
}

impl TimesOff {
    pub(super) fn new(period: Nanos) -> Self {
        Self { period, gone: FxHashMap::default(), back: Vec::new(), ended: Vec::new() }
    }

    /// Takes one of the two records, or that of a thread's end.
    pub(super) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        let header = record.header;
        if header.flags().has(SampleFlags::LAST) {
            let OffCpu { short_blocked, short_waited, .. } = data_of(header);
            if let Some(taken) = recorder.take_none(record) {
                self.ended.push(Ended { taken, tid: Tid(header.tid), short_blocked, short_waited });
            }
        } else if header.flags().has(SampleFlags::BACK) {
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
                let is_short = header.time.saturating_sub(off.since) < self.period.0;
                let taken = Taken { time: since, ..taken };
                let (comm, lock_wait) = (header.comm, LockWait(off.lock_wait));
                visit(Joined { taken, pid: Pid(header.pid), tid, data, is_short, comm, lock_wait });
            }
        }
        self.forget();
    }

    /// Threads of which nothing more will come.
    pub(super) fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
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

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;
    use collector_common::intern::StackId;
    use collector_common::record::ThreadId;
    use collector_common::wire::OffCpuState;

    use super::*;

    const PERIOD: Nanos = Nanos(1000);

    fn back(time: u64, off: OffCpu) -> SampleHeader {
        let flags = SampleFlags::BACK;
        SampleHeader { flags, time, tid: 7, pid: 5, data: bytemuck::cast(off), ..SampleHeader::zeroed() }
    }

    fn gone(stack: u32) -> Taken {
        let stack = StackId(stack);
        Taken { time: Nanos(0), thread: ThreadId(0), stack, cpu: 0, user_end: None }
    }

    fn joined(times_off: &mut TimesOff) -> Vec<(u64, u32)> {
        let mut joined = Vec::new();
        times_off.end_round(|one| joined.push((one.taken.time.0, one.taken.stack.0)));
        joined
    }

    #[test]
    fn what_is_met_last_first_is_joined() {
        let mut times_off = TimesOff::new(PERIOD);
        let off = |since| OffCpu { since, chance: CHANCES, state: 1, ..OffCpu::NONE };
        times_off.back.push(Back { header: back(900, off(500)), without_stack: None });
        times_off.back.push(Back { header: back(300, off(100)), without_stack: None });
        times_off.gone.extend([((Tid(7), 100), gone(1)), ((Tid(7), 500), gone(2))]);
        assert_eq!(joined(&mut times_off), [(500, 2), (100, 1)]);
        assert!(times_off.gone.is_empty());
    }

    #[test]
    fn a_thread_is_off_once_at_a_time() {
        let mut times_off = TimesOff::new(PERIOD);
        // The first one was too short to be told of.
        times_off.gone.extend([((Tid(7), 100), gone(1)), ((Tid(7), 500), gone(2)), ((Tid(8), 50), gone(3))]);
        assert!(joined(&mut times_off).is_empty());
        let mut kept: Vec<_> = times_off.gone.keys().map(|(tid, since)| (tid.0, *since)).collect();
        kept.sort_unstable();
        assert_eq!(kept, [(7, 500), (8, 50)]);
    }

    #[test]
    fn what_is_short_stands_for_others_and_what_is_long_for_itself() {
        let off = OffCpu { since: 100, chance: CHANCES / 4, state: 1, woken: 150, ..OffCpu::NONE };
        let weight = |time, off: &OffCpu| data(&back(time, *off), off, PERIOD).weight.to_bits();
        assert_eq!(weight(1099, &off), 4_f64.to_bits());
        assert_eq!(weight(1100, &off), 1_f64.to_bits());
        assert_eq!(weight(1099, &OffCpu { chance: 0, ..off }), 1_f64.to_bits());
    }

    #[test]
    fn a_wait_for_a_cpu_begins_when_the_thread_could_run() {
        let parts = |off: OffCpu| {
            let data = data(&back(600, off), &off, PERIOD);
            [data.blocked_ns, data.waited_ns]
        };
        let off = OffCpu { since: 100, chance: CHANCES, state: 1, woken: 450, ..OffCpu::NONE };
        assert_eq!(parts(off), [350, 150]);
        assert_eq!(parts(OffCpu { woken: 0, ..off }), [500, 0]);
        assert_eq!(parts(OffCpu { state: OffCpuState::PREEMPTED, woken: 100, ..off }), [0, 500]);
        // Clocks of CPUs that disagree a little.
        assert_eq!(parts(OffCpu { woken: 90, ..off }), [0, 500]);
        assert_eq!(parts(OffCpu { woken: 700, ..off }), [500, 0]);
    }
}
