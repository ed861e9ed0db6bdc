//! Programs at the entry and exit of system calls: how often each is called, fails, and how long it takes, counted per CPU;
//! and the slowest with their stacks.
//!
//! A call is recorded where it took longer than what remains of the time of the one that was recorded before, of the same
//! number on the same CPU. That fades to nothing within a second, so that slow ones are not missed for a slower one long
//! ago, and the number of records depends on the time that goes by and not on how many calls there are.

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::{LruHashMap, PerCpuArray},
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{
    CALL_BUCKETS, CALL_NUMBERS, Call, CallTimes, Counter, FIRST_CALL_NS, SampleFlags,
};

use crate::{
    current::Sample,
    filter,
    kernel::current_task,
    maps::{RINGS, count},
    record,
    registers::UserRegisters,
};

/// By slot. The number of entries is set before load.
#[btf_map]
static CALLS: PerCpuArray<CallTimes, 1> = PerCpuArray::new();

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entered {
    /// When it was made; 0 when it has returned, or is not counted.
    since: u64,
    /// As `Call::slot`.
    slot: u64,
}

/// By thread. Calls that never return are forgotten for others' sake. The number of entries is set before load.
#[btf_map]
static ENTERED: LruHashMap<u32, Entered, 1> = LruHashMap::new();

/// `uretprobe` and `uprobe`, which nobody calls: the kernel puts them where it traps functions and their returns
/// (`arch/x86/entry/syscalls/syscall_64.tbl`). What a recording probes would count as calls of the program.
const CALLS_OF_PROBES: [u64; 2] = [335, 336];

/// `clone`, `fork`, `vfork` and `clone3`, by the tables of system calls of the architecture and of 32-bit programs.
#[cfg(bpf_target_arch = "x86_64")]
const FORKS: [i32; 4] = [56, 57, 58, 435];
#[cfg(bpf_target_arch = "aarch64")]
const FORKS: [i32; 2] = [220, 435];
const COMPAT_FORKS: [i32; 4] = [120, 2, 190, 435];

/// `MAX_ERRNO` of `include/linux/err.h`.
const MAX_ERRNO: u64 = 4095;

/// In nanoseconds: 1.07 s.
const FADE_SHIFT: u32 = 30;

/// A time that times the fading is no overflow: 8.6 s.
const LONGEST: u64 = 1 << 33;

/// `sys_enter(struct pt_regs *regs, long id)`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sys_enter")]
pub(crate) fn call_begins(context: RawTracePointContext) -> i32 {
    let id = bpf_get_current_pid_tgid();
    if !filter::wanted((id >> 32) as u32) {
        return 0;
    }
    let number: u64 = context.arg(1);
    let mut slot = number.min(u64::from(CALL_NUMBERS) - 1);
    // SAFETY: the helper has no preconditions.
    let mut since = unsafe { bpf_ktime_get_ns() };
    if UserRegisters::of_current(current_task()).is_compat() {
        slot += u64::from(CALL_NUMBERS);
    } else if CALLS_OF_PROBES.contains(&number) {
        since = 0;
    }
    let entered = Entered { since, slot };
    if let Some(known) = ENTERED.get_ptr_mut(id as u32) {
        // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
        unsafe { *known = entered };
    } else {
        // What finds no room is counted when it returns.
        let _ = ENTERED.insert(id as u32, entered, 0);
    }
    0
}

/// `sys_exit(struct pt_regs *regs, long ret)`. Minimum kernel: 5.17.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn call_ends(context: RawTracePointContext) -> i32 {
    end::<true>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn call_ends_without_find_vma(context: RawTracePointContext) -> i32 {
    end::<false>(&context)
}

/// Whether a call is one that returns in two threads: 0 in the new one.
#[inline(always)]
fn is_fork(registers: &UserRegisters) -> bool {
    let number = registers.call();
    if registers.is_compat() { COMPAT_FORKS.contains(&number) } else { FORKS.contains(&number) }
}

#[inline(always)]
fn end<const FIND_VMA: bool>(context: &RawTracePointContext) -> i32 {
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    let returned: u64 = context.arg(1);
    let entered = ENTERED.get_ptr_mut(tid);
    if returned == 0 && is_fork(&UserRegisters::of_current(current_task())) {
        // The new thread, which never made the call. One that had its number may have ended within one.
        if let Some(entered) = entered {
            // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
            unsafe { (*entered).since = 0 };
        }
        return 0;
    }
    let Some(entered) = entered else {
        count(Counter::CallsUnknown, u64::from(filter::wanted(pid)));
        return 0;
    };
    // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
    let Entered { since, slot } = unsafe { *entered };
    if since == 0 {
        return 0;
    }
    // SAFETY: as above.
    unsafe { (*entered).since = 0 };
    let took = now.saturating_sub(since);
    let Some(times) = CALLS.get_ptr_mut(slot as u32) else { return 0 };
    // SAFETY: the map gave a valid pointer to this CPU's value. The tracepoints come with preemption off, and never in an
    // interrupt. The bound is the array's.
    let is_slow = unsafe {
        let times = &mut *times;
        let bucket = (u64::BITS - (took / FIRST_CALL_NS).leading_zeros()) as usize;
        times.buckets[bucket.min(CALL_BUCKETS - 1)] += 1;
        times.errors += u64::from(returned >= MAX_ERRNO.wrapping_neg());
        times.sum += took;
        times.longest = times.longest.max(took);
        let passed = now.saturating_sub(times.recorded_at);
        let fades = (times.recorded * passed.min(1 << FADE_SHIFT)) >> FADE_SHIFT;
        let is_slow = took > times.recorded - fades;
        if is_slow {
            (times.recorded, times.recorded_at) = (took.min(LONGEST), now);
        }
        is_slow
    };
    if is_slow {
        let call = Call { took, returned: returned as i64, slot: slot as u32, reserved: 0 };
        let mut sample = Sample::of_current::<FIND_VMA>(context.as_ptr(), now, pid, tid, SampleFlags::CALL);
        sample.data = call.words();
        // SAFETY: the helper has no preconditions.
        let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
        let is_written = ring.is_some_and(|ring| record::emit_with_lines(ring, &sample));
        count(if is_written { Counter::CallsRecorded } else { Counter::CallsLost }, 1);
    }
    0
}
