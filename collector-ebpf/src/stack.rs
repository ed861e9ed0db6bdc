//! Where the current thread's stack ends.
//!
//! Main threads: `mm->start_stack`, the stack pointer with which the program was started; what lies above it
//! (arguments, environment) is no frame. Other threads: the end of the mapping that holds the stack pointer,
//! asked for by `bpf_find_vma` once and remembered; where the thread's own control block (`fsbase`) lies above
//! the stack in that mapping, as glibc and musl place it, the stack ends there. A mapping may have been replaced by a larger
//! one since, or end where a page has another protection: user space notices by the stacks and has it forgotten.

use core::ffi::c_void;

use aya_ebpf::helpers::generated::{bpf_find_vma, bpf_get_current_task_btf};
use collector_common::wire::{Config, Counter};

use crate::{
    kernel::read_word,
    maps::{STACK_RANGES, StackRange, config, count},
};

/// The kernel keeps at least 128 MiB between the main stack's top and other mappings (`MIN_GAP` of
/// `arch/x86/mm/mmap.c`, `mm/util.c`): an address less than half of that below the top is on the main stack.
const MAIN_STACK_SPAN: u64 = 64 << 20;

/// Where a stack ends.
pub(crate) struct End {
    /// First address after it.
    pub(crate) address: u64,
    /// Whether that is merely where its mapping ends.
    pub(crate) is_mapping: bool,
}

/// The end of the stack that holds `sp`, or `None` when it cannot be found out.
#[inline(always)]
pub(crate) fn end<const FIND_VMA: bool>(task: u64, mm: u64, tid: u32, sp: u64) -> Option<End> {
    let top = read_word(mm, config(|c: &Config| &raw const c.mm_start_stack));
    if sp <= top && top - sp < MAIN_STACK_SPAN {
        return Some(End { address: top, is_mapping: false });
    }
    let mapping_end = match STACK_RANGES.get_ptr(tid) {
        Some(range) => {
            // SAFETY: the map gave a valid pointer; an element that is replaced meanwhile reads as a mix of
            // two ranges at worst, and the range is checked.
            let range = unsafe { *range };
            if range.mm == mm && range.start <= sp && sp < range.end {
                range.end
            } else {
                ask::<FIND_VMA>(mm, tid, sp)?
            }
        }
        None => ask::<FIND_VMA>(mm, tid, sp)?,
    };
    let control_block = match config(|c: &Config| &raw const c.task_thread_pointer) {
        0 => 0,
        offset => read_word(task, offset),
    };
    Some(if sp < control_block && control_block < mapping_end {
        End { address: control_block, is_mapping: false }
    } else {
        End { address: mapping_end, is_mapping: true }
    })
}

/// Asks the kernel for the mapping that holds `sp` and remembers it.
#[inline(always)]
fn ask<const FIND_VMA: bool>(mm: u64, tid: u32, sp: u64) -> Option<u64> {
    if !FIND_VMA {
        return None;
    }
    let mut range = StackRange { mm, start: 0, end: 0 };
    count(Counter::FindVma, 1);
    // SAFETY: the task is the current one, the callback has the type the helper wants, and `range` outlives
    // the call.
    let result = unsafe {
        bpf_find_vma(bpf_get_current_task_btf(), sp, note_range as *mut c_void, (&raw mut range).cast(), 0)
    };
    if result < 0 || sp >= range.end {
        count(Counter::FindVmaBusy, 1);
        return None;
    }
    // A full or busy map only means that the question is asked again.
    let _ = STACK_RANGES.insert(tid, range, 0);
    Some(range.end)
}

/// Callback of `bpf_find_vma` (kernel 5.17; callbacks as such 5.13).
extern "C" fn note_range(_task: *mut c_void, vma: *mut c_void, range: *mut c_void) -> i64 {
    let range = range.cast::<StackRange>();
    // SAFETY: the helper passes on the pointer it was given.
    unsafe {
        (*range).start = read_word(vma as u64, config(|c: &Config| &raw const c.vma_start));
        (*range).end = read_word(vma as u64, config(|c: &Config| &raw const c.vma_end));
    }
    0
}
