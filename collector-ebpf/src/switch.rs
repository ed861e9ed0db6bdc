//! Programs at the scheduler's tracepoints: how long threads do not run, with which stacks, who wakes them, and how long
//! they then wait for a CPU.
//!
//! ```text
//!            sched_switch                  sched_waking               sched_switch
//! ── runs ──┤ takes stacks, or not ├── blocked ──┤ waker ├── waits for a CPU ──┤ tells how long ├── runs ──
//! ```
//!
//! Whether stacks are taken is decided before it is known for how long the thread will be off: with a chance of how long it
//! is expected to be, as a part of the period. So threads that are off for microseconds cost next to nothing, and what
//! stands for one stack is `1 / chance` of them; the exact sum of all such times is kept for each thread. A time off that
//! turns out to be a period or longer stands for itself alone, and is told even where the stacks were not taken.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid,
        generated::{bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use collector_common::wire::{
    CHANCES, Config, Counter, LockWait, OffCpu, OffCpuState, QUEUE_BUCKETS, RunQueue, SampleFlags,
    ThreadTimes, Times,
};

use crate::{
    current::Sample,
    filter, futex,
    interrupt::{self, Running},
    kernel::{name_of, process_of, read_word, thread_of},
    maps::{RINGS, RUN_QUEUES, THREADS, config, count},
    owner,
    record::{self, Bare},
    times::{are_kept, entry},
};

/// `sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)`, in the context
/// of `prev`, with interrupts off. Minimum kernel: 5.17.
///
/// `prev_state` is there since Linux 5.18.
#[raw_tracepoint(tracepoint = "sched_switch")]
// A function of its own would be a frame more in the kernel's stack.
#[inline(always)]
pub(crate) fn switch(context: RawTracePointContext) -> i32 {
    take::<true>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_switch")]
// A function of its own would be a frame more in the kernel's stack.
#[inline(always)]
pub(crate) fn switch_without_find_vma(context: RawTracePointContext) -> i32 {
    take::<false>(&context)
}

/// `sched_waking(struct task_struct *task)`, in the context of the waker, or of what an interrupt interrupted. Minimum
/// kernel: 5.17.
#[raw_tracepoint(tracepoint = "sched_waking")]
pub(crate) fn waking(context: RawTracePointContext) -> i32 {
    wake::<true>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_waking")]
pub(crate) fn waking_without_find_vma(context: RawTracePointContext) -> i32 {
    wake::<false>(&context)
}

#[inline(always)]
fn wake<const FIND_VMA: bool>(context: &RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    let tid = thread_of(task);
    let Some(times) = THREADS.get_ptr_mut(tid) else { return 0 };
    // SAFETY: the map gave a valid pointer. The kernel holds a lock of the thread, which does not run yet.
    unsafe {
        let times = &mut *times;
        if times.off.since == 0 || times.off.woken != 0 {
            return 0;
        }
        let running = interrupt::running();
        let waker = if running == Running::Interrupt {
            times.off.waker_comm = OffCpu::INTERRUPT;
            (0, 0)
        } else {
            times.off.waker_comm = bpf_get_current_comm().unwrap_or_default();
            let id = bpf_get_current_pid_tgid();
            ((id >> 32) as u32, id as u32)
        };
        (times.off.waker_pid, times.off.waker_tid) = waker;
        let is_lock_wait = are_kept(Times::LOCKS) && times.off.lock_wait != 0;
        // By what a lock is kept account of, too: where that is not asked for, the verifier drops the stacks.
        if is_lock_wait && running == Running::Thread && futex::releases() {
            let owner = owner::tell::<FIND_VMA>(context, times, tid, waker);
            times.off.lock_wait |= LockWait::RELEASED | owner;
        }
        times.off.woken = bpf_ktime_get_ns();
    }
    0
}

/// `sched_wakeup_new(struct task_struct *task)`, in the context of the thread that made it, before it runs. Minimum kernel:
/// 4.17.
#[raw_tracepoint(tracepoint = "sched_wakeup_new")]
pub(crate) fn waking_new(context: RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    let pid = process_of(task);
    if !filter::wanted(pid) {
        return 0;
    }
    let Some(times) = entry(thread_of(task)) else { return 0 };
    // SAFETY: the map gave a valid pointer, and the thread has not run yet.
    unsafe {
        let now = bpf_ktime_get_ns();
        (*times).off = OffCpu { since: now, woken: now, pid, ..OffCpu::NONE };
    }
    0
}

#[inline(always)]
fn take<const FIND_VMA: bool>(context: &RawTracePointContext) -> i32 {
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if tid != 0 {
        go_off::<FIND_VMA>(context, now, pid, tid);
    }
    let next: u64 = context.arg(2);
    let tid = thread_of(next);
    if tid != 0 {
        come_back(next, now, tid);
    }
    0
}

/// Why the current thread stops running.
#[inline(always)]
fn state(context: &RawTracePointContext) -> u32 {
    let preempted: u64 = context.arg(0);
    if preempted & 0xff != 0 {
        return OffCpuState::PREEMPTED;
    }
    match config(|c: &Config| &raw const c.task_state) {
        0 => context.arg::<u64>(3) as u32,
        offset => read_word(context.arg(1), offset) as u32,
    }
}

/// Whether a time off is recorded, as far as is known of it.
#[inline(always)]
fn is_recorded(off: &OffCpu) -> bool {
    off.is_recorded(config(|c: &Config| &raw const c.times))
}

/// The current thread stops running.
#[inline(always)]
fn go_off<const FIND_VMA: bool>(context: &RawTracePointContext, now: u64, pid: u32, tid: u32) {
    let state = state(context);
    let is_end = state & OffCpuState::DEAD != 0;
    if !filter::wanted(pid) {
        if is_end {
            let _ = THREADS.remove(tid);
        }
        return;
    }
    let Some(times) = entry(tid) else {
        let is_asked = is_recorded(&OffCpu { state, ..OffCpu::NONE }) || are_kept(Times::LOCKS);
        count(Counter::ThreadsFull, u64::from(is_asked));
        return;
    };
    // SAFETY: the map gave a valid pointer, and the thread is running here: nobody else writes to its entry.
    let times = unsafe { &mut *times };
    if times.on != 0 {
        times.ran += now - times.on;
        times.on = 0;
    }
    if times.off.since != 0 {
        come_back_untold(context.arg(1), times, tid);
    }
    let woken = if state == OffCpuState::PREEMPTED { now } else { 0 };
    let (short_blocked, short_waited) = (times.off.short_blocked, times.off.short_waited);
    let mut off =
        OffCpu { since: now, chance: 0, state, woken, pid, short_blocked, short_waited, ..OffCpu::NONE };
    if are_kept(Times::LOCKS)
        && state != OffCpuState::PREEMPTED
        && let Some((lock_wait, lock)) = futex::wait()
    {
        (off.lock_wait, off.lock) = (lock_wait, lock);
    }
    let (mut taken, mut ran) = (0, 0);
    if is_end {
        ran = if are_kept(Times::RAN) { times.ran } else { 0 };
        if ran | short_blocked | short_waited != 0 {
            taken = SampleFlags::LAST;
        }
    } else if off.lock_wait != 0 || is_recorded(&off) {
        let chance = chance(times);
        // SAFETY: the helper has no preconditions.
        if unsafe { bpf_get_prandom_u32() } % CHANCES < chance {
            (taken, off.chance) = (SampleFlags::OFF_CPU, chance);
        }
    }
    times.off = off;
    times.is_lost = u32::from(
        taken != 0 && !take_stacks::<FIND_VMA>(context, taken | SampleFlags::IN_KERNEL, off, tid, ran),
    );
    if is_end {
        let _ = THREADS.remove(tid);
    }
}

/// With which chance stacks are taken, out of [`CHANCES`].
#[inline(always)]
fn chance(times: &ThreadTimes) -> u32 {
    let period = config(|c: &Config| &raw const c.off_cpu_period);
    // It is not 0, which the compiler does not know.
    (times.expected * u64::from(CHANCES) / period.max(1)).clamp(1, CHANCES.into()) as u32
}

/// Writes a record of the current thread with its stacks. Says whether there was room.
#[inline(always)]
fn take_stacks<const FIND_VMA: bool>(
    context: &RawTracePointContext,
    flags: u32,
    off: OffCpu,
    tid: u32,
    ran: u64,
) -> bool {
    let mut sample = Sample::whole::<FIND_VMA>(context.as_ptr(), off.since, off.pid, tid, flags);
    (sample.data, sample.ran) = (off.words(), ran);
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    let is_written = ring.is_some_and(|ring| record::emit_with_lines(ring, &sample));
    count(if is_written { Counter::WentOff } else { Counter::WentOffLost }, 1);
    is_written
}

/// A thread gets the CPU.
#[inline(always)]
fn come_back(task: u64, now: u64, tid: u32) {
    let Some(times) = THREADS.get_ptr_mut(tid) else { return };
    // SAFETY: the map gave a valid pointer, and the thread is about to run here: nobody else writes to its entry.
    let times = unsafe { &mut *times };
    if are_kept(Times::RAN) {
        times.on = now;
    }
    let off = times.off;
    if off.since == 0 {
        return;
    }
    let took = now.saturating_sub(off.since);
    if is_recorded(&off) {
        expect(times, took);
        if times.is_lost == 0 {
            tell(times, task, now, tid, took);
        }
    }
    if are_kept(Times::QUEUED) && off.woken != 0 {
        count_wait(task, now.saturating_sub(off.woken));
    }
    times.off.since = 0;
}

/// The current thread ran, but the kernel did not tell of the switch to it: there are threads of which no tracepoint tells
/// that they give up a CPU, the first process's on some virtual machines. Until it was woken it was off its CPU for certain; for how
/// long it waited then, and how long it ran, is lost.
#[inline(always)]
fn come_back_untold(task: u64, times: &mut ThreadTimes, tid: u32) {
    let off = times.off;
    if !is_recorded(&off) || times.is_lost != 0 {
        return;
    }
    if off.woken == 0 || are_kept(Times::PREEMPTED) {
        count(Counter::BackMissed, 1);
    }
    if off.woken != 0 {
        tell(times, task, off.woken, tid, off.woken.saturating_sub(off.since));
    }
}

/// What is longer than was expected is soon expected, what is shorter takes some times: of a thread that is off for
/// microseconds mostly and for long at times, the stacks of the latter are wanted. Times much longer than the period make
/// no difference to each other.
#[inline(always)]
fn expect(times: &mut ThreadTimes, took: u64) {
    const RISE: u32 = 1;
    const FALL: u32 = 5;
    const MOST_PERIODS: u64 = 16;
    let took = took.min(config(|c: &Config| &raw const c.off_cpu_period) * MOST_PERIODS);
    if took > times.expected {
        times.expected += (took - times.expected) >> RISE;
    } else {
        times.expected -= (times.expected - took) >> FALL;
    }
}

/// What of such times off is shorter is left out.
#[inline(always)]
fn shortest(off: &OffCpu) -> u64 {
    let times = config(|c: &Config| &raw const c.times);
    let off_cpu = config(|c: &Config| &raw const c.shortest_off_cpu);
    off.shortest(times, off_cpu, config(|c: &Config| &raw const c.shortest_lock_wait))
}

/// Tells that a thread is back, if its stacks were taken, or it was off for long; adds up what is short.
#[inline(always)]
fn tell(times: &mut ThreadTimes, task: u64, now: u64, tid: u32, took: u64) {
    let off = times.off;
    if took < shortest(&off) {
        if off.chance != 0 {
            count(Counter::TooShort, 1);
        }
        return;
    }
    let is_short = took < config(|c: &Config| &raw const c.off_cpu_period);
    if off.chance != 0 || !is_short {
        // SAFETY: the helper has no preconditions.
        let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
        let (comm, data) = (name_of(task), off.words());
        let context = core::ptr::null_mut();
        let bare = Bare { context, flags: SampleFlags::BACK, time: now, pid: off.pid, tid, comm, data };
        let is_written = ring.is_some_and(|ring| record::emit_bare(ring, &bare));
        count(if is_written { Counter::CameBack } else { Counter::CameBackLost }, 1);
        if !is_written {
            let had_owner = off.lock_wait & LockWait::OWNER_RECORDED != 0;
            count(Counter::OwnerLost, u64::from(had_owner));
            return;
        }
    }
    if is_short {
        let waited = if off.woken == 0 { 0 } else { now.saturating_sub(off.woken).min(took) };
        times.off.short_blocked += took - waited;
        times.off.short_waited += waited;
    }
}

/// Counts a wait for a CPU.
#[inline(always)]
fn count_wait(task: u64, wait: u64) {
    /// As a thread's name is met for the first time.
    #[unsafe(no_mangle)]
    static NO_WAITS: RunQueue = [0; QUEUE_BUCKETS + 1];
    let name = name_of(task);
    let queue = RUN_QUEUES.get_ptr_mut(name).or_else(|| {
        // By its place: there is no room for another one on the program's stack.
        let no_waits: &RunQueue = &NO_WAITS;
        let _ = RUN_QUEUES.insert(name, no_waits, 0);
        RUN_QUEUES.get_ptr_mut(name)
    });
    let Some(queue) = queue else {
        count(Counter::NamesFull, 1);
        return;
    };
    let bucket = (u64::BITS - (wait / 1000).leading_zeros()) as usize;
    // SAFETY: the map gave a valid pointer to this CPU's value, and interrupts are off. The bound is the array's.
    unsafe {
        let queue = &mut *queue;
        queue[bucket.min(QUEUE_BUCKETS - 1)] += 1;
        queue[QUEUE_BUCKETS] += wait;
    }
}
