//! Programs at the tracepoints of locks of the kernel that are waited for: how long, by kind of lock.
//!
//! All waits are counted. One is recorded when it is over, with its stacks, and with a chance of how long it took, as a part of
//! the period; those that took a period or longer all are. The stacks are not taken when it begins, for short waits would be
//! long then, if they are recorded. So the lock is held for some microseconds more, once for a period of waiting.
//!
//! Waits begin anywhere: with interrupts off, in interrupts, while another lock is waited for, and in what other programs call.
//! Those for which a CPU spins end in the opposite order on it, so that they lie in a stack of that CPU. Those for which a
//! thread may sleep are in a map, by lock and thread. Each bucket of a map has a lock of its own, and so has the list that a map
//! takes entries from: what begins while a program of this file runs on the CPU is left out, and counted as that; and nothing
//! else is called that takes a lock which may be held here, such as that of the map of stacks' ends.

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::PerCpuArray,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{
    Config, Counter, FIRST_LOCK_NS, KernelLock, KernelLockKey, LOCK_BUCKETS, LockFlags, LockOffsets,
    SampleFlags,
};

use crate::{
    current::Sample,
    filter,
    kernel::{name_of, process_of, read_word, thread_of},
    maps::{KERNEL_LOCK_COUNTS, KERNEL_LOCKS, RINGS, config, count},
    record,
};

/// Locks that a CPU spins for at a time: in a thread, in a soft interrupt, in an interrupt and in one that can't be masked.
const MOST_SPINS: usize = 4;

/// What is known of a CPU.
#[repr(C)]
struct Spins {
    /// Whether a program of this file runs on it.
    is_busy: u32,
    /// How many of the waits there are.
    depth: u32,
    waits: [KernelLock; MOST_SPINS],
}

#[btf_map]
static SPINS: PerCpuArray<Spins, 1> = PerCpuArray::new();

/// Where locks have their owners, set before load.
#[unsafe(no_mangle)]
static LOCK_OFFSETS: LockOffsets = LockOffsets::NONE;

/// `contention_begin(void *lock, unsigned int flags)`, in the context of what waits. Minimum kernel: 5.19.
#[raw_tracepoint(tracepoint = "contention_begin")]
pub(crate) fn lock_wait_begins(context: RawTracePointContext) -> i32 {
    let is_alone = alone(|spins| begin(&context, spins));
    count(Counter::KernelLockNested, u64::from(!is_alone));
    0
}

/// `contention_end(void *lock, int ret)`, in the same context. Minimum kernel: 5.19.
#[raw_tracepoint(tracepoint = "contention_end")]
pub(crate) fn lock_wait_ends(context: RawTracePointContext) -> i32 {
    // Where it is not, the wait was left out, or is found to be open later.
    alone(|spins| end(&context, spins));
    0
}

/// Calls `f`, unless a program of this file runs on this CPU: what interrupts it, or what it does itself, waits for a lock then.
/// Says whether it was called. Kernels before 6.1 would let one program run within itself.
#[inline(always)]
fn alone(f: impl FnOnce(*mut Spins)) -> bool {
    let Some(spins) = SPINS.get_ptr_mut(0) else { return false };
    // SAFETY: the map gave a valid pointer to this CPU's value. What interrupts this finds it as it leaves it.
    unsafe {
        if core::ptr::read_volatile(&raw const (*spins).is_busy) != 0 {
            return false;
        }
        core::ptr::write_volatile(&raw mut (*spins).is_busy, 1);
        f(spins);
        core::ptr::write_volatile(&raw mut (*spins).is_busy, 0);
    }
    true
}

/// The current thread begins to wait.
#[inline(always)]
fn begin(context: &RawTracePointContext, spins: *mut Spins) {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if tid == 0 || !filter::wanted(pid) {
        return;
    }
    let lock: u64 = context.arg(0);
    let flags = context.arg::<u64>(1) as u32 & LockFlags::ALL;
    let key = KernelLockKey { lock, tid, reserved: 0 };
    let keeps_cpu = LockFlags(flags).keeps_cpu();
    if !keeps_cpu && KERNEL_LOCKS.get_ptr(key).is_some() {
        // A mutex that is spun for in vain is told of again when the thread goes to sleep, and may be so several times.
        if flags & LockFlags::MUTEX != 0 {
            return;
        }
        count(Counter::KernelLockOpen, 1);
    }
    // SAFETY: the helper has no preconditions.
    let since = unsafe { bpf_ktime_get_ns() };
    let mut wait = KernelLock { since, lock, flags, ..KernelLock::NONE };
    if !keeps_cpu {
        note_owner(&mut wait);
    }
    if keeps_cpu {
        push(spins, &wait);
    } else if KERNEL_LOCKS.insert(key, wait, 0).is_err() {
        count(Counter::KernelLockFull, 1);
    }
}

/// Keeps a wait for which the CPU spins. Where there is no room, the ends of others were not met.
#[inline(always)]
fn push(spins: *mut Spins, wait: &KernelLock) {
    // SAFETY: the map gave a valid pointer, and the bound is the array's.
    unsafe {
        let mut depth = (*spins).depth as usize;
        if depth >= MOST_SPINS {
            count(Counter::KernelLockOpen, MOST_SPINS as u64);
            depth = 0;
        }
        (*spins).waits[depth] = *wait;
        (*spins).depth = depth as u32 + 1;
    }
}

/// Takes out the last wait for the lock for which the CPU spins, and those that began after it, which are over then.
#[inline(always)]
fn pop(spins: *mut Spins, lock: u64) -> Option<KernelLock> {
    macro_rules! places {
        ($($place:literal)*) => {
            const { assert!([$($place),*].len() == MOST_SPINS) };
            // SAFETY: the map gave a valid pointer, and the places are in bounds.
            unsafe {
                let depth = (*spins).depth;
                $(
                    if depth > $place && (*spins).waits[$place].lock == lock {
                        count(Counter::KernelLockOpen, u64::from(depth - $place - 1));
                        (*spins).depth = $place;
                        return Some((*spins).waits[$place]);
                    }
                )*
            }
        };
    }
    places!(3 2 1 0);
    None
}

/// The current thread has what it waited for, or gives up.
#[inline(always)]
fn end(context: &RawTracePointContext, spins: *mut Spins) {
    let lock: u64 = context.arg(0);
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    let mut wait = if let Some(wait) = pop(spins, lock) {
        wait
    } else {
        let key = KernelLockKey { lock, tid, reserved: 0 };
        let Some(wait) = KERNEL_LOCKS.get_ptr(key) else { return };
        // SAFETY: the map gave a valid pointer, and only this thread has to do with the entry.
        let wait = unsafe { *wait };
        let _ = KERNEL_LOCKS.remove(key);
        wait
    };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    wait.took = now.saturating_sub(wait.since);
    add(wait.flags, wait.took);
    if !is_recorded(wait.took) {
        return;
    }
    let flags = SampleFlags::KERNEL_LOCK | SampleFlags::IN_KERNEL;
    // Where the end of the stack is not known already, it is not asked for.
    let mut sample = Sample::of_current::<false>(context.as_ptr(), now, pid, tid, flags);
    sample.data = wait.words();
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    let is_written = ring.is_some_and(|ring| record::emit_with_lines(ring, &sample));
    count(if is_written { Counter::KernelLockTold } else { Counter::KernelLockLost }, 1);
}

/// Whether a wait is, with a chance of how long it took.
#[inline(always)]
fn is_recorded(took: u64) -> bool {
    if took < config(|c: &Config| &raw const c.shortest_lock_wait) {
        return false;
    }
    // SAFETY: the helper has no preconditions.
    let [high, low] = [(); 2].map(|()| unsafe { bpf_get_prandom_u32() });
    let random = u64::from(high) << 32 | u64::from(low);
    // It is not 0, which the compiler does not know.
    random % config(|c: &Config| &raw const c.off_cpu_period).max(1) < took
}

/// Notes which thread has the lock, where it tells: `kernel/locking/mutex.c`, `rwsem.c` and `rtmutex_common.h`. Those that
/// have it to read are several, of which it knows the last one at best.
#[inline(always)]
fn note_owner(wait: &mut KernelLock) {
    /// Bits of an owner that are not of its address: `MUTEX_FLAGS`, `RWSEM_OWNER_FLAGS_MASK`, `RT_MUTEX_HAS_WAITERS`.
    const FLAGS: u64 = 7;
    /// `RWSEM_READER_OWNED`.
    const READERS: u64 = 1;
    let flags = wait.flags & !LockFlags::SPIN;
    let (offset, readers) = match flags {
        LockFlags::MUTEX => (offset(|o| &raw const o.mutex_owner), 0),
        LockFlags::READ | LockFlags::WRITE => (offset(|o| &raw const o.rwsem_owner), READERS),
        LockFlags::RT => (offset(|o| &raw const o.rt_mutex_owner), 0),
        _ => return,
    };
    if offset == LockOffsets::UNKNOWN {
        return;
    }
    let owner = read_word(wait.lock, offset);
    let task = owner & !FLAGS;
    if task == 0 || owner & readers != 0 {
        return;
    }
    wait.owner_pid = process_of(task);
    wait.owner_tid = thread_of(task);
    wait.owner_comm = name_of(task);
}

#[inline(always)]
fn offset(get: impl Fn(&LockOffsets) -> *const u32) -> u32 {
    // SAFETY: `get` returns a pointer to a field of the static it was given; volatile, because the value is patched before load
    // and must not be folded into the code.
    unsafe { core::ptr::read_volatile(get(&LOCK_OFFSETS)) }
}

/// Counts a wait.
#[inline(always)]
fn add(flags: u32, took: u64) {
    let Some(counts) = KERNEL_LOCK_COUNTS.get_ptr_mut(flags & LockFlags::ALL) else { return };
    let bucket = (u64::BITS - (took / FIRST_LOCK_NS).leading_zeros()) as usize;
    // SAFETY: the map gave a valid pointer to this CPU's value, and no other program of this file runs on it. The bound is the
    // array's.
    unsafe {
        (*counts).buckets[bucket.min(LOCK_BUCKETS - 1)] += 1;
        (*counts).ns += took;
    }
}
