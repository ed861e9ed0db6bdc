//! The maps, the settings and the counters.

use aya_ebpf::{
    btf_maps::{Array, ArrayOfMaps, CgroupArray, HashMap, LruHashMap, PerCpuArray, PerCpuHashMap, RingBuf},
    macros::btf_map,
};
use collector_common::wire::{
    BlockCounts, BlockExpected, BlockKey, BlockOffsets, BlockRequest, COMM_LEN, Config, Counter, KernelLock,
    KernelLockCounts, KernelLockKey, LockFlags, OuterPlaces, PreemptCountOffsets, ReturnOffsets, RunQueue,
    ThreadTimes,
};

/// Settings, patched before load. Read with [`config`].
#[unsafe(no_mangle)]
static CONFIG: Config = Config {
    targets: 0,
    max_stack_pages: 0,
    high_water: 0,
    clock_period: 1,
    off_cpu_period: 1,
    shortest_off_cpu: 0,
    shortest_lock_wait: 0,
    allocation_period: 0,
    mapped_period: 0,
    times: 0,
    task_pid: 0,
    task_comm: 0,
    task_state: 0,
    task_mm: 0,
    task_tgid: 0,
    task_group_leader: 0,
    task_signal: 0,
    task_stack: 0,
    task_thread_pointer: 0,
    mm_start_stack: 0,
    stack_registers: 0,
    has_task_pt_regs: 0,
    vma_end: 0,
    vma_start: 0,
    command: 0,
    comm: [0; 16],
    block: BlockOffsets { queue: 0, flags: 0, bytes: 0, disk: 0, major: 0, minor: 0 },
    returns: ReturnOffsets {
        probed: 0,
        innermost: 0,
        instruction: 0,
        executed_at: 0,
        stack: 0,
        address: 0,
        next: 0,
        area: 0,
        trampoline: 0,
        reserved: 0,
    },
    preempt_count: PreemptCountOffsets { count: 0, task_queue: 0, queue_cpu: 0, reserved: 0 },
};

/// The settings. Reads one field through `get`, which the verifier knows the value of.
#[inline(always)]
pub(crate) fn config<T>(get: impl Fn(&Config) -> *const T) -> T {
    // SAFETY: `get` returns a pointer to a field of the static it was given; volatile, because the value is
    // patched before load and must not be folded into the code.
    unsafe { core::ptr::read_volatile(get(&CONFIG)) }
}

/// 0, of which only user space could make something else.
#[unsafe(no_mangle)]
static mut ZERO: u64 = 0;

/// 0, which neither the compiler nor the verifier knows. What is combined with it is any value to the verifier, which then
/// follows what comes after once and not for each of the values.
#[inline(always)]
pub(crate) fn zero() -> u64 {
    // SAFETY: nothing writes to it.
    unsafe { core::ptr::read_volatile(&raw const ZERO) }
}

/// A ring per CPU; sizes are chosen when the rings are made.
pub(crate) type Ring = RingBuf<u8, 4096>;

/// By CPU number. The number of entries is set before load.
#[btf_map]
pub(crate) static RINGS: ArrayOfMaps<Ring, 1> = ArrayOfMaps::new();

/// [`Counter`]s per CPU.
#[btf_map]
static COUNTERS: PerCpuArray<u64, { Counter::COUNT as usize }> = PerCpuArray::new();

/// Followed processes by tgid, each with its `signal_struct` or [`NAMED_PROCESS`](collector_common::wire::NAMED_PROCESS).
#[btf_map]
pub(crate) static PROCESSES: HashMap<u32, u64, 65536> = HashMap::new();

/// The cgroup below which threads are sampled, in slot 0.
#[btf_map]
pub(crate) static CGROUPS: CgroupArray<1> = CgroupArray::new();

/// The range of memory that holds a thread's stack, as it was when last asked for.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StackRange {
    /// The `mm_struct` it belongs to: an exec makes another one.
    pub(crate) mm: u64,
    /// First address.
    pub(crate) start: u64,
    /// First address after it.
    pub(crate) end: u64,
}

/// Stack ranges by tid. User space removes those that stacks were found to go beyond.
#[btf_map]
pub(crate) static STACK_RANGES: LruHashMap<u32, StackRange, 16384> = LruHashMap::new();

/// Where outer frames lie of threads whose stacks are larger than the largest copy, by tid. User space writes them.
#[btf_map]
pub(crate) static OUTER_PLACES: LruHashMap<u32, OuterPlaces, 4096> = LruHashMap::new();

/// Threads that are kept account of, by tid. One that is not there any more when it comes back has lost its time, and those
/// that come back last have most of it: so nothing is thrown out for others' sake. The number of entries is set before load.
#[btf_map]
pub(crate) static THREADS: HashMap<u32, ThreadTimes, 1> = HashMap::new();

/// Waits for a CPU, by thread name.
#[btf_map]
pub(crate) static RUN_QUEUES: PerCpuHashMap<[u8; COMM_LEN], RunQueue, 1024> = PerCpuHashMap::new();

/// Requests that devices have, by the address of the kernel's `struct request`. The number of entries is set before load.
#[btf_map]
pub(crate) static BLOCK_REQUESTS: HashMap<u64, BlockRequest, 1> = HashMap::new();

/// Requests by device and operation.
#[btf_map]
pub(crate) static BLOCK_COUNTS: PerCpuHashMap<BlockKey, BlockCounts, 1024> = PerCpuHashMap::new();

/// How long requests are expected to take, by device and operation. Of all CPUs: one that issues them may be told of no end, where another
/// one has the device's interrupts.
#[btf_map]
pub(crate) static BLOCK_EXPECTED: HashMap<BlockKey, BlockExpected, 1024> = HashMap::new();

/// Waits for locks of the kernel for which the thread may lose its CPU. The number of entries is set before load.
#[btf_map]
pub(crate) static KERNEL_LOCKS: HashMap<KernelLockKey, KernelLock, 1> = HashMap::new();

/// Waits for locks of the kernel, by their flags.
#[btf_map]
pub(crate) static KERNEL_LOCK_COUNTS: PerCpuArray<KernelLockCounts, { LockFlags::ALL as usize + 1 }> =
    PerCpuArray::new();

/// In slot 0, whether occurrences of tracepoints are recorded: 1 from when all of them are attached, until the recording ends.
#[btf_map]
pub(crate) static TRACEPOINTS_OPEN: Array<u32, 1> = Array::new();

/// Adds to a counter of this CPU.
#[inline(always)]
pub(crate) fn count(counter: Counter, amount: u64) {
    if let Some(value) = COUNTERS.get_ptr_mut(counter as u32) {
        // SAFETY: the helper gave a valid pointer to this CPU's value. A program that interrupts this one on the same CPU
        // could lose an increment. The kernel does not nest perf_event programs, and the scheduler's tracepoints come
        // with interrupts off; those of system calls and of block requests do not, so that what the sampling program counts as
        // well (bytes, absent pages) may be short by a few there. What the ledger goes by is counted by one of them alone,
        // but for requests that were lost.
        unsafe { *value += amount };
    }
}
