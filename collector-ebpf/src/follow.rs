//! Children of followed processes are followed from the moment they are forked, in the kernel, so that none
//! of their samples is missed, and the recorded command from its program's start; until nothing of them is left.

use aya_ebpf::{macros::raw_tracepoint, programs::RawTracePointContext};
use aya_log_ebpf::debug;
use collector_common::wire::{Config, Counter, NAMED_PROCESS};

use crate::{
    kernel::{process_of, read_word},
    maps::{PROCESSES, config, count},
};

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`. Minimum kernel: 4.17.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn follow_fork(context: RawTracePointContext) -> i32 {
    let parent: u64 = context.arg(0);
    let child: u64 = context.arg(1);
    let (parent, pid) = (process_of(parent), process_of(child));
    if pid == parent {
        return 0;
    }
    if PROCESSES.get_ptr(parent).is_some() {
        if PROCESSES.insert(pid, signal_of(child), 0).is_err() {
            count(Counter::FollowFailed, 1);
            debug!(&context, "process {} is not followed: the map of processes is full", pid);
        }
    } else if PROCESSES.get_ptr(pid).is_some() {
        // Of the process that had the pid before.
        let _ = PROCESSES.remove(pid);
    }
    0
}

/// `task_rename(struct task_struct *task, const char *comm)`: the first name that the recorded command gets is its program's,
/// before that is loaded. Until then it runs our code. Minimum kernel: 4.17.
#[raw_tracepoint(tracepoint = "task_rename")]
pub(crate) fn follow_command(context: RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    let pid = process_of(task);
    if pid == config(|c: &Config| &raw const c.command) && PROCESSES.insert(pid, signal_of(task), 0).is_err()
    {
        count(Counter::FollowFailed, 1);
    }
    0
}

/// `sched_process_free(struct task_struct *task)`: a thread is waited for and gone. Minimum kernel: 4.17.
///
/// Its pid may be another process's by now. `sched_process_exit` would come before files are closed, which takes
/// time that is to be sampled; the exits in the sideband are not all ends of processes.
#[raw_tracepoint(tracepoint = "sched_process_free")]
pub(crate) fn forget_process(context: RawTracePointContext) -> i32 {
    let task: u64 = context.arg(0);
    // The main thread goes last, unless another one executed a program and took its place.
    if read_word(task, config(|c: &Config| &raw const c.task_group_leader)) != task {
        return 0;
    }
    let pid = process_of(task);
    if let Some(followed) = PROCESSES.get_ptr(pid) {
        // SAFETY: the map gave a valid pointer; a value that is replaced meanwhile is one or the other.
        let followed = unsafe { followed.read_volatile() };
        if followed == signal_of(task) || followed == NAMED_PROCESS {
            let _ = PROCESSES.remove(pid);
        }
    }
    0
}

#[inline(always)]
fn signal_of(task: u64) -> u64 {
    read_word(task, config(|c: &Config| &raw const c.task_signal))
}
