//! Who releases a lock of user code that another thread waits for, with its stacks: where that thread's wait is recorded, and no
//! others, so that what stands for one wait is the same for both.

use aya_ebpf::{
    EbpfContext as _,
    helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    programs::RawTracePointContext,
};
use collector_common::wire::{Config, Counter, LockOwner, LockWait, SampleFlags, ThreadTimes};

use crate::{
    current::Sample,
    filter,
    maps::{RINGS, config, count},
    record,
};

/// The current thread, which is `tid` of `pid`, releases what the waiter waits for. Says what is known of it then, as
/// [`LockWait`] bits.
#[inline(always)]
pub(crate) fn tell<const FIND_VMA: bool>(
    context: &RawTracePointContext,
    waiter: &ThreadTimes,
    waiter_tid: u32,
    (pid, tid): (u32, u32),
) -> u32 {
    if !filter::wanted(pid) {
        return LockWait::OWNER_LEFT_OUT;
    }
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let since = waiter.off.since;
    let is_long = now.saturating_sub(since) >= config(|c: &Config| &raw const c.off_cpu_period);
    if waiter.is_lost != 0 || (waiter.off.chance == 0 && !is_long) {
        return 0;
    }
    let flags = SampleFlags::LOCK_OWNER | SampleFlags::IN_KERNEL;
    let mut sample = Sample::of_current::<FIND_VMA>(context.as_ptr(), now, pid, tid, flags);
    sample.data = LockOwner { since, waiter_tid, reserved: 0 }.words();
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    if ring.is_some_and(|ring| record::emit(ring, &sample)) {
        count(Counter::OwnerRecorded, 1);
        LockWait::OWNER_RECORDED
    } else {
        count(Counter::OwnerLost, 1);
        LockWait::OWNER_LOST
    }
}
