//! Switches of threads in, what threads did with their time out: blocked from when one gave up its CPU to wait until it was made ready
//! (`ReadyThread`) or, where nothing tells that, until it has a CPU again; waiting for a CPU from then on, or from when it lost its own to
//! another one, or was made; and on a CPU.
//!
//! ETW walks the stack of the thread that comes, which is where it waited.

use std::collections::HashMap;

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

/// The time that a thread was off its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) blocked: Option<Blocked>,
    /// How long it then waited for a CPU.
    pub(super) queued: Option<Nanos>,
    /// Whether the trace ended before that did.
    pub(super) is_open: bool,
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

impl Off {
    fn until(self, at: Nanos, is_open: bool) -> Came {
        let span = |since: Nanos, until: Nanos| Nanos(until.0.saturating_sub(since.0));
        let Self { since, why, .. } = self;
        let (ready, waker) = self.ready.map_or((None, None), |(at, waker)| (Some(at), waker));
        match why {
            Why::Waits(reason) => {
                let reason = usize::try_from(reason).ok().and_then(|reason| REASONS.get(reason)).copied();
                let until = ready.unwrap_or(at);
                let blocked = Blocked { until, took: span(since, until), reason, waker };
                Came { blocked: Some(blocked), queued: ready.map(|ready| span(ready, at)), is_open }
            }
            Why::Lost => Came { blocked: None, queued: Some(span(since, at)), is_open },
            Why::Made => Came { blocked: None, queued: Some(span(ready.unwrap_or(since), at)), is_open },
        }
    }
}

/// A thread on a CPU.
#[derive(Clone, Copy, Debug)]
struct On {
    tid: Tid,
    /// From when on its time was not told of.
    since: Nanos,
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
        let on = self.running.insert(cpu, On { tid: new, since: at });
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
        (self.off.remove(&new).map(|off| off.until(at, false)), ended)
    }

    /// A thread is made ready to run, by the thread that the event is of or, where it tells none, by that which runs on the event's CPU. The
    /// first time counts. Of one that is not off its CPU it ends the wait that the next switch begins, if it is not seen to run before.
    pub(super) fn ready(&mut self, event: ReadyThread, of: Option<Tid>, cpu: u16, at: Nanos) {
        let waker = match of.or_else(|| self.running(cpu)) {
            _ if event.flag & BY_DPC != 0 => Some(Waker::Interrupt),
            Some(Tid(0)) => Some(Waker::Interrupt),
            waker => waker.map(Waker::Thread),
        };
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
        if self.running.is_empty() || tid == Tid(0) {
            return None;
        }
        self.early.remove(&tid);
        let on = self.running.insert(cpu, On { tid, since: at }).filter(|on| on.tid == tid);
        let before = self.ran.remove(&tid).map_or(Nanos(0), |ran| ran.took);
        let now = on.map_or(0, |on| at.0.saturating_sub(on.since.0));
        Some(Nanos(before.0.saturating_add(now))).filter(|ran| ran.0 > 0)
    }

    /// What goes on when the trace ends, by thread: the time off a CPU of those that are off theirs, and what was not told of what
    /// others ran for. Nothing where no switch was seen.
    pub(super) fn open(&mut self, at: Nanos) -> Vec<(Tid, Option<Came>, Option<Ran>)> {
        if self.running.is_empty() {
            return Vec::new();
        }
        for on in self.running.values().copied().collect::<Vec<_>>() {
            if on.tid != Tid(0) {
                self.count_ran(on.tid, on.since, at);
            }
        }
        let off = self.off.iter().map(|(tid, off)| (*tid, Some(off.until(at, true)), None));
        let ran = self.ran.iter().map(|(tid, ran)| (*tid, None, Some(*ran)));
        let mut open: Vec<_> = off.chain(ran).collect();
        open.sort_unstable_by_key(|(tid, came, _)| (*tid, came.is_some()));
        open
    }

    /// The thread that runs on a CPU, where switches tell.
    pub(super) fn running(&self, cpu: u16) -> Option<Tid> {
        self.running.get(&cpu).map(|on| on.tid)
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
        assert_eq!(came, Some(Came { blocked, queued: Some(Nanos(3)), is_open: false }));
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
