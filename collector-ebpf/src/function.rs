//! The programs at many functions of the kernel at once, and at their returns: each call is recorded, with what registers hold and its
//! stacks.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_attach_cookie, bpf_get_func_ip, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{kprobe, kretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use collector_common::wire::{Counter, FunctionCall, SampleFlags};

use crate::{
    current::Sample,
    filter,
    maps::{RINGS, count},
    record,
};

/// Arguments that registers hold.
#[cfg(bpf_target_arch = "x86_64")]
const ARGUMENTS: usize = 6;
#[cfg(bpf_target_arch = "aarch64")]
const ARGUMENTS: usize = 8;

/// A function is called. Minimum kernel: 5.18.
#[kprobe]
pub(crate) fn function_is_called(context: ProbeContext) -> u32 {
    tell(context.as_ptr(), |call| {
        for (index, value) in call.values.iter_mut().enumerate().take(ARGUMENTS) {
            *value = context.arg(index).unwrap_or(0);
        }
    })
}

/// A function returns. Minimum kernel: 5.18.
#[kretprobe]
pub(crate) fn function_returns(context: RetProbeContext) -> u32 {
    tell(context.as_ptr(), |call| call.values[0] = context.ret())
}

#[inline(always)]
fn tell(context: *mut c_void, add_values: impl FnOnce(&mut FunctionCall)) -> u32 {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if !filter::wanted(pid) {
        return 0;
    }
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let flags = SampleFlags::FUNCTION | SampleFlags::IN_KERNEL;
    let mut sample = Sample::of_current::<true>(context, now, pid, tid, flags);
    // In place: a program's stack has no room for it twice.
    let call = FunctionCall::within(&mut sample.data);
    // SAFETY: the context is the program's own.
    (call.function, call.event) =
        unsafe { (bpf_get_func_ip(context), bpf_get_attach_cookie(context) as u32) };
    call.tid = tid;
    add_values(call);
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    let is_written = ring.is_some_and(|ring| record::emit_with_lines(ring, &sample));
    count(if is_written { Counter::FunctionsRecorded } else { Counter::FunctionsLost }, 1);
    0
}
