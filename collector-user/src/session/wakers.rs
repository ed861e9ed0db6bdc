//! Who ended the times off: for the table of who woke whom, and as text.

use std::borrow::Cow;

use collector_common::record::ExportMachine;
use collector_common::wire::COMM_LEN;

use super::times_off::Joined;
use crate::scenario::TimeOff;
use crate::wakers::{INTERRUPT, Wakers};

/// What the table's name ends with where waits for locks alone are recorded.
pub(super) const OF_LOCKS: &str = ", of waits for locks";

/// Counts a time off, if somebody ended it.
pub(super) fn count(wakers: &mut Wakers, machine: &mut ExportMachine, joined: &Joined) {
    let data = &joined.data;
    if data.state == 0 || data.waker_comm[0] == 0 {
        return;
    }
    let waker = machine.intern_string(&waker_of(data));
    let woken = machine.thread(joined.taken.thread).name;
    wakers.count(waker, woken, (data.weight, data.weight * data.blocked_ns as f64));
}

/// Who woke a thread, as text; empty where nobody did. Idle CPUs wake nobody: that was an interrupt.
pub(super) fn waker_of(data: &TimeOff) -> Cow<'_, str> {
    if data.waker_tid == 0 && data.waker_comm[0] != 0 { INTERRUPT.into() } else { name_of(&data.waker_comm) }
}

/// A thread's name, as the kernel has it.
pub(super) fn name_of(comm: &[u8; COMM_LEN]) -> Cow<'_, str> {
    String::from_utf8_lossy(comm.split(|byte| *byte == 0).next().unwrap_or_default())
}
