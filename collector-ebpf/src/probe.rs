//! The program at probes of programs' functions, which are in all processes: says whose hits perf records.
//!
//! Without it perf's events would be those of chosen threads, of which the kernel loses hits where these make processes: parent and child
//! exchange their events when one takes the other's place on a CPU (`perf_event_context_sched_out`), while the probe goes by the process that
//! an event was opened for (`uprobe_perf_filter`).

use core::ffi::c_void;

use aya_ebpf::helpers::bpf_get_current_pid_tgid;

use crate::filter;

/// A function was called, or has returned: 1 where it is to be recorded. Minimum kernel: 4.17. Aya's macro for such programs returns 0 whatever
/// a program says.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub(crate) extern "C" fn probe_is_wanted(_: *mut c_void) -> u32 {
    filter::wanted((bpf_get_current_pid_tgid() >> 32) as u32).into()
}
