//! The program at the exit of system calls that give a process memory without a file: `mmap`, `mremap`, `brk`. By the bytes that
//! are mapped, some calls are recorded with their stacks, in the unbiased way of [`crate::allocation`].

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::LruHashMap,
    helpers::{
        bpf_get_current_pid_tgid,
        generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, raw_tracepoint},
    programs::RawTracePointContext,
};
use collector_common::wire::{Allocation, Counter, PAGE_SIZE, SampleFlags};

use crate::{
    chosen::{self, Gap},
    current::Sample,
    filter,
    kernel::current_task,
    maps::{RINGS, count},
    record,
    registers::UserRegisters,
};

/// Where the heap of each process ended when it last asked.
#[btf_map]
static BREAKS: LruHashMap<u32, u64, 4096> = LruHashMap::new();

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
        number::MREMAP => pages(registers.argument(2)).saturating_sub(pages(registers.argument(1))),
        _ => {
            let before = BREAKS.get_ptr(pid);
            // SAFETY: the map gave a valid pointer.
            let before = before.map_or(returned, |before| unsafe { *before });
            let _ = BREAKS.insert(pid, returned, 0);
            // Another program of the process has its heap elsewhere, and begins by asking where.
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
