//! Switches of threads in, what threads did with their time out: blocked from when one gave up its CPU to wait until it was made ready
//! (`ReadyThread`) or, where nothing tells that, until it has a CPU again; waiting for a CPU from then on, or from when it lost its own to
//! another one, or was made; and on a CPU.
//!
//! ETW walks the stack of the thread that comes, which is where it waited.
//!
//! Where switches were lost, any thread that was off its CPU may have had one, and waited for something else since. What is known of it
//! ends there ([`Cut`]):
//!
//! ```text
//! CPU 0   ──A│B──────?──────C│A──     B went and C came unseen: switches were lost between the two
//! T       ──│blocked─┤  not known   ├─ready─│──
//!           goes     last switch    CPU 0    comes, on any CPU
//!                    of CPU 0       is seen again
//! ```

use std::collections::HashMap;
use std::mem;

use collector_common::ids::{Nanos, Tid};
use windows_etw::decode::kernel::{ContextSwitch, ReadyThread};

/// Threads that are off a CPU at once.
const MOST: usize = 1 << 20;

/// `OldThreadState` of a thread that has ended (Microsoft's page on `CSwitch`, as the two that follow).
const TERMINATED: i8 = 4;
/// That of one that waits.
const WAITING: i8 = 5;
/// That of one that waits for its stack to be read from a disk.
const TRANSITION: i8 = 6;
/// Those of one that waits for a gate, as up to Windows 7, and of one whose process is brought back into memory (`KTHREAD_STATE` of Windows'
/// debuggers).
const GATE_WAIT: i8 = 8;
const IN_SWAP: i8 = 9;

/// Names of `KWAIT_REASON`, by number: `wdm.h`, and behind 39 what Windows 11 adds, as `ntkeapi.h` of System Informer's `phnt` lists it.
const REASONS: [&str; 43] = [
    "Executive",
    "FreePage",
    "PageIn",
    "PoolAllocation",
    "DelayExecution",
    "Suspended",
    "UserRequest",
    "WrExecutive",
    "WrFreePage",
    "WrPageIn",
    "WrPoolAllocation",
    "WrDelayExecution",
    "WrSuspended",
    "WrUserRequest",
    "WrEventPair",
    "WrQueue",
    "WrLpcReceive",
    "WrLpcReply",
    "WrVirtualMemory",
    "WrPageOut",
    "WrRendezvous",
    "WrKeyedEvent",
    "WrTerminated",
    "WrProcessInSwap",
    "WrCpuRateControl",
    "WrCalloutStack",
    "WrKernel",
    "WrResource",
    "WrPushLock",
    "WrMutex",
    "WrQuantumEnd",
    "WrDispatchInt",
    "WrPreempted",
    "WrYieldExecution",
    "WrFastMutex",
    "WrGuardedMutex",
    "WrRundown",
    "WrAlertByThreadId",
    "WrDeferredPreempt",
    "WrPhysicalFault",
    "WrIoRing",
    "WrMdlCache",
    "WrRcu",
];

/// `Flag` of a thread that was made ready by a deferred procedure call (Microsoft's page on `ReadyThread`).
const BY_DPC: i8 = 1;

/// Who made a thread ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waker {
    /// This thread.
    Thread(Tid),
    /// What an interrupt left to do, on whatever thread had the CPU, or on an idle one.
    Interrupt,
}

/// A time that a thread was blocked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    /// When it could go on: when it was made ready or, where nothing tells that, when it had a CPU.
    pub(super) until: Nanos,
    pub(super) took: Nanos,
    /// What it waited for, as Windows' headers call it, where that is known.
    pub(super) reason: Option<&'static str>,
    /// Who ended it, where that is told.
    pub(super) waker: Option<Waker>,
}

/// A time of which it is not known what a thread did, for switches were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Up to then it was off its CPU for what it went for.
    pub(super) since: Nanos,
    pub(super) until: Nanos,
    /// How long it had waited for a CPU before.
    pub(super) queued: Nanos,
}

/// The time that a thread was off its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) blocked: Option<Blocked>,
    /// What is not known of it, between the one and the other.
    pub(super) cut: Option<Cut>,
    /// How long it then waited for a CPU.
    pub(super) queued: Option<Nanos>,
    /// Up to when it is told of, where the trace ended before that did.
    pub(super) open: Option<Nanos>,
}

impl Came {
    /// From when it could run no longer, or could run first, until it has a CPU again.
    pub(super) fn took(&self) -> Nanos {
        let blocked = self.blocked.map_or(0, |blocked| blocked.took.0);
        let cut = self.cut.map_or(0, |cut| cut.queued.0.saturating_add(span(cut.since, cut.until).0));
        let queued = self.queued.unwrap_or_default().0;
        Nanos(blocked.saturating_add(cut).saturating_add(queued))
    }
}

/// Why a thread is off its CPU.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// It waits for something; by number.
    Waits(i8),
    /// It lost its CPU.
    Lost,
    /// It was made, and did not run yet.
    Made,
}

#[derive(Clone, Copy, Debug)]
struct Off {
    since: Nanos,
    why: Why,
    ready: Option<Ready>,
}

/// When a thread was made ready to run, and by whom.
type Ready = (Nanos, Option<Waker>);

const fn span(since: Nanos, until: Nanos) -> Nanos {
    Nanos(until.0.saturating_sub(since.0))
}

impl Off {
    /// `gap` is where it may have had a CPU unseen: from the first such time to the last.
    fn until(self, at: Nanos, gap: Option<Gap>, is_open: bool) -> Came {
        let open = is_open.then_some(at);
        let Some(gap) = gap else { return Came { open, ..self.whole(at) } };
        let since = gap.since.max(self.since).min(at);
        let Came { blocked, queued, .. } =
            Self { ready: self.ready.filter(|ready| ready.0 <= since), ..self }.whole(since);
        let queued = queued.unwrap_or_default();
        // It is off its CPU when it is made ready, and so it stays.
        let ready = self.ready.map(|ready| ready.0).filter(|ready| (gap.until..=at).contains(ready));
        let cut = Some(Cut { since, until: ready.unwrap_or(at), queued });
        let blocked = blocked.filter(|blocked| blocked.took.0 > 0);
        Came { blocked, cut, queued: ready.map(|ready| span(ready, at)), open }
    }

    fn whole(self, at: Nanos) -> Came {
        let Self { since, why, .. } = self;
        let (ready, waker) = self.ready.map_or((None, None), |(at, waker)| (Some(at), waker));
        match why {
            Why::Waits(reason) => {
                let reason = usize::try_from(reason).ok().and_then(|reason| REASONS.get(reason)).copied();
                let until = ready.unwrap_or(at);
                let blocked = Blocked { until, took: span(since, until), reason, waker };
                let queued = ready.map(|ready| span(ready, at));
                Came { blocked: Some(blocked), queued, ..Came::default() }
            }
            Why::Lost => Came { queued: Some(span(since, at)), ..Came::default() },
            Why::Made => Came { queued: Some(span(ready.unwrap_or(since), at)), ..Came::default() },
        }
    }
}

/// A thread on a CPU.
#[derive(Clone, Copy, Debug)]
struct On {
    tid: Tid,
    /// From when on its time was not told of.
    since: Nanos,
    /// Which thread the last switch put there, and when.
    switched: Option<(Tid, Nanos)>,
}

/// From the last switch of a CPU before others were lost to when it is seen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    since: Nanos,
    until: Nanos,
}

/// What a thread ran for, in one piece or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) took: Nanos,
    /// When the last piece ended.
    pub(super) until: Nanos,
}

/// Threads that are off their CPU, and those that are on one.
#[derive(Debug, Default)]
pub(super) struct Switches {
    off: HashMap<Tid, Off>,
    /// By CPU.
    running: HashMap<u16, On>,
    /// What threads ran for before they lost their CPU, and was not told of.
    ran: HashMap<Tid, Ran>,
    /// Threads that were made ready while no switch had told yet that they wait: another CPU can end a wait before the switch that it begins with
    /// is over.
    early: HashMap<Tid, Ready>,
    /// Where switches of any CPU were lost: in order, and apart.
    gaps: Vec<Gap>,
    /// Whether a switch was.
    was_seen: bool,
    /// When it was told of the last time what a thread does.
    last: Nanos,
    /// Times off a CPU that are not known to their end.
    cut: u64,
    left_out: u64,
}

impl Switches {
    /// Takes a switch. Out: the time that the thread that comes was off its CPU, if its beginning was seen; and, if the one that goes has
    /// ended, what it ran for without being told of.
    pub(super) fn take(
        &mut self,
        switch: &ContextSwitch,
        cpu: u16,
        at: Nanos,
    ) -> (Option<Came>, Option<(Tid, Ran)>) {
        let (old, new) = (switch.old_tid, switch.new_tid);
        self.was_seen = true;
        self.last = self.last.max(at);
        let on = self.running.insert(cpu, On { tid: new, since: at, switched: Some((new, at)) });
        if let Some((_, last)) = on.and_then(|on| on.switched).filter(|(tid, _)| *tid != old) {
            self.add_gap(last, at);
        }
        if let Some(on) = on.filter(|on| on.tid == old && old != Tid(0)) {
            self.count_ran(old, on.since, at);
        }
        let why = match switch.old_state {
            TERMINATED => None,
            WAITING | TRANSITION | GATE_WAIT | IN_SWAP => Some(Why::Waits(switch.old_wait_reason)),
            _ => Some(Why::Lost),
        };
        // What made the thread that comes ready ended a wait that is over.
        self.early.remove(&new);
        let early = self.early.remove(&old).map(|(_, waker)| (at, waker));
        match why.filter(|_| old != Tid(0)) {
            Some(why) => self.insert(old, Off { since: at, why, ready: early }),
            None => drop(self.off.remove(&old)),
        }
        let ended = if why.is_none() { self.ran.remove(&old).map(|ran| (old, ran)) } else { None };
        let came = self.off.remove(&new).map(|off| off.until(at, self.gap_since(off.since), false));
        self.cut += u64::from(came.is_some_and(|came| came.cut.is_some()));
        (came, ended)
    }

    /// Switches of a CPU may be lost, from the last one up to now.
    pub(super) fn lose(&mut self, cpu: u16, at: Nanos) {
        if self.was_seen {
            let on = self.running.remove(&cpu);
            let last = on.and_then(|on| on.switched).map_or(Nanos(0), |(_, last)| last);
            self.add_gap(last, at);
        }
    }

    /// The same of any CPU.
    pub(super) fn lose_any(&mut self, at: Nanos) {
        let last = self.running.values().filter_map(|on| on.switched).map(|(_, last)| last).min();
        if let Some(last) = last {
            self.running.clear();
            self.add_gap(last, at);
        }
    }

    fn add_gap(&mut self, since: Nanos, until: Nanos) {
        // To empty one that was large takes long, each time.
        self.early = HashMap::new();
        let mut gap = Gap { since: since.min(until), until };
        // Those that touch are one; and so are the last two where there are too many.
        while let Some(last) = self.gaps.last().copied()
            && (last.until >= gap.since || self.gaps.len() >= MOST)
        {
            gap = Gap { since: gap.since.min(last.since), until: gap.until.max(last.until) };
            self.gaps.pop();
        }
        self.gaps.push(gap);
    }

    /// Where a thread may have had a CPU unseen since it went off its own.
    fn gap_since(&self, since: Nanos) -> Option<Gap> {
        let first = self.gaps.get(self.gaps.partition_point(|gap| gap.until <= since))?;
        self.gaps.last().map(|last| Gap { since: first.since, until: last.until })
    }

    /// A thread is made ready to run, by the thread that the event is of or, where it tells none, by that which runs on the event's CPU. The
    /// first time counts. Of one that is not off its CPU it ends the wait that the next switch begins, if it is not seen to run before.
    pub(super) fn ready(&mut self, event: ReadyThread, of: Option<Tid>, cpu: u16, at: Nanos) {
        let waker = match of.or_else(|| self.running(cpu)) {
            _ if event.flag & BY_DPC != 0 => Some(Waker::Interrupt),
            Some(Tid(0)) => Some(Waker::Interrupt),
            waker => waker.map(Waker::Thread),
        };
        self.last = self.last.max(at);
        if let Some(off) = self.off.get_mut(&event.tid) {
            off.ready = off.ready.or(Some((at, waker)));
        } else if self.early.len() < MOST || self.early.contains_key(&event.tid) {
            self.early.insert(event.tid, (at, waker));
        } else {
            self.left_out += 1;
        }
    }

    /// A thread begins: the number is another one's.
    pub(super) fn begin(&mut self, tid: Tid, at: Nanos) {
        self.ran.remove(&tid);
        self.early.remove(&tid);
        self.insert(tid, Off { since: at, why: Why::Made, ready: None });
    }

    /// A thread ends: it comes back no more.
    pub(super) fn end(&mut self, tid: Tid) {
        self.off.remove(&tid);
        self.early.remove(&tid);
    }

    /// A CPU is seen to run a thread. Out: what the thread ran for since it was seen the last time; none as long as no switch was seen, for then it
    /// is not known whether it ran since.
    pub(super) fn sampled(&mut self, cpu: u16, tid: Tid, at: Nanos) -> Option<Nanos> {
        if !self.was_seen || tid == Tid(0) {
            return None;
        }
        self.early.remove(&tid);
        self.last = self.last.max(at);
        let on = self.running.entry(cpu).or_insert(On { tid, since: at, switched: None });
        let on = mem::replace(on, On { tid, since: at, switched: on.switched });
        let before = self.ran.remove(&tid).map_or(Nanos(0), |ran| ran.took);
        let now = if on.tid == tid { at.0.saturating_sub(on.since.0) } else { 0 };
        Some(Nanos(before.0.saturating_add(now))).filter(|ran| ran.0 > 0)
    }

    /// What goes on when the trace ends, by thread: the time off a CPU of those that are off theirs, and what was not told of what
    /// others ran for. Nothing where no switch was seen.
    ///
    /// That is up to when switches, wakeups or samples were told of last: a recording is told of none while .NET tells its methods at the end.
    pub(super) fn open(&mut self, at: Nanos) -> Vec<(Tid, Option<Came>, Option<Ran>)> {
        if !self.was_seen {
            return Vec::new();
        }
        let at = at.min(self.last);
        for on in self.running.values().copied().collect::<Vec<_>>() {
            if on.tid != Tid(0) {
                self.count_ran(on.tid, on.since, at);
            }
        }
        let until = |off: &Off| off.until(at, self.gap_since(off.since), true);
        let off: Vec<_> = self.off.iter().map(|(tid, off)| (*tid, Some(until(off)), None)).collect();
        self.cut +=
            off.iter().filter(|(_, came, _)| came.is_some_and(|came| came.cut.is_some())).count() as u64;
        let ran = self.ran.iter().map(|(tid, ran)| (*tid, None, Some(*ran)));
        let mut open: Vec<_> = off.into_iter().chain(ran).collect();
        open.sort_unstable_by_key(|(tid, came, _)| (*tid, came.is_some()));
        open
    }

    /// The thread that runs on a CPU, where switches tell.
    pub(super) fn running(&self, cpu: u16) -> Option<Tid> {
        self.running.get(&cpu).map(|on| on.tid)
    }

    /// Times off a CPU of which not all is known, for switches were lost.
    pub(super) const fn cut(&self) -> u64 {
        self.cut
    }

    /// Times that there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn insert(&mut self, tid: Tid, off: Off) {
        if self.off.len() < MOST || self.off.contains_key(&tid) {
            self.off.insert(tid, off);
        } else {
            self.left_out += 1;
        }
    }

    fn count_ran(&mut self, tid: Tid, since: Nanos, until: Nanos) {
        if self.ran.len() < MOST || self.ran.contains_key(&tid) {
            let ran = self.ran.entry(tid).or_insert(Ran { took: Nanos(0), until });
            ran.took.0 = ran.took.0.saturating_add(until.0.saturating_sub(since.0));
            ran.until = until;
        } else {
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(old: u32, state: i8, new: u32) -> ContextSwitch {
        ContextSwitch {
            new_tid: Tid(new),
            old_tid: Tid(old),
            new_priority: 8,
            old_priority: 8,
            new_quantum: None,
            old_quantum: None,
            previous_c_state: Some(0),
            spare: Some(0),
            old_wait_reason: 6,
            old_wait_mode: 1,
            old_state: state,
            old_ideal_processor: 0,
            new_wait_time: 0,
            reserved: Some(0),
        }
    }

    fn ready(tid: u32, flag: i8) -> ReadyThread {
        ReadyThread { tid: Tid(tid), adjust_reason: 1, adjust_increment: 0, flag, reserved: 0 }
    }

    #[test]
    fn a_thread_is_blocked_from_when_it_waits_until_it_runs() {
        let mut switches = Switches::default();
        assert_eq!(switches.take(&switch(7, WAITING, 0), 0, Nanos(10)), (None, None));
        assert_eq!(switches.take(&switch(8, WAITING, 9), 1, Nanos(20)), (None, None));
        let (came, _) = switches.take(&switch(9, 1, 7), 1, Nanos(35));
        let reason = Some("UserRequest");
        let blocked = Some(Blocked { until: Nanos(35), took: Nanos(25), reason, waker: None });
        assert_eq!(came, Some(Came { blocked, ..Came::default() }));
        // It lost its CPU, which is no wait for anything else.
        let (came, _) = switches.take(&switch(7, WAITING, 9), 1, Nanos(40));
        assert_eq!(came, Some(Came { queued: Some(Nanos(5)), ..Came::default() }));
        assert_eq!((switches.running(1), switches.running(0)), (Some(Tid(9)), Some(Tid(0))));
        // 7 was ready three before it ran; that it was made so once more changes nothing.
        switches.ready(ready(7, 0), None, 1, Nanos(47));
        switches.ready(ready(7, BY_DPC), None, 1, Nanos(49));
        let (came, ended) = switches.take(&switch(9, TERMINATED, 7), 1, Nanos(50));
        let waker = Some(Waker::Thread(Tid(9)));
        let blocked = Some(Blocked { until: Nanos(47), took: Nanos(7), reason, waker });
        assert_eq!(came, Some(Came { blocked, queued: Some(Nanos(3)), ..Came::default() }));
        assert_eq!(ended, Some((Tid(9), Ran { took: Nanos(25), until: Nanos(50) })));
        switches.begin(Tid(7), Nanos(60));
        let (came, _) = switches.take(&switch(0, 2, 7), 0, Nanos(64));
        assert_eq!(came, Some(Came { queued: Some(Nanos(4)), ..Came::default() }));
    }

    #[test]
    fn a_waker_is_who_the_event_is_of_or_who_runs_where_it_was_written() {
        let mut switches = Switches::default();
        switches.take(&switch(1, 1, 9), 3, Nanos(5));
        switches.take(&switch(9, 1, 0), 4, Nanos(5));
        let mut waker = |of, flag, cpu| {
            switches.take(&switch(7, WAITING, 0), 0, Nanos(10));
            switches.ready(ready(7, flag), of, cpu, Nanos(20));
            let (came, _) = switches.take(&switch(0, 2, 7), 0, Nanos(30));
            came.and_then(|came| came.blocked).and_then(|blocked| blocked.waker)
        };
        assert_eq!(waker(None, 0, 3), Some(Waker::Thread(Tid(9))));
        assert_eq!(waker(Some(Tid(8)), 0, 3), Some(Waker::Thread(Tid(8))));
        // 2 and 4 are of what is not in memory.
        assert_eq!(waker(Some(Tid(8)), 6, 3), Some(Waker::Thread(Tid(8))));
        assert_eq!(waker(Some(Tid(8)), BY_DPC, 3), Some(Waker::Interrupt));
        assert_eq!(waker(None, 0, 4), Some(Waker::Interrupt));
        assert_eq!(waker(None, 0, 5), None);
    }

    #[test]
    fn a_thread_may_wait_in_several_states() {
        for state in [WAITING, TRANSITION, GATE_WAIT, IN_SWAP] {
            let mut switches = Switches::default();
            switches.take(&switch(7, state, 0), 0, Nanos(10));
            let (came, _) = switches.take(&switch(0, 2, 7), 0, Nanos(30));
            let took = came.and_then(|came| came.blocked).map(|blocked| blocked.took);
            assert_eq!(took, Some(Nanos(20)), "{state}");
        }
    }

    /// Thread 7 goes at 10 and comes at 90, while CPU 0 loses switches.
    fn cut_wait(state: i8, readied: &[u64], lose: impl Fn(&mut Switches, Nanos)) -> (Came, u64) {
        let mut switches = Switches::default();
        switches.take(&switch(0, 2, 8), 0, Nanos(5));
        switches.take(&switch(7, state, 0), 1, Nanos(10));
        switches.take(&switch(8, WAITING, 5), 0, Nanos(30));
        let mut readied = readied.iter().map(|at| Nanos(*at)).peekable();
        while let Some(at) = readied.next_if(|at| at.0 < 60) {
            switches.ready(ready(7, 0), Some(Tid(5)), 1, at);
        }
        lose(&mut switches, Nanos(60));
        readied.for_each(|at| switches.ready(ready(7, 0), Some(Tid(5)), 1, at));
        let (came, _) = switches.take(&switch(0, 2, 7), 1, Nanos(90));
        (came.expect("it was off"), switches.cut())
    }

    #[test]
    fn a_wait_is_known_up_to_where_switches_were_lost() {
        let cut = |since, until, queued| {
            Some(Cut { since: Nanos(since), until: Nanos(until), queued: Nanos(queued) })
        };
        let blocked = |until: u64, waker| {
            let (reason, took) = (Some("UserRequest"), Nanos(until - 10));
            Some(Blocked { until: Nanos(until), took, reason, waker })
        };
        // The thread that comes at 30 is not the one that goes at 60; a buffer tells so; all CPUs may be meant.
        let by_chain = |switches: &mut Switches, at| {
            switches.take(&switch(6, WAITING, 0), 0, at);
        };
        let none_lost = |switches: &mut Switches, at| {
            switches.take(&switch(5, WAITING, 0), 0, at);
        };
        let by_buffer = |switches: &mut Switches, at| switches.lose(0, at);
        let of_any = |switches: &mut Switches, at| switches.lose_any(at);
        let expected = Came { blocked: blocked(30, None), cut: cut(30, 90, 0), ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[], by_chain), (expected, 1));
        assert_eq!(cut_wait(WAITING, &[], by_buffer), (expected, 1));
        // The last switch of CPU 1 is the one at 10.
        let expected = Came { cut: cut(10, 90, 0), ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[], of_any), (expected, 1));
        // Nothing is lost.
        let whole = Came { blocked: blocked(90, None), ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[], none_lost), (whole, 0));

        // Before the gap, in it and behind it.
        let by = Some(Waker::Thread(Tid(5)));
        let expected = Came { blocked: blocked(20, by), cut: cut(30, 90, 10), ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[20], by_buffer), (expected, 1));
        let expected = Came { blocked: blocked(30, None), cut: cut(30, 90, 0), ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[45], by_buffer), (expected, 1));
        let queued = Some(Nanos(20));
        let expected = Came { blocked: blocked(30, None), cut: cut(30, 70, 0), queued, ..Came::default() };
        assert_eq!(cut_wait(WAITING, &[70], by_buffer), (expected, 1));
        // It lost its CPU.
        let expected = Came { cut: cut(30, 90, 20), ..Came::default() };
        assert_eq!(cut_wait(1, &[], by_buffer), (expected, 1));
    }

    #[test]
    fn a_wait_over_several_gaps_is_known_up_to_the_first() {
        let mut switches = Switches::default();
        switches.take(&switch(0, 2, 8), 0, Nanos(1));
        switches.take(&switch(7, WAITING, 0), 1, Nanos(10));
        switches.take(&switch(9, WAITING, 0), 2, Nanos(100));
        for at in [30, 40, 60] {
            switches.take(&switch(8, 1, 8), 0, Nanos(at));
        }
        switches.lose(0, Nanos(70));
        switches.take(&switch(8, 1, 8), 0, Nanos(80));
        switches.lose(0, Nanos(90));
        assert_eq!(
            switches.gaps,
            [(60, 70), (80, 90)].map(|(since, until)| Gap { since: Nanos(since), until: Nanos(until) })
        );
        let cut = |tid| switches.gap_since(switches.off[&Tid(tid)].since);
        assert_eq!(cut(7), Some(Gap { since: Nanos(60), until: Nanos(90) }));
        assert_eq!(cut(9), None);
        // It reaches back over both.
        switches.add_gap(Nanos(50), Nanos(120));
        assert_eq!(switches.gaps, [Gap { since: Nanos(50), until: Nanos(120) }]);
    }

    #[test]
    fn a_wait_may_be_ended_before_the_switch_that_it_begins_with() {
        let mut switches = Switches::default();
        let mut wait = |early: &[(u64, u32)], is_seen: bool| {
            switches.take(&switch(0, 2, 7), 0, Nanos(10));
            for (at, by) in early {
                switches.ready(ready(7, 0), Some(Tid(*by)), 1, Nanos(*at));
            }
            if is_seen {
                switches.sampled(0, Tid(7), Nanos(19));
            }
            switches.take(&switch(7, WAITING, 0), 0, Nanos(20));
            let (came, _) = switches.take(&switch(0, 2, 7), 1, Nanos(50));
            let came = came.expect("it was off");
            let blocked = came.blocked.expect("it waited");
            switches.take(&switch(7, TERMINATED, 0), 1, Nanos(60));
            (blocked.took.0, blocked.until.0, blocked.waker, came.queued)
        };
        let by = |tid| Some(Waker::Thread(Tid(tid)));
        assert_eq!(wait(&[(20, 9)], false), (0, 20, by(9), Some(Nanos(30))));
        assert_eq!(wait(&[(18, 9)], false), (0, 20, by(9), Some(Nanos(30))));
        // Of a thread that runs on it is of a wait that no switch tells of; and so is what is left of the rounds before.
        assert_eq!(wait(&[(18, 9)], true), (30, 50, None, None));
        assert_eq!(wait(&[], false), (30, 50, None, None));
        // The later one is of the wait that begins.
        assert_eq!(wait(&[(12, 8), (19, 9)], false), (0, 20, by(9), Some(Nanos(30))));
        // Before it came it was made ready for that.
        switches.ready(ready(7, 0), Some(Tid(9)), 1, Nanos(70));
        switches.take(&switch(0, 2, 7), 0, Nanos(75));
        switches.take(&switch(7, WAITING, 0), 0, Nanos(80));
        let (came, _) = switches.take(&switch(0, 2, 7), 0, Nanos(90));
        assert_eq!(came.and_then(|came| came.blocked).map(|blocked| blocked.took), Some(Nanos(10)));
    }

    /// `[reason]` is as `KWAIT_REASON` of `wdm.h` counts them.
    #[test]
    fn reasons_have_their_numbers() {
        let told = [
            (0, "Executive"),
            (4, "DelayExecution"),
            (15, "WrQueue"),
            (30, "WrQuantumEnd"),
            (32, "WrPreempted"),
            (37, "WrAlertByThreadId"),
            (39, "WrPhysicalFault"),
            (40, "WrIoRing"),
            (42, "WrRcu"),
        ];
        for (number, name) in told {
            assert_eq!(REASONS[number], name);
        }
    }
}
