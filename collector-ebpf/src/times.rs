//! What is kept of each thread's time, in [`THREADS`]: while it runs since when, and while it does not since when and why.
//!
//! One thread's entry is written by the tracepoints in its own order: it stops running, it is woken, it runs again. Programs
//! at two of them never run for one thread at once, but for a wakeup that overtakes the switch; that one is missed then.

use collector_common::wire::{Config, OffCpu, ThreadTimes, Times};

use crate::maps::{THREADS, config};

/// Whether any of the [`Times`] bits is set.
#[inline(always)]
pub(crate) fn are_kept(bits: u32) -> bool {
    config(|c: &Config| &raw const c.times) & bits != 0
}

/// The entry of a thread, which is made if there is none; `None` when there is no room.
#[inline(always)]
pub(crate) fn entry(tid: u32) -> Option<*mut ThreadTimes> {
    if let Some(times) = THREADS.get_ptr_mut(tid) {
        return Some(times);
    }
    // Twice the period: the first twenty times off of a thread have their stacks taken, however short they are.
    let expected = 2 * config(|c: &Config| &raw const c.off_cpu_period);
    let new = ThreadTimes { off: OffCpu::NONE, expected, on: 0, ran: 0, is_lost: 0, reserved: 0 };
    let _ = THREADS.insert(tid, new, 0);
    THREADS.get_ptr_mut(tid)
}

/// For how long the current thread ran since it was sampled last; the clock's period where that is not known. 0 where no
/// account is kept of that.
#[inline(always)]
pub(crate) fn ran(tid: u32, now: u64) -> u64 {
    if !are_kept(Times::RAN) {
        return 0;
    }
    let period = config(|c: &Config| &raw const c.clock_period);
    let Some(times) = entry(tid) else { return period };
    // SAFETY: the map gave a valid pointer, and the thread is running here: nobody else writes to its entry.
    unsafe {
        let on = (*times).on;
        let ran = if on == 0 { period } else { (*times).ran + now.saturating_sub(on) };
        (*times).on = now;
        (*times).ran = 0;
        ran
    }
}
