//! Whether the current thread does something itself, or an interrupt does that on top of it: by what the kernel counts of each CPU
//! (`preempt_count()` of `include/linux/preempt.h`).

use collector_common::wire::{Config, PreemptCountOffsets};

use crate::{
    kernel::{current_task, memory_of, read_word},
    maps::config,
    registers::UserRegisters,
};

/// `SOFTIRQ_OFFSET`: what interrupts left to do is being done.
const SOFT: u32 = 1 << 8;
/// `HARDIRQ_MASK` and `NMI_MASK`.
const HARD: u32 = 0xff << 16;

/// What runs on this CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Running {
    /// The current thread, as far as is known.
    Thread,
    /// What interrupts left to do, in a system call of the current thread. It may have left that itself: what it sends to
    /// another thread of the machine is received so, before the call returns.
    LeftInCall,
    /// An interrupt, or what interrupts left to do.
    Interrupt,
}

/// What runs on this CPU.
#[inline(always)]
pub(crate) fn running() -> Running {
    let task = current_task();
    let count = preempt_count(task);
    if count & HARD != 0 {
        return Running::Interrupt;
    }
    if count & SOFT == 0 {
        return Running::Thread;
    }
    // Threads of the kernel are in no system call, and have no registers that say so.
    let is_in_call = memory_of(task) != 0 && UserRegisters::of_current(task).call() >= 0;
    if is_in_call { Running::LeftInCall } else { Running::Interrupt }
}

/// The count of this CPU; 0 where it is not known.
#[inline(always)]
fn preempt_count(task: u64) -> u32 {
    let PreemptCountOffsets { count, task_queue, queue_cpu, .. } =
        config(|c: &Config| &raw const c.preempt_count);
    if count == 0 {
        return 0;
    }
    let base = if task_queue == 0 { task } else { read_word(read_word(task, task_queue), queue_cpu) };
    read_word(base.wrapping_add_signed(i64::from(count)), 0) as u32
}
