//! Reads of kernel memory at offsets that user space took from the kernel's BTF.

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_probe_read_kernel};

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
    // SAFETY: the destination is 8 bytes; the helper checks the source.
    let result = unsafe {
        bpf_probe_read_kernel(
            (&raw mut value).cast(),
            size_of::<u64>() as u32,
            (base.wrapping_add(u64::from(offset))) as *const _,
        )
    };
    if result < 0 { 0 } else { value }
}
