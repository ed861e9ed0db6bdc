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
use collector_common::wire::{Config, Counter, PAGE_SIZE, SampleFlags};

use crate::{
    filter,
    kernel::{current_task, read_word},
    maps::{RINGS, config, count},
    record::{self, Sample},
    registers::{self, UserRegisters},
    stack,
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
    let mut flags = if in_kernel { SampleFlags::IN_KERNEL } else { 0 };
    let task = current_task();
    let registers = UserRegisters::of_current(task);
    let mm = read_word(task, config(|c: &Config| &raw const c.task_mm));
    let (mut sp, mut len, mut stack_end) = (0, 0, 0);
    if mm != 0 {
        sp = registers.sp();
        // Workers of io_uring have user memory and never run user code.
        if registers.ip() == 0 {
            count(Counter::NoRegisters, 1);
        } else {
            flags |= SampleFlags::USER_REGISTERS;
            if registers.is_compat() {
                flags |= SampleFlags::COMPAT;
            }
            let most = u64::from(config(|c: &Config| &raw const c.max_stack_pages)) * PAGE_SIZE as u64;
            len = if let Some(end) = stack::end::<FIND_VMA>(task, mm, tid, sp) {
                stack_end = end.address;
                if end.is_mapping {
                    flags |= SampleFlags::MAPPING_END;
                }
                end.address - sp
            } else {
                flags |= SampleFlags::BOUND_UNKNOWN;
                most
            };
            if len > most {
                flags |= SampleFlags::STACK_CUT;
                len = most;
            }
        }
    }
    record::emit(
        ring,
        &Sample { context: context.as_ptr(), time, pid, tid, flags, registers, sp, len, stack_end },
    );
    0
}
