//! The program at the exit of system calls that give a process memory without a file: `mmap`, `mremap`, `brk`. By the bytes that
//! are mapped, some calls are recorded with their stacks, in the unbiased way of [`crate::allocation`]. Others tell where heaps begin.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::LruHashMap,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_find_vma, bpf_get_current_task_btf, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{Allocation, Counter, GrowthOffsets, PAGE_SIZE, SampleFlags};

use crate::{
    chosen::{self, Gap},
    current::Sample,
    filter,
    kernel::{current_task, memory_of, read_word},
    maps::{RINGS, count},
    record,
    registers::UserRegisters,
};

/// Offsets, patched before load.
#[unsafe(no_mangle)]
static GROWTH_OFFSETS: GrowthOffsets = GrowthOffsets::NONE;

/// Where each heap ended when it was made or last asked for, by the address of the `mm_struct`: a heap is that of all processes that
/// share their memory, and of one program. An address that is given again is of a memory that is made again, and told then.
#[btf_map]
static BREAKS: LruHashMap<u64, u64, 16384> = LruHashMap::new();

/// Numbers of system calls: `arch/x86/entry/syscalls/syscall_64.tbl`, `include/uapi/asm-generic/unistd.h`.
#[cfg(bpf_target_arch = "x86_64")]
mod number {
    pub(super) const MMAP: i32 = 9;
    pub(super) const BRK: i32 = 12;
    pub(super) const MREMAP: i32 = 25;
}
#[cfg(bpf_target_arch = "aarch64")]
mod number {
    pub(super) const MMAP: i32 = 222;
    pub(super) const BRK: i32 = 214;
    pub(super) const MREMAP: i32 = 216;
}

/// `MAP_ANONYMOUS` of `include/uapi/asm-generic/mman-common.h`.
const ANONYMOUS: u64 = 0x20;

/// `MAX_ERRNO` of `include/linux/err.h`.
const MAX_ERRNO: u64 = 4095;

/// `VM_READ`, `VM_WRITE` and `VM_EXEC` of `include/linux/mm.h`.
const MAY_TOUCH: u64 = 7;

#[inline(always)]
fn at(base: u64, offset: impl Fn(&GrowthOffsets) -> *const u32) -> u64 {
    // SAFETY: `offset` returns a pointer to a field of the static it was given; volatile, because the value is
    // patched before load and must not be folded into the code.
    read_word(base, unsafe { core::ptr::read_volatile(offset(&GROWTH_OFFSETS)) })
}

/// `sched_process_fork(struct task_struct *parent, struct task_struct *child)`: a child that has a memory of its own has a copy of
/// its parent's heap. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub(crate) fn heap_is_copied(context: RawTracePointContext) -> i32 {
    let [parent, child] = [context.arg(0), context.arg(1)].map(memory_of);
    if child != parent {
        note_heap(child);
    }
    0
}

/// `sched_process_exec(struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)`, when the new program is in memory.
/// Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub(crate) fn heap_is_made(context: RawTracePointContext) -> i32 {
    note_heap(memory_of(context.arg(0)));
    0
}

/// A memory is new.
#[inline(always)]
fn note_heap(memory: u64) {
    if memory != 0 {
        let _ = BREAKS.insert(memory, at(memory, |o| &raw const o.heap_end), 0);
    }
}

/// `sys_exit(struct pt_regs *regs, long ret)`. Minimum kernel: 5.17.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn memory_grows(context: RawTracePointContext) -> i32 {
    grow::<true>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[raw_tracepoint(tracepoint = "sys_exit")]
pub(crate) fn memory_grows_without_find_vma(context: RawTracePointContext) -> i32 {
    grow::<false>(&context)
}

#[inline(always)]
fn grow<const FIND_VMA: bool>(context: &RawTracePointContext) -> i32 {
    let registers = UserRegisters::of_current(current_task());
    let call = registers.call();
    if call != number::MMAP && call != number::BRK && call != number::MREMAP {
        return 0;
    }
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    let returned: u64 = context.arg(1);
    if returned >= MAX_ERRNO.wrapping_neg() || registers.is_compat() || !filter::wanted(pid) {
        return 0;
    }
    let pages = |bytes: u64| bytes.wrapping_add(PAGE_SIZE as u64 - 1) & !(PAGE_SIZE as u64 - 1);
    let bytes = match call {
        number::MMAP => {
            let (protection, flags) = (registers.argument(2), registers.argument(3));
            // What nobody may touch is set aside, and no memory yet.
            if flags & ANONYMOUS == 0 || protection == 0 {
                return 0;
            }
            pages(registers.argument(1))
        }
        number::MREMAP => {
            let more = pages(registers.argument(2)).saturating_sub(pages(registers.argument(1)));
            if more == 0 || !is_memory::<FIND_VMA>(returned) {
                return 0;
            }
            more
        }
        _ => {
            let memory = memory_of(current_task());
            let before = BREAKS.get_ptr(memory);
            // SAFETY: the map gave a valid pointer.
            let before = before.map_or(returned, |before| unsafe { *before });
            let _ = BREAKS.insert(memory, returned, 0);
            // What only asks is told where the heap ends, too.
            if registers.argument(0) == returned { returned.saturating_sub(before) } else { 0 }
        }
    };
    if bytes == 0 || !chosen::is_chosen(Gap::Mapped, bytes) {
        return 0;
    }
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let mut sample = Sample::of_current::<FIND_VMA>(context.as_ptr(), now, pid, tid, SampleFlags::MAPPED);
    sample.data = Allocation { address: returned, bytes, since: now, is_kept: 0 }.words();
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    let is_written = ring.is_some_and(|ring| record::emit(ring, &sample));
    count(if is_written { Counter::MappedRecorded } else { Counter::MappedLost }, 1);
    0
}

/// What a mapping is like.
#[repr(C)]
struct Mapping {
    /// Address of the kernel's `struct file`; 0 where there is none.
    file: u64,
    flags: u64,
}

/// Whether a mapping of the current process has no file and may be touched. Where the kernel does not tell, it is taken for one.
#[inline(always)]
fn is_memory<const FIND_VMA: bool>(address: u64) -> bool {
    if !FIND_VMA {
        return true;
    }
    let mut mapping = Mapping { file: 0, flags: MAY_TOUCH };
    // SAFETY: the task is the current one, the callback has the type the helper wants, and `mapping` outlives the call.
    unsafe {
        let to = (&raw mut mapping).cast();
        bpf_find_vma(bpf_get_current_task_btf(), address, note_mapping as *mut c_void, to, 0);
    }
    mapping.file == 0 && mapping.flags & MAY_TOUCH != 0
}

/// Callback of `bpf_find_vma` (kernel 5.17; callbacks as such 5.13).
extern "C" fn note_mapping(_task: *mut c_void, vma: *mut c_void, mapping: *mut c_void) -> i64 {
    let mapping = mapping.cast::<Mapping>();
    // SAFETY: the helper passes on the pointer it was given.
    unsafe {
        (*mapping).file = at(vma as u64, |o| &raw const o.mapping_file);
        (*mapping).flags = at(vma as u64, |o| &raw const o.mapping_flags);
    }
    0
}
