//! Native memory: the data of records of blocks that were allocated and freed, and what is counted of each process.

use bytemuck::{Pod, Zeroable};

use super::{COMM_LEN, SampleHeader};

/// Data of records of [`super::SampleFlags::ALLOCATION`]: with [`super::SampleFlags::BACK`] the block is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Allocation {
    /// Where the block begins.
    pub address: u64,
    /// How large it was asked to be; of one that is freed 0.
    pub bytes: u64,
    /// When it was allocated, in nanoseconds of the monotonic clock.
    pub since: u64,
    /// 1 where its end will be told.
    pub is_kept: u64,
}

impl Allocation {
    /// As a record's data.
    pub const fn words(self) -> [u64; SampleHeader::DATA] {
        let mut words = [0; SampleHeader::DATA];
        (words[0], words[1], words[2], words[3]) = (self.address, self.bytes, self.since, self.is_kept);
        words
    }
}

/// A block that is not freed yet, by where it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct Block {
    /// Address of the kernel's `mm_struct` of the memory that it is in. When that is gone, the kernel gives another process the place.
    pub memory: u64,
    /// Where it begins.
    pub address: u64,
    /// Thread group id.
    pub pid: u32,
    /// Zero.
    pub reserved: u32,
}

/// A program that a process executes, for what it allocates: another one of the same process has another memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct Allocating {
    /// Address of the kernel's `mm_struct`.
    pub memory: u64,
    /// Thread group id.
    pub pid: u32,
    /// Zero.
    pub reserved: u32,
}

/// A program of which something is counted from now on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Counted {
    /// Which one.
    pub allocating: Allocating,
    /// When that began, in nanoseconds of the monotonic clock: before its first block is recorded.
    pub since: u64,
}

/// What a function of an allocator is like: a number that a program gets of each call.
pub struct AllocatorCall;

impl AllocatorCall {
    /// `malloc(size)`
    pub const ALLOCATES: u64 = 0;
    /// `calloc(count, size)`
    pub const ALLOCATES_MANY: u64 = 1;
    /// `aligned_alloc(alignment, size)`
    pub const ALLOCATES_ALIGNED: u64 = 2;
    /// `posix_memalign(out, alignment, size)`
    pub const ALLOCATES_INTO: u64 = 3;
    /// `realloc(block, size)`
    pub const REALLOCATES: u64 = 4;
    /// `free(block)`
    pub const FREES: u64 = 5;
    /// `reallocarray(block, count, size)`
    pub const REALLOCATES_MANY: u64 = 6;
    /// `mi_heap_calloc(heap, count, size)`
    pub const ALLOCATES_MANY_IN_HEAP: u64 = 7;
    /// `mi_heap_realloc(heap, block, size)`
    pub const REALLOCATES_IN_HEAP: u64 = 8;
    /// `mi_heap_recalloc(heap, block, count, size)`
    pub const REALLOCATES_MANY_IN_HEAP: u64 = 9;
    /// `mi_heap_malloc(heap, size)`
    pub const ALLOCATES_IN_HEAP: u64 = 10;
    /// The bits of those.
    pub const SHAPE: u64 = 15;
    /// It may call others of them.
    pub const NESTS: u64 = 16;
    /// It gives nothing for what it is asked wrongly, as for an alignment that is no power of two.
    pub const REFUSES: u64 = 32;
    /// It throws an exception where it has nothing to give. None gets past a trapped return: the program would be ended by it.
    pub const THROWS: u64 = 64;
    /// The bits above are MiB, so many as this machine has: more is not given.
    pub const MOST_SHIFT: u32 = 8;
}

/// What is counted of one program on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct AllocationCounts {
    /// Blocks that were allocated.
    pub blocks: u64,
    /// Bytes that those were asked to have.
    pub bytes: u64,
    /// Blocks that were freed.
    pub freed: u64,
    /// Name of a thread of it, NUL-padded.
    pub comm: [u8; COMM_LEN],
}
