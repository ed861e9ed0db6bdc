//! Children of followed processes are followed from the moment they are forked, in the kernel, so that none
//! of their samples is missed.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use aya_log_ebpf::debug;
use collector_common::wire::{Config, Counter};

use crate::{
    kernel::read_word,
    maps::{PROCESSES, config, count},
};

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`. Minimum kernel: 4.17.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn follow_fork(context: RawTracePointContext) -> i32 {
    let tgid = config(|c: &Config| &raw const c.task_tgid);
    let parent: u64 = context.arg(0);
    let child: u64 = context.arg(1);
    let parent = read_word(parent, tgid) as u32;
    let child = read_word(child, tgid) as u32;
    if child != parent && PROCESSES.get_ptr(parent).is_some() && PROCESSES.insert(child, 1, 0).is_err() {
        count(Counter::FollowFailed, 1);
        debug!(&context, "process {} is not followed: the map of processes is full", child);
    }
    0
}
