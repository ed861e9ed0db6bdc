//! The sampling programs. One per kernel level: a program with a callback does not load before Linux 5.13,
//! and `bpf_find_vma` is there since 5.17.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::perf_event,
    programs::PerfEventContext,
};
use collector_common::wire::{Counter, SampleFlags};

use crate::{
    current::Sample,
    filter,
    maps::{RINGS, count},
    record, registers, times,
};

/// Takes a sample. Minimum kernel: 5.17.
#[perf_event]
pub(crate) fn sample(context: PerfEventContext) -> u32 {
    take::<true>(&context)
}

/// Takes a sample on kernels without `bpf_find_vma`: the ends of stacks other than main threads' stay
/// unknown. Minimum kernel: 5.8.
#[perf_event]
pub(crate) fn sample_without_find_vma(context: PerfEventContext) -> u32 {
    take::<false>(&context)
}

/// The returned 0 keeps the kernel from writing a record of its own.
#[inline(always)]
fn take<const FIND_VMA: bool>(context: &PerfEventContext) -> u32 {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if tid == 0 {
        count(Counter::FilteredIdle, 1);
        return 0;
    }
    if !filter::wanted(pid) {
        count(Counter::FilteredTarget, 1);
        return 0;
    }
    // SAFETY: the helpers have no preconditions.
    let (time, cpu) = unsafe { (bpf_ktime_get_ns(), bpf_get_smp_processor_id() as u32) };
    let Some(ring) = RINGS.get(cpu) else {
        count(Counter::NoRing, 1);
        return 0;
    };

    let in_kernel = registers::in_kernel(context.as_ptr());
    let flags = if in_kernel { SampleFlags::IN_KERNEL } else { 0 };
    let mut sample = Sample::of_current::<FIND_VMA>(context.as_ptr(), time, pid, tid, flags);
    sample.ran = times::ran(tid, time);
    count(if record::emit_with_lines(ring, &sample) { Counter::Submitted } else { Counter::RingFull }, 1);
    0
}
