//! The program at tracepoints: each time one is passed is recorded, with the tracepoint's own record and, if asked for, stacks.

use core::ffi::c_void;

use aya_ebpf::helpers::{
    bpf_get_current_comm, bpf_get_current_pid_tgid,
    generated::{bpf_get_attach_cookie, bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_probe_read_kernel},
};
use collector_common::wire::{Counter, SampleFlags, SampleHeader, Tracepoint, TracepointCookie};

use crate::{
    current::Sample,
    filter,
    maps::{RINGS, TRACEPOINTS_OPEN, count},
    record::{self, Bare},
};

/// What lets perf events at the tracepoint have the occurrence, too: those of others. Aya's macro for such programs returns 0
/// whatever a program says, so that it is not used here.
const FOR_OTHERS: u32 = 1;

/// A tracepoint is passed. Minimum kernel: 6.7, where it is counted how often this is left out.
#[unsafe(no_mangle)]
#[unsafe(link_section = "tracepoint")]
pub(crate) extern "C" fn tracepoint_is_passed(context: *mut c_void) -> u32 {
    if TRACEPOINTS_OPEN.get(0) != Some(&1) {
        return FOR_OTHERS;
    }
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if !filter::wanted(pid) {
        return FOR_OTHERS;
    }
    // SAFETY: the context is the program's own; the other helpers have no preconditions.
    let (now, cookie, cpu) =
        unsafe { (bpf_ktime_get_ns(), bpf_get_attach_cookie(context), bpf_get_smp_processor_id()) };
    let cookie = TracepointCookie::unpack(cookie);
    let ring = RINGS.get(cpu);
    let is_written = if cookie.stack {
        let flags = SampleFlags::TRACEPOINT | SampleFlags::IN_KERNEL;
        let mut sample = Sample::of_current::<true>(context, now, pid, tid, flags);
        begin(&mut sample.data, cookie, tid);
        ring.is_some_and(|ring| record::emit(ring, &sample))
    } else {
        let comm = bpf_get_current_comm().unwrap_or_default();
        let mut data = [0; SampleHeader::DATA];
        begin(&mut data, cookie, tid);
        let bare = Bare { context, flags: SampleFlags::TRACEPOINT, time: now, pid, tid, comm, data };
        ring.is_some_and(|ring| record::emit_bare(ring, &bare))
    };
    count(if is_written { Counter::TracepointsRecorded } else { Counter::TracepointsLost }, 1);
    FOR_OTHERS
}

/// What the tracepoint's record begins with: the kernel has written an address over that. The rest is copied to where it
/// belongs, as a program's stack has no room for it.
#[inline(always)]
fn begin(data: &mut [u64; SampleHeader::DATA], cookie: TracepointCookie, tid: u32) {
    let told = Tracepoint::within(data);
    (told.event, told.bytes) = (cookie.event, cookie.bytes.into());
    told.record[0] = u64::from(cookie.id) | u64::from(tid) << 32;
}

/// Copies what comes behind that.
///
/// # Safety
/// `data` may be written to; `context` is that of a program at a tracepoint.
#[inline(always)]
pub(crate) unsafe fn copy(data: *mut [u64; SampleHeader::DATA], context: *const c_void) {
    const COMMON: usize = Tracepoint::COMMON;
    let told = data.cast::<Tracepoint>();
    // SAFETY: as the caller promises; there is room for so much behind what is common, and the helper checks the source.
    unsafe {
        let size = u64::from((*told).bytes).saturating_sub(COMMON as u64);
        let size = size.min((Tracepoint::MOST - COMMON) as u64);
        let to = (&raw mut (*told).record).cast::<u8>().add(COMMON);
        bpf_probe_read_kernel(to.cast(), size as u32, context.byte_add(COMMON));
    }
}
