//! Reads of kernel memory at offsets that user space took from the kernel's BTF, and of numbers in user memory.

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_probe_read_kernel, bpf_probe_read_user};
use collector_common::wire::{COMM_LEN, Config};

use crate::maps::config;

/// The current `task_struct`'s address.
#[inline(always)]
pub(crate) fn current_task() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_get_current_task() }
}

/// The word at `base + offset`, or 0 when it cannot be read.
#[inline(always)]
pub(crate) fn read_word(base: u64, offset: u32) -> u64 {
    let mut value = 0_u64;
    // SAFETY: the destination is 8 bytes; the helper checks the source, and zeroes the destination where it cannot be read.
    unsafe {
        bpf_probe_read_kernel(
            (&raw mut value).cast(),
            size_of::<u64>() as u32,
            (base.wrapping_add(u64::from(offset))) as *const _,
        );
    }
    value
}

/// Address of the `mm_struct` of the memory of the thread whose `task_struct` is at `task`: another one when its process executes
/// another program. 0 of a thread of the kernel.
#[inline(always)]
pub(crate) fn memory_of(task: u64) -> u64 {
    read_word(task, config(|c: &Config| &raw const c.task_mm))
}

/// A number in the current program's memory, or 0 where it cannot be read.
#[inline(always)]
pub(crate) fn read_user<T: Copy + Default>(address: u64) -> T {
    let mut value = T::default();
    // SAFETY: the destination is as long as is said; the helper checks the source, and zeroes the destination where it cannot
    // be read.
    unsafe {
        bpf_probe_read_user((&raw mut value).cast(), size_of::<T>() as u32, address as *const _);
    }
    value
}

/// The name of the thread whose `task_struct` is at `task`, NUL-padded; empty when it cannot be read.
#[inline(always)]
pub(crate) fn name_of(task: u64) -> [u8; COMM_LEN] {
    let mut name = [0_u8; COMM_LEN];
    let offset = config(|c: &Config| &raw const c.task_comm);
    // SAFETY: the destination is as long as is said; the helper checks the source, and zeroes the destination where it
    // cannot be read.
    unsafe {
        bpf_probe_read_kernel(
            name.as_mut_ptr().cast(),
            COMM_LEN as u32,
            (task.wrapping_add(u64::from(offset))) as *const _,
        );
    }
    name
}

/// The id of the thread whose `task_struct` is at `task`.
#[inline(always)]
pub(crate) fn thread_of(task: u64) -> u32 {
    read_word(task, config(|c: &Config| &raw const c.task_pid)) as u32
}

/// The id of its process.
#[inline(always)]
pub(crate) fn process_of(task: u64) -> u32 {
    read_word(task, config(|c: &Config| &raw const c.task_tgid)) as u32
}
