//! Programs at the kernel's counters of page faults, which run at each fault, once it is answered. All faults of the chosen threads
//! are counted, by the name of their process. Those that waited for a disk are recorded each; of others so many that it does not
//! matter to the machine how many there are, by an unbiased choice.
//!
//! Each CPU takes its faults in blocks of a power of two, and records one of each block, which stands for all of it. Which one
//! that is, is drawn when the block begins, and how large the block is, is known before that: by how many faults there were in
//! the time before, and by how much waits in the ring already. So each fault is recorded with the chance that it is weighed by,
//! and the sum over whole blocks is exact. A block that is given up, as the time is over in which it was large enough, is given up
//! for faults that there were or were not, and never for what was drawn.

use aya_ebpf::{
    EbpfContext as _,
    btf_maps::{PerCpuArray, PerCpuHashMap},
    helpers::{
        bpf_get_current_comm, bpf_get_current_pid_tgid,
        generated::{bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns},
    },
    macros::{btf_map, perf_event},
    programs::PerfEventContext,
};
use collector_common::wire::{COMM_LEN, Config, Counter, Fault, FaultCounts, SampleFlags};

use crate::{
    current::Sample,
    filter,
    kernel::{current_task, name_of, read_word},
    maps::{RINGS, Ring, config, count},
    record, registers,
};

/// By the name of the process. The number of entries is set before load.
#[btf_map]
static FAULTS: PerCpuHashMap<[u8; COMM_LEN], FaultCounts, 1> = PerCpuHashMap::new();

/// What a CPU's choice of faults goes by.
#[repr(C)]
#[derive(Clone, Copy)]
struct Choice {
    /// When the present span of time began, in nanoseconds.
    since: u64,
    /// Faults in it.
    met: u64,
    /// Faults that the present block still has room for.
    left: u64,
    /// How many are left behind the one that is recorded.
    behind: u64,
    /// The size of the present block, as a power of two.
    size: u64,
    /// The size that blocks have by the number of faults alone, as a power of two.
    shift: u64,
}

/// Written by these programs alone, of which the kernel runs one at a time on a CPU.
#[btf_map]
static CHOICES: PerCpuArray<Choice, 1> = PerCpuArray::new();

/// A span of time: 10 ms.
const SPAN: u64 = 10_000_000;

/// So many faults of a span are recorded, as far as the span before it tells what comes.
const RECORDED: u64 = 64;

/// So many times the size of blocks, faults in one span, make blocks twice as large; while there are fewer, each is recorded.
const FEW: u64 = 256;

/// The largest blocks, as a power of two.
const LARGEST: u64 = 16;

/// `PERF_COUNT_SW_PAGE_FAULTS_MIN`. Minimum kernel: 5.17.
#[perf_event]
pub(crate) fn minor_fault(context: PerfEventContext) -> u32 {
    take::<true, false>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[perf_event]
pub(crate) fn minor_fault_without_find_vma(context: PerfEventContext) -> u32 {
    take::<false, false>(&context)
}

/// `PERF_COUNT_SW_PAGE_FAULTS_MAJ`. Minimum kernel: 5.17.
#[perf_event]
pub(crate) fn major_fault(context: PerfEventContext) -> u32 {
    take::<true, true>(&context)
}

/// The same on kernels without `bpf_find_vma`. Minimum kernel: 5.8.
#[perf_event]
pub(crate) fn major_fault_without_find_vma(context: PerfEventContext) -> u32 {
    take::<false, true>(&context)
}

/// The returned 0 keeps the kernel from writing a record of its own.
#[inline(always)]
fn take<const FIND_VMA: bool, const IS_MAJOR: bool>(context: &PerfEventContext) -> u32 {
    count(Counter::FaultsMet, 1);
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if tid == 0 || !filter::wanted(pid) {
        return 0;
    }
    count_by_name::<IS_MAJOR>(pid, tid);
    // SAFETY: the helpers have no preconditions.
    let (now, cpu) = unsafe { (bpf_ktime_get_ns(), bpf_get_smp_processor_id() as u32) };
    let ring = RINGS.get(cpu);
    let stands_for = if IS_MAJOR { 1 } else { stands_for(ring, now) };
    if stands_for == 0 {
        return 0;
    }
    let in_kernel = registers::in_kernel(context.as_ptr());
    let flags = SampleFlags::FAULT | if in_kernel { SampleFlags::IN_KERNEL } else { 0 };
    let mut sample = Sample::whole::<FIND_VMA>(context.as_ptr(), now, pid, tid, flags);
    sample.data = Fault { stands_for, is_major: u64::from(IS_MAJOR) }.words();
    let is_written = ring.is_some_and(|ring| record::emit_with_lines(ring, &sample));
    count(if is_written { Counter::FaultsRecorded } else { Counter::FaultsLost }, 1);
    0
}

/// How many faults a record of this one would stand for; 0 where there is to be none.
#[inline(always)]
fn stands_for(ring: Option<&Ring>, now: u64) -> u64 {
    let Some(choice) = CHOICES.get_ptr_mut(0) else { return 0 };
    // SAFETY: the map gave a valid pointer to this CPU's value, which nothing else writes to meanwhile.
    let choice = unsafe { &mut *choice };
    let elapsed = now.wrapping_sub(choice.since);
    if elapsed >= SPAN {
        let in_one_span = choice.met * SPAN / elapsed;
        let shift = if in_one_span < FEW { 0 } else { u64::from((in_one_span / RECORDED).ilog2()) + 1 };
        let shift = shift.min(LARGEST);
        if shift != choice.shift {
            choice.left = 0;
        }
        (choice.since, choice.met, choice.shift) = (now, 0, shift);
    }
    choice.met += 1;
    if choice.left == 0 {
        if choice.shift < LARGEST && choice.met > FEW << choice.shift {
            choice.shift += 1;
        }
        choice.size = (choice.shift + ring.map_or(0, more_by_ring)).min(LARGEST);
        choice.left = 1 << choice.size;
        // SAFETY: the helper has no preconditions.
        choice.behind = u64::from(unsafe { bpf_get_prandom_u32() } as u32) & (choice.left - 1);
    }
    choice.left -= 1;
    if choice.left == choice.behind { 1 << choice.size } else { 0 }
}

/// How much larger blocks are, as a power of two, since the ring is half full, or more.
#[inline(always)]
fn more_by_ring(ring: &Ring) -> u64 {
    let high_water = config(|c: &Config| &raw const c.high_water);
    // Eighths of the ring.
    match record::waiting(ring) * 2 / high_water.max(1) {
        0..=3 => 0,
        4..=5 => 3,
        6 => 6,
        _ => 9,
    }
}

#[inline(always)]
fn count_by_name<const IS_MAJOR: bool>(pid: u32, tid: u32) {
    /// As a name is met for the first time.
    const NONE: FaultCounts = FaultCounts { minor: 0, major: 0 };
    let name = if pid == tid {
        bpf_get_current_comm().unwrap_or_default()
    } else {
        name_of(read_word(current_task(), config(|c: &Config| &raw const c.task_group_leader)))
    };
    let counts = FAULTS.get_ptr_mut(name).or_else(|| {
        let _ = FAULTS.insert(name, NONE, 0);
        FAULTS.get_ptr_mut(name)
    });
    let Some(counts) = counts else {
        count(Counter::FaultNamesFull, 1);
        return;
    };
    // SAFETY: the map gave a valid pointer to this CPU's value, which nothing else writes to meanwhile.
    let counts = unsafe { &mut *counts };
    if IS_MAJOR {
        counts.major += 1;
    } else {
        counts.minor += 1;
    }
}
