//! The ABI between the eBPF programs and user space: plain data, little-endian as both sides run on one
//! machine, checked at compile time for size and offsets.
//!
//! [`VERSION`] changes whenever a layout here changes; a record of another version is refused, so an object
//! and a library that do not belong together are noticed at the first record.

mod allocation;
mod block;
mod call;
mod config;
mod counter;
mod fault;
mod function_call;
mod growth;
mod kernel_lock;
mod life;
mod lock_owner;
mod lock_wait;
mod off_cpu;
mod outer_lines;
mod returns;
mod sample;
mod tracepoint;
mod transfer;

pub use allocation::{Allocating, Allocation, AllocationCounts, AllocatorCall, Block, Counted};
pub use block::{BLOCK_SIZES, BLOCK_TIMES, BlockCounts, BlockExpected, BlockKey, BlockRequest};
pub use call::{CALL_BUCKETS, CALL_NUMBERS, Call, CallTimes, FIRST_CALL_NS};
pub use config::{BlockOffsets, Config, NAMED_PROCESS, PreemptCountOffsets, ReturnOffsets, Target, Times};
pub use counter::Counter;
pub use fault::{Fault, FaultCounts};
pub use function_call::FunctionCall;
pub use growth::GrowthOffsets;
pub use kernel_lock::{
    FIRST_LOCK_NS, KernelLock, KernelLockCounts, KernelLockKey, LOCK_BUCKETS, LockFlags, LockOffsets,
};
pub use life::{ARGUMENTS, Life, LifeOffsets};
pub use lock_owner::LockOwner;
pub use lock_wait::LockWait;
pub use off_cpu::{CHANCES, OffCpu, OffCpuState, QUEUE_BUCKETS, RunQueue, ThreadTimes};
pub use outer_lines::{OuterLines, OuterPlaces};
pub use returns::{TrappedReturn, TrappedReturns};
pub use sample::{SampleFlags, SampleHeader};
pub use tracepoint::{Tracepoint, TracepointCookie};
pub use transfer::{
    FILE_NAMES, FILE_STEPS, FIRST_TRANSFER_BYTES, FIRST_TRANSFER_NS, FileKind, Operation, Peer, PeerCounts,
    TRANSFER_SIZES, TRANSFER_SLOTS, TRANSFER_TIMES, Transfer, TransferCounts, TransferOffsets,
};

/// Version of every layout in this module.
pub const VERSION: u16 = 11;

/// Kernel frames a sample can hold: `PERF_MAX_STACK_DEPTH` of `include/uapi/linux/perf_event.h`.
pub const MAX_KERNEL_FRAMES: usize = 127;

/// The kernel's page size that the copy of the user stack is cut by. On kernels with larger pages the pieces
/// are merely smaller than a page.
pub const PAGE_SIZE: usize = 4096;

/// The largest copy of a user stack: 16 pages.
pub const MAX_STACK_PAGES: usize = 16;

/// Bytes of a thread's name, `TASK_COMM_LEN`.
pub const COMM_LEN: usize = 16;
