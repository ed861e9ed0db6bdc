//! Requests to block devices: what the programs keep of each one that a device has, tell of some, and count of all.

use bytemuck::{Pod, Zeroable};

use super::{COMM_LEN, SampleHeader};

/// Data of records of [`super::SampleFlags::BLOCK`]. The first is made when the request is issued, with the stacks of the
/// thread that does it; the second, with [`super::SampleFlags::BACK`], when it is complete. Either may be alone: the first
/// where the request turned out to be short, the second where it turned out to be long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockRequest {
    /// When it was issued to the device, `CLOCK_MONOTONIC` in nanoseconds.
    pub since: u64,
    /// Bytes to be transferred.
    pub bytes: u64,
    /// Whose they are.
    pub key: BlockKey,
    /// With which chance out of [`super::CHANCES`] the stacks were taken: 0 where they were not.
    pub chance: u32,
    /// Process of the thread that issued it.
    pub pid: u32,
    /// That thread.
    pub tid: u32,
    /// 1 where the first record found no room: the request is lost, and counted as that.
    pub is_lost: u32,
    /// The thread's name, NUL-padded.
    pub comm: [u8; COMM_LEN],
    /// Zero.
    pub reserved: [u64; 3],
}

impl BlockRequest {
    /// As a record has it.
    pub fn words(self) -> [u64; SampleHeader::DATA] {
        bytemuck::cast(self)
    }
}

const _: () = assert!(size_of::<BlockRequest>() == SampleHeader::DATA * 8);

/// What requests are counted by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
pub struct BlockKey {
    /// `major << 20 | minor`, as the kernel's `dev_t` has them.
    pub device: u32,
    /// `enum req_op` of `include/linux/blk_types.h`.
    pub operation: u32,
}

/// Buckets by time: less than 1 µs, less than 2, 4, 8 and so on, and in the last one all others.
pub const BLOCK_TIMES: usize = 27;

/// Buckets by size: less than 1 KiB, less than 2, 4, 8 and so on, and in the last one all others.
pub const BLOCK_SIZES: usize = 16;

/// What was counted of a [`BlockKey`]. Per CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockCounts {
    /// Requests by how long they took.
    pub times: [u64; BLOCK_TIMES],
    /// Requests by how large they were.
    pub sizes: [u64; BLOCK_SIZES],
    /// Nanoseconds in all.
    pub ns: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// How long one is expected to take, in nanoseconds.
    pub expected: u64,
}
