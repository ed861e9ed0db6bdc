//! Programs at the block layer's tracepoints: how long devices take for requests, by device and operation.
//!
//! All requests are counted. Stacks are those of the thread that issues a request, and taken before it is known how long the
//! request takes: with a chance of how long it is expected to, as a part of the period. One that turns out to take a period or
//! longer stands for itself alone, and is told even where the stacks were not taken.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid,
        generated::{bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use collector_common::wire::{
    BLOCK_SIZES, BLOCK_TIMES, BlockCounts, BlockExpected, BlockKey, BlockRequest, CHANCES, Config, Counter,
    SampleFlags,
};

use crate::{
    current::Sample,
    filter,
    kernel::read_word,
    maps::{BLOCK_COUNTS, BLOCK_EXPECTED, BLOCK_REQUESTS, RINGS, config, count},
    record::{self, Bare},
};

/// `REQ_OP_MASK` of `include/linux/blk_types.h`.
const OPERATION: u32 = 0xff;

/// `MINORBITS` of `include/linux/kdev_t.h`.
const MINOR_BITS: u32 = 20;

/// `block_rq_issue(struct request *rq)`, in the context of the thread that issues it. Minimum kernel: 5.17.
#[raw_tracepoint(tracepoint = "block_rq_issue")]
pub(crate) fn block_issue(context: RawTracePointContext) -> i32 {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if !filter::wanted(pid) {
        return 0;
    }
    let address: u64 = context.arg(0);
    // SAFETY: the helper has no preconditions.
    let since = unsafe { bpf_ktime_get_ns() };
    let bytes = u64::from(bytes_of(address));
    let key = key_of(address);
    let mut request =
        BlockRequest { since, bytes, key, chance: 0, pid, tid, is_lost: 0, comm: [0; 16], reserved: [0; 3] };
    request.comm = bpf_get_current_comm().unwrap_or_default();
    let chance = chance(&key);
    // SAFETY: the helper has no preconditions.
    if unsafe { bpf_get_prandom_u32() } % CHANCES < chance {
        request.chance = chance;
        let flags = SampleFlags::BLOCK | SampleFlags::IN_KERNEL;
        let mut sample = Sample::of_current::<true>(context.as_ptr(), since, pid, tid, flags);
        sample.data = request.words();
        // SAFETY: the helper has no preconditions.
        let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
        if !ring.is_some_and(|ring| record::emit(ring, &sample)) {
            request.is_lost = 1;
            count(Counter::BlockLost, 1);
        }
    }
    if BLOCK_REQUESTS.insert(address, request, 0).is_err() {
        count(Counter::BlockFull, 1);
    }
    0
}

/// `block_rq_complete(struct request *rq, blk_status_t error, unsigned int nr_bytes)`, often in an interrupt. Minimum kernel:
/// 5.17.
#[raw_tracepoint(tracepoint = "block_rq_complete")]
pub(crate) fn block_complete(context: RawTracePointContext) -> i32 {
    let address: u64 = context.arg(0);
    let done: u64 = context.arg(2);
    // The rest of it comes later.
    if (done as u32) < bytes_of(address) {
        return 0;
    }
    let Some(request) = BLOCK_REQUESTS.get_ptr(address) else { return 0 };
    // SAFETY: the map gave a valid pointer, and nobody else has to do with the request any more.
    let request = unsafe { *request };
    let _ = BLOCK_REQUESTS.remove(address);
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let took = now.saturating_sub(request.since);
    add(&request, took);
    expect(&request.key, took);
    let is_told = request.chance != 0 || took >= config(|c: &Config| &raw const c.off_cpu_period);
    if is_told && request.is_lost == 0 {
        let BlockRequest { pid, tid, comm, .. } = request;
        let flags = SampleFlags::BLOCK | SampleFlags::BACK;
        let context = core::ptr::null_mut();
        let bare = Bare { context, flags, time: now, pid, tid, comm, data: request.words() };
        // SAFETY: the helper has no preconditions.
        let ring = RINGS.get(unsafe { bpf_get_smp_processor_id() } as u32);
        let is_written = ring.is_some_and(|ring| record::emit_bare(ring, &bare));
        count(if is_written { Counter::BlockTold } else { Counter::BlockLost }, 1);
    }
    0
}

/// Bytes of a request that are to be transferred still.
#[inline(always)]
fn bytes_of(request: u64) -> u32 {
    read_word(request, config(|c: &Config| &raw const c.block.bytes)) as u32
}

#[inline(always)]
fn key_of(request: u64) -> BlockKey {
    let flags = read_word(request, config(|c: &Config| &raw const c.block.flags)) as u32;
    let queue = read_word(request, config(|c: &Config| &raw const c.block.queue));
    let disk = read_word(queue, config(|c: &Config| &raw const c.block.disk));
    let major = read_word(disk, config(|c: &Config| &raw const c.block.major)) as u32;
    let minor = read_word(disk, config(|c: &Config| &raw const c.block.minor)) as u32;
    BlockKey { device: major << MINOR_BITS | minor, operation: flags & OPERATION }
}

/// With which chance stacks are taken, out of [`CHANCES`]: those of the first request are.
#[inline(always)]
fn chance(key: &BlockKey) -> u32 {
    let Some(expected) = BLOCK_EXPECTED.get_ptr(key) else { return CHANCES };
    // SAFETY: the map gave a valid pointer, to a word that is written as one.
    let expected = unsafe { *expected };
    expected.chance(config(|c: &Config| &raw const c.off_cpu_period))
}

/// Remembers how long a request took.
#[inline(always)]
fn expect(key: &BlockKey, took: u64) {
    let period = config(|c: &Config| &raw const c.off_cpu_period);
    if let Some(known) = BLOCK_EXPECTED.get_ptr_mut(key) {
        // SAFETY: the map gave a valid pointer, to a word that is written as one. Of two requests that end at once on two CPUs one may not
        // be remembered, which has nothing to do with how they were told.
        unsafe { *known = (*known).after(took, period) };
    } else {
        let _ = BLOCK_EXPECTED.insert(key, BlockExpected::first(took, period), 0);
    }
}

/// Counts a request.
#[inline(always)]
fn add(request: &BlockRequest, took: u64) {
    /// As a device's operation is met for the first time.
    #[unsafe(no_mangle)]
    static NO_REQUESTS: BlockCounts =
        BlockCounts { times: [0; BLOCK_TIMES], sizes: [0; BLOCK_SIZES], ns: 0, bytes: 0 };
    let counts = BLOCK_COUNTS.get_ptr_mut(request.key).or_else(|| {
        // By its place: there is no room for another one on the program's stack.
        let none: &BlockCounts = &NO_REQUESTS;
        let _ = BLOCK_COUNTS.insert(request.key, none, 0);
        BLOCK_COUNTS.get_ptr_mut(request.key)
    });
    let Some(counts) = counts else {
        count(Counter::BlockFull, 1);
        return;
    };
    let time = (u64::BITS - (took / 1000).leading_zeros()) as usize;
    let size = (u64::BITS - (request.bytes / 1024).leading_zeros()) as usize;
    // SAFETY: the map gave a valid pointer to this CPU's value. A request that an interrupt completes in the midst of this is
    // not counted at worst.
    unsafe {
        (*counts).times[time.min(BLOCK_TIMES - 1)] += 1;
        (*counts).sizes[size.min(BLOCK_SIZES - 1)] += 1;
        (*counts).ns += took;
        (*counts).bytes += request.bytes;
    }
}
