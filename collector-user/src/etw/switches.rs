//! Switches of threads in, times that threads were blocked out: from when one gave up its CPU to wait until it has one again.
//!
//! What it waits for a CPU after it was woken is a part of that. A thread that lost its CPU to another one was not blocked. ETW walks
//! the stack of the thread that comes, which is where it waited.

use std::collections::HashMap;

use collector_common::ids::{Nanos, Tid};
use windows_etw::decode::kernel::ContextSwitch;

/// Threads that are off a CPU at once.
const MOST: usize = 1 << 20;

/// `KTHREAD_STATE` of a thread that waits.
const WAITING: i8 = 5;

/// Names of `KWAIT_REASON`, by number.
const REASONS: [&str; 40] = [
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
];

/// A time that a thread was blocked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    pub(super) since: Nanos,
    pub(super) took: Nanos,
    /// What it waited for, as Windows' headers call it, where that is known.
    pub(super) reason: Option<&'static str>,
}

/// Threads that are off their CPU, and those that are on one.
#[derive(Debug, Default)]
pub(super) struct Switches {
    blocked: HashMap<Tid, (Nanos, i8)>,
    /// By CPU.
    running: HashMap<u16, Tid>,
    left_out: u64,
}

impl Switches {
    /// Takes a switch. Out: for how long the thread that comes was blocked, if it was, and when that began was seen.
    pub(super) fn take(&mut self, switch: &ContextSwitch, cpu: u16, at: Nanos) -> Option<Blocked> {
        self.running.insert(cpu, switch.new_tid);
        if switch.old_state == WAITING && switch.old_tid != Tid(0) {
            if self.blocked.len() < MOST || self.blocked.contains_key(&switch.old_tid) {
                self.blocked.insert(switch.old_tid, (at, switch.old_wait_reason));
            } else {
                self.left_out += 1;
            }
        } else {
            self.blocked.remove(&switch.old_tid);
        }
        let (since, reason) = self.blocked.remove(&switch.new_tid)?;
        let took = Nanos(at.0.saturating_sub(since.0));
        let reason = usize::try_from(reason).ok().and_then(|reason| REASONS.get(reason)).copied();
        Some(Blocked { since, took, reason })
    }

    /// A thread begins or ends: the number is another one's.
    pub(super) fn forget(&mut self, tid: Tid) {
        self.blocked.remove(&tid);
    }

    /// The thread that runs on a CPU, where switches tell.
    pub(super) fn running(&self, cpu: u16) -> Option<Tid> {
        self.running.get(&cpu).copied()
    }

    /// Times that there was no room for.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
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

    #[test]
    fn a_thread_is_blocked_from_when_it_waits_until_it_runs() {
        let mut switches = Switches::default();
        assert_eq!(switches.take(&switch(7, WAITING, 0), 0, Nanos(10)), None);
        assert_eq!(switches.take(&switch(8, WAITING, 9), 1, Nanos(20)), None);
        let came = switches.take(&switch(9, 1, 7), 1, Nanos(35)).unwrap();
        assert_eq!(came, Blocked { since: Nanos(10), took: Nanos(25), reason: Some("UserRequest") });
        // It lost its CPU, which is no wait.
        assert_eq!(switches.take(&switch(7, WAITING, 9), 1, Nanos(40)), None);
        assert_eq!((switches.running(1), switches.running(0)), (Some(Tid(9)), Some(Tid(0))));
        switches.forget(Tid(7));
        assert_eq!(switches.take(&switch(9, 2, 7), 1, Nanos(50)), None);
    }

    /// `[reason]` is as `KWAIT_REASON` of `wdm.h` counts them.
    #[test]
    fn reasons_have_their_numbers() {
        for (number, name) in [(0, "Executive"), (4, "DelayExecution"), (15, "WrQueue"), (32, "WrPreempted")]
        {
            assert_eq!(REASONS[number], name);
        }
    }
}
