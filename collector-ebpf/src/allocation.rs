//! Programs at the functions of memory allocators: all blocks are counted by process; by the bytes that are allocated, some
//! are recorded with their stacks, and when they are freed.
//!
//! Allocators call their own functions: what counts is the outermost call of a thread, told by the stack pointer.
//!
//! From Linux 6.13 on there is [`allocator_call`] at all functions, which has the kernel trap the return of a call only where
//! something is to be done there: half of the cost. Before, there is one program for each shape of function, and all returns
//! are trapped.
//!
//! A call that fails is told by what it returns. Where a return is left alone, the call counts when it begins: that of less than
//! [`MAY_FAIL`] bytes, which fails where a process has no memory left at all, and that of a function that throws where it fails, which
//! does not return then.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::{HashMap, LruHashMap, PerCpuHashMap, Queue},
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid,
        generated::{
            bpf_get_attach_cookie, bpf_get_func_ip, bpf_get_smp_processor_id, bpf_ktime_get_ns,
            bpf_probe_read_user,
        },
    },
    macros::{btf_map, uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use collector_common::wire::{
    Allocating, Allocation, AllocationCounts, AllocatorCall, Block, COMM_LEN, Counted, Counter, SampleFlags,
};

use crate::{
    chosen::{self, Gap},
    current::Sample,
    filter,
    kernel::{current_task, memory_of, read_user},
    maps::{RINGS, count},
    record::{self, Bare},
    registers::UserRegisters,
    returns,
};

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Asked {
    /// The stack pointer at its begin; 0 when it has returned.
    sp: u64,
    bytes: u64,
    /// Where the block's address is written to; 0 for what the function returns.
    out: u64,
    /// A block that it frees if it succeeds; 0 for none.
    old: u64,
    /// When that was allocated; 0 where nobody needs to know.
    old_since: u64,
    /// What is known beforehand: [`NOTHING`] and so on.
    known: u64,
}

const NOTHING: u64 = 0;
/// The block is to be recorded.
const CHOSEN: u64 = 1;
/// It gives no block.
const GIVES_NONE: u64 = 2;

/// By thread. Threads that end within a call are forgotten for others' sake.
#[btf_map]
static ASKED: LruHashMap<u32, Asked, 1> = LruHashMap::new();

/// Recorded blocks that are not freed, with when they were allocated. The number of entries is set before load.
#[btf_map]
static BLOCKS: HashMap<Block, u64, 1> = HashMap::new();

/// By program. The number of entries is set before load; user space takes those of programs that have ended.
#[btf_map]
static ALLOCATED: PerCpuHashMap<Allocating, AllocationCounts, 1> = PerCpuHashMap::new();

/// The programs that were entered there, for user space to know them by. As many find room as there.
#[btf_map]
static COUNTED: Queue<Counted, 1> = Queue::new();

/// Whether a call of so many bytes has succeeded, its return tells: the C library asks the kernel for as many each time
/// (`M_MMAP_THRESHOLD` of `mallopt(3)`), which is so dear that one more trap makes no difference.
const MAY_FAIL: u64 = 128 << 10;

/// Bytes of return address that a call leaves on the stack, and the return takes from it.
#[cfg(bpf_target_arch = "x86_64")]
const RETURN_ADDRESS: u64 = 8;
#[cfg(bpf_target_arch = "aarch64")]
const RETURN_ADDRESS: u64 = 0;

/// `malloc(size)` and what is like it. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks(context: ProbeContext) {
    begin(argument(&context, 0), 0, 0, NOTHING);
}

/// `calloc(count, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_many(context: ProbeContext) {
    begin(product(&context, 0), 0, 0, NOTHING);
}

/// `mi_heap_calloc(heap, count, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_many_in_heap(context: ProbeContext) {
    begin(product(&context, 1), 0, 0, NOTHING);
}

/// `aligned_alloc(alignment, size)` and what is like it. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_aligned(context: ProbeContext) {
    begin(argument(&context, 1), 0, 0, NOTHING);
}

/// `posix_memalign(out, alignment, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_pointer(context: ProbeContext) {
    begin(argument(&context, 2), argument(&context, 0), 0, NOTHING);
}

/// `realloc(block, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_other(context: ProbeContext) {
    begin(argument(&context, 1), 0, argument(&context, 0), NOTHING);
}

/// `reallocarray(block, count, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_many_others(context: ProbeContext) {
    begin(product(&context, 1), 0, argument(&context, 0), NOTHING);
}

/// `mi_heap_realloc(heap, block, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_other_in_heap(context: ProbeContext) {
    begin(argument(&context, 2), 0, argument(&context, 1), NOTHING);
}

/// `mi_heap_recalloc(heap, block, count, size)`. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn asks_for_many_others_in_heap(context: ProbeContext) {
    begin(product(&context, 2), 0, argument(&context, 1), NOTHING);
}

/// Any of those returns. Minimum kernel: 5.17.
#[uretprobe]
pub(crate) fn gets(context: RetProbeContext) {
    end::<true>(&context);
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[uretprobe]
pub(crate) fn gets_without_find_vma(context: RetProbeContext) {
    end::<false>(&context);
}

/// `free(block)` and what is like it. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn frees(context: ProbeContext) {
    forget(argument(&context, 0));
}

/// The same of one that may call another such function. Minimum kernel: 5.8.
#[uprobe]
pub(crate) fn frees_by_another(context: ProbeContext) {
    forget(argument(&context, 0));
    begin(0, 0, 0, GIVES_NONE);
}

/// The begin of a call, and its return where that was asked for; what the function is like is its [`AllocatorCall`]. Minimum
/// kernel: 6.13. Aya's macro for such programs returns 0 whatever a program says, which has the kernel trap every return.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub(crate) extern "C" fn allocator_call(context: *mut c_void) -> u32 {
    /// For the kernel to leave the return alone.
    const SKIP_RETURN: u32 = 1;
    // SAFETY: the context is the program's own.
    let (function, cookie) = unsafe { (bpf_get_func_ip(context), bpf_get_attach_cookie(context)) };
    if UserRegisters::of_current(current_task()).ip() != function {
        end::<true>(&RetProbeContext::new(context));
        return 0;
    }
    if call_begins(&ProbeContext::new(context), cookie) { 0 } else { SKIP_RETURN }
}

/// The begin of a call of a function that is as the cookie says. Says whether its return is to be seen.
#[inline(always)]
fn call_begins(context: &ProbeContext, cookie: u64) -> bool {
    let [first, second, third] = [0, 1, 2].map(|index| argument(context, index));
    let nests = cookie & AllocatorCall::NESTS != 0;
    let (bytes, out, old) = match cookie & AllocatorCall::SHAPE {
        AllocatorCall::ALLOCATES => (first, 0, 0),
        AllocatorCall::ALLOCATES_MANY => (product(context, 0), 0, 0),
        AllocatorCall::ALLOCATES_MANY_IN_HEAP => (product(context, 1), 0, 0),
        AllocatorCall::ALLOCATES_ALIGNED | AllocatorCall::ALLOCATES_IN_HEAP => (second, 0, 0),
        AllocatorCall::ALLOCATES_INTO => (third, first, 0),
        AllocatorCall::REALLOCATES => (second, 0, first),
        AllocatorCall::REALLOCATES_MANY => (product(context, 1), 0, first),
        AllocatorCall::REALLOCATES_IN_HEAP => (third, 0, second),
        AllocatorCall::REALLOCATES_MANY_IN_HEAP => (product(context, 2), 0, second),
        _ => {
            forget(first);
            return nests && begin(0, 0, 0, GIVES_NONE);
        }
    };
    // It will not return.
    if cookie & AllocatorCall::THROWS != 0 && bytes >> 20 >= cookie >> AllocatorCall::MOST_SHIFT {
        return false;
    }
    // A function that throws is never seen to return nothing, and what it throws would not get past a trapped return.
    let may_give_none = bytes >= MAY_FAIL && cookie & AllocatorCall::THROWS == 0;
    // What it frees is known when it returns, and so is what it calls, and whether it gives anything.
    if old != 0 || may_give_none || cookie & (AllocatorCall::NESTS | AllocatorCall::REFUSES) != 0 {
        return begin(bytes, out, old, NOTHING);
    }
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if !filter::wanted(pid) || is_within_call(tid) {
        return false;
    }
    if chosen::is_chosen(Gap::Allocated, bytes) {
        let sp = UserRegisters::of_current(current_task()).sp();
        let asked = Asked { sp, bytes, out, old: 0, old_since: 0, known: CHOSEN };
        let _ = ASKED.insert(tid, asked, 0);
        return true;
    }
    add(pid, |counts| {
        counts.blocks += 1;
        counts.bytes += bytes;
    });
    false
}

/// A block is freed.
#[inline(always)]
fn forget(address: u64) {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    // What a call of `realloc` frees on its way is not told twice.
    if address == 0 || !filter::wanted(pid) || is_within_call(tid) {
        return;
    }
    add(pid, |counts| counts.freed += 1);
    let block = own_block(pid, address);
    if let Some(since) = take(&block) {
        tell_freed(&block, since);
    }
}

#[inline(always)]
fn argument(context: &ProbeContext, index: usize) -> u64 {
    context.arg(index).unwrap_or(0)
}

/// A number of things and the size of each, which an argument and the one behind it tell. What is more than there can be is asked for
/// in vain: the most that there can be is, too.
#[inline(always)]
fn product(context: &ProbeContext, index: usize) -> u64 {
    const HALF: u64 = 0xffff_ffff;
    let (count, size) = (argument(context, index), argument(context, index + 1));
    let (low_of_count, high_of_count, low_of_size, high_of_size) =
        (count & HALF, count >> 32, size & HALF, size >> 32);
    // At most one of them is not 0, if there is room for the product. There are no numbers of 128 bits here.
    let middle =
        high_of_count.wrapping_mul(low_of_size).wrapping_add(low_of_count.wrapping_mul(high_of_size));
    let low = low_of_count * low_of_size;
    let product = (middle << 32).wrapping_add(low);
    let is_too_large = (high_of_count != 0 && high_of_size != 0) || middle >> 32 != 0 || product < low;
    if is_too_large { u64::MAX } else { product }
}

/// Whether a thread is at the begin of a call within another one, or has jumped from one function to another.
#[inline(always)]
fn is_within_call(tid: u32) -> bool {
    let Some(asked) = ASKED.get_ptr(tid) else { return false };
    // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
    is_within(unsafe { (*asked).sp })
}

/// The same, of the one that began at a stack pointer.
#[inline(always)]
fn is_within(begun_at: u64) -> bool {
    begun_at != 0 && UserRegisters::of_current(current_task()).sp() <= begun_at && is_still_trapped(begun_at)
}

/// Whether the return of a call is still to come. An exception or `longjmp` leaves a call without one, and a thread may end in one and
/// another have its number: then something else lies where its return address was, soon. On aarch64 that is in a register first, so that
/// the stack pointer alone tells.
#[inline(always)]
fn is_still_trapped(begun_at: u64) -> bool {
    if cfg!(bpf_target_arch = "aarch64") {
        return true;
    }
    let Some(trampoline) = returns::trampoline(own_memory()) else { return true };
    // No return can be trapped in a process that has none.
    trampoline != 0 && read_user::<u64>(begun_at) == trampoline
}

/// Remembers a call for its return. Says whether that is to be seen: not in processes that are not recorded, and not of a call within
/// another one.
#[inline(always)]
fn begin(bytes: u64, out: u64, old: u64, known_of_it: u64) -> bool {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if !filter::wanted(pid) {
        return false;
    }
    let known = ASKED.get_ptr_mut(tid);
    if let Some(known) = known {
        // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
        if is_within(unsafe { (*known).sp }) {
            return false;
        }
    }
    // It is gone from here on: another thread may be given its address before this call returns.
    let old_since = if old == 0 { 0 } else { take(&own_block(pid, old)).unwrap_or(0) };
    let sp = UserRegisters::of_current(current_task()).sp();
    let asked = Asked { sp, bytes, out, old, old_since, known: known_of_it };
    if let Some(known) = known {
        // SAFETY: as above.
        unsafe { *known = asked };
    } else {
        let _ = ASKED.insert(tid, asked, 0);
    }
    true
}

#[inline(always)]
fn end<const FIND_VMA: bool>(context: &RetProbeContext) {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    let Some(known) = ASKED.get_ptr_mut(tid) else { return };
    // SAFETY: the map gave a valid pointer; nobody but this thread writes to its entry.
    let asked = unsafe { *known };
    if asked.sp == 0 || UserRegisters::of_current(current_task()).sp() < asked.sp + RETURN_ADDRESS {
        return;
    }
    // SAFETY: as above.
    unsafe { (*known).sp = 0 };
    if asked.known == GIVES_NONE {
        return;
    }
    let address = address_of(context, asked.out);
    let old = own_block(pid, asked.old);
    if address == 0 {
        // `realloc` has failed: the block is still there. With no bytes wanted it is not, and nobody misses the difference.
        if asked.old_since != 0 && asked.bytes != 0 {
            keep(&old, asked.old_since);
        } else if asked.old != 0 && asked.bytes == 0 {
            add(pid, |counts| counts.freed += 1);
            if asked.old_since != 0 {
                tell_freed(&old, asked.old_since);
            }
        }
        return;
    }
    add(pid, |counts| {
        counts.blocks += 1;
        counts.bytes += asked.bytes;
        counts.freed += u64::from(asked.old != 0);
    });
    if asked.old_since != 0 {
        tell_freed(&old, asked.old_since);
    }
    if asked.known == CHOSEN || chosen::is_chosen(Gap::Allocated, asked.bytes) {
        record_block::<FIND_VMA>(context, own_block(pid, address), asked.bytes);
    }
}

/// The address of the block that a call gives.
#[inline(always)]
fn address_of(context: &RetProbeContext, out: u64) -> u64 {
    let returned: u64 = context.ret();
    if out == 0 {
        return returned;
    }
    if returned as u32 != 0 {
        return 0;
    }
    let mut address = 0_u64;
    // SAFETY: the destination is 8 bytes; the helper checks the source.
    unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, out as *const _) };
    address
}

/// Records a block with the stack of who asked for it.
#[inline(always)]
fn record_block<const FIND_VMA: bool>(context: &RetProbeContext, block: Block, bytes: u64) {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let is_kept = keep(&block, now);
    let allocation = Allocation { address: block.address, bytes, since: now, is_kept: u64::from(is_kept) };
    let mut sample = Sample::whole::<FIND_VMA>(context.as_ptr(), now, pid, tid, SampleFlags::ALLOCATION);
    sample.data = allocation.words();
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    if ring.is_some_and(|ring| record::emit_with_lines(ring, &sample)) {
        count(Counter::AllocationsRecorded, 1);
    } else {
        count(Counter::AllocationsLost, 1);
        let _ = BLOCKS.remove(block);
    }
}

/// Remembers a recorded block until it is freed. Says whether there is room.
#[inline(always)]
fn keep(block: &Block, since: u64) -> bool {
    let is_kept = BLOCKS.insert(block, since, 0).is_ok();
    count(Counter::BlocksFull, u64::from(!is_kept));
    is_kept
}

/// When a recorded block was allocated; it is not known any more from then on. `None` for others.
#[inline(always)]
fn take(block: &Block) -> Option<u64> {
    let since = BLOCKS.get_ptr(block)?;
    // SAFETY: the map gave a valid pointer.
    let since = unsafe { *since };
    let _ = BLOCKS.remove(block);
    Some(since)
}

#[inline(always)]
fn tell_freed(block: &Block, since: u64) {
    let id = bpf_get_current_pid_tgid();
    let freed = Allocation { address: block.address, bytes: 0, since, is_kept: 0 };
    let bare = Bare {
        context: core::ptr::null_mut(),
        flags: SampleFlags::ALLOCATION | SampleFlags::BACK,
        // SAFETY: the helper has no preconditions.
        time: unsafe { bpf_ktime_get_ns() },
        pid: (id >> 32) as u32,
        tid: id as u32,
        comm: bpf_get_current_comm().unwrap_or_default(),
        data: freed.words(),
    };
    // SAFETY: the helper has no preconditions.
    let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
    if !ring.is_some_and(|ring| record::emit_bare(ring, &bare)) {
        count(Counter::FreedLost, 1);
    }
}

/// A block of the current process.
#[inline(always)]
fn own_block(pid: u32, address: u64) -> Block {
    Block { memory: own_memory(), address, pid, reserved: 0 }
}

/// Address of the `mm_struct` of the current process.
#[inline(always)]
fn own_memory() -> u64 {
    memory_of(current_task())
}

/// Adds to what is counted of a program.
#[inline(always)]
fn add(pid: u32, change: impl Fn(&mut AllocationCounts)) {
    let allocating = Allocating { memory: own_memory(), pid, reserved: 0 };
    let counts = ALLOCATED.get_ptr_mut(allocating).or_else(|| {
        /// `BPF_NOEXIST` of `linux/bpf.h`: another thread may have come first.
        const NEW: u64 = 1;
        let comm: [u8; COMM_LEN] = bpf_get_current_comm().unwrap_or_default();
        let none = AllocationCounts { blocks: 0, bytes: 0, freed: 0, comm };
        if ALLOCATED.insert(allocating, none, NEW).is_ok() {
            // SAFETY: the helper has no preconditions.
            let _ = COUNTED.push(Counted { allocating, since: unsafe { bpf_ktime_get_ns() } }, 0);
        }
        ALLOCATED.get_ptr_mut(allocating)
    });
    match counts {
        // SAFETY: the map gave a valid pointer to this CPU's value. A thread that is given the CPU in the midst of this is not
        // counted at worst.
        Some(counts) => change(unsafe { &mut *counts }),
        None => count(Counter::AllocatedFull, 1),
    }
}
