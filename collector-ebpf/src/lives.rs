//! Programs that tell of processes: who makes whom, which programs with which arguments they execute, and how they end.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    btf_maps::RingBuf,
    helpers::generated::{
        bpf_ktime_get_ns, bpf_probe_read_user, bpf_ringbuf_query, bpf_ringbuf_reserve, bpf_ringbuf_submit,
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{ARGUMENTS, Config, Counter, Life, LifeOffsets, VERSION};

use crate::{
    filter,
    kernel::{name_of, process_of, read_word, thread_of},
    maps::{Ring, config, count},
};

/// Offsets, patched before load.
#[unsafe(no_mangle)]
static LIFE_OFFSETS: LifeOffsets = LifeOffsets::NONE;

/// One for all CPUs, so that what happens to a process comes in its order. The size is set before load.
#[btf_map]
static LIVES: Ring = RingBuf::new();

/// Wake the reader when this many bytes wait.
const HIGH_WATER: u64 = 64 << 10;

/// `SIGNAL_GROUP_EXIT` of `include/linux/sched/signal.h`: all threads end, with `group_exit_code`.
const SIGNAL_GROUP_EXIT: u32 = 4;

#[inline(always)]
fn at(base: u64, offset: impl Fn(&LifeOffsets) -> *const u32) -> u64 {
    // SAFETY: `offset` returns a pointer to a field of the static it was given; volatile, because the value is
    // patched before load and must not be folded into the code.
    read_word(base, unsafe { core::ptr::read_volatile(offset(&LIFE_OFFSETS)) })
}

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn process_forked(context: RawTracePointContext) -> i32 {
    let parent: u64 = context.arg(0);
    let child: u64 = context.arg(1);
    let maker = process_of(parent);
    if process_of(child) == thread_of(child) && filter::wanted(maker) {
        tell::<0>(child, parent, Life::FORKED, 0);
    }
    0
}

/// `sched_process_exec(struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)`, when the new program is in
/// memory with its arguments. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub(crate) fn process_executed(context: RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    if filter::wanted(process_of(task)) {
        tell::<ARGUMENTS>(task, at(task, |o| &raw const o.task_real_parent), Life::EXECUTED, 0);
    }
    0
}

/// `sched_process_exit(struct task_struct *task)`, of each thread. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub(crate) fn process_ended(context: RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    let signal = read_word(task, config(|c: &Config| &raw const c.task_signal));
    if at(signal, |o| &raw const o.signal_live) as u32 != 0 || !filter::wanted(process_of(task)) {
        return 0;
    }
    let leader = read_word(task, config(|c: &Config| &raw const c.task_group_leader));
    let status = if at(signal, |o| &raw const o.signal_flags) as u32 & SIGNAL_GROUP_EXIT != 0 {
        at(signal, |o| &raw const o.signal_group_exit_code)
    } else {
        at(leader, |o| &raw const o.task_exit_code)
    };
    tell::<0>(leader, at(leader, |o| &raw const o.task_real_parent), Life::ENDED, status as u32);
    0
}

/// Writes a record of the process whose main thread is `task`, with room for `ROOM` bytes of its arguments.
#[inline(always)]
fn tell<const ROOM: usize>(task: u64, parent: u64, kind: u16, status: u32) {
    let ring = (&raw const LIVES).cast_mut().cast::<c_void>();
    // SAFETY: `ring` is a ring buffer map.
    let life = unsafe { bpf_ringbuf_reserve(ring, (size_of::<Life>() + ROOM) as u64, 0) }.cast::<Life>();
    if life.is_null() {
        count(Counter::LivesLost, 1);
        return;
    }
    // SAFETY: the record is a `Life`, aligned to 8 bytes, with `ROOM` bytes behind it, and was reserved from this ring.
    unsafe {
        let (argument_bytes, is_cut) =
            if ROOM == 0 { (0, 0) } else { copy_arguments::<ROOM>(life.add(1).cast(), task) };
        life.write(Life {
            version: VERSION,
            kind,
            status,
            time: bpf_ktime_get_ns(),
            started: at(task, |o| &raw const o.task_start_time),
            pid: process_of(task),
            parent: process_of(parent),
            argument_bytes,
            is_cut,
            comm: name_of(task),
            parent_comm: name_of(parent),
        });
        let waiting = bpf_ringbuf_query(ring, u64::from(BPF_RB_AVAIL_DATA));
        let wakeup = if waiting >= HIGH_WATER { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP };
        bpf_ringbuf_submit(life.cast(), u64::from(wakeup));
    }
}

/// Copies the arguments of the current process. Gives how many bytes they are in the record, and 1 where there are more.
///
/// # Safety
/// `to` has room for `ROOM` bytes.
#[inline(always)]
unsafe fn copy_arguments<const ROOM: usize>(to: *mut u8, task: u64) -> (u32, u32) {
    let mm = read_word(task, config(|c: &Config| &raw const c.task_mm));
    let start = at(mm, |o| &raw const o.mm_arg_start);
    let len = at(mm, |o| &raw const o.mm_arg_end).saturating_sub(start);
    let is_cut = u32::from(len > ROOM as u64);
    let len = len.min(ROOM as u64);
    // SAFETY: at most `ROOM` bytes; the helper checks the source.
    let result = unsafe { bpf_probe_read_user(to.cast(), len as u32, start as *const _) };
    if result < 0 { (0, 0) } else { (len as u32, is_cut) }
}
