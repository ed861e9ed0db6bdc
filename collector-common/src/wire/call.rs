//! System calls: what is counted of each in the kernel, and the data of records of slow ones.

use bytemuck::{Pod, Zeroable};

use super::SampleHeader;

/// Numbers of system calls that there is room for in each of two tables, the machine's own and the one of 32-bit programs.
/// Larger ones are counted as the last.
pub const CALL_NUMBERS: u32 = 512;

/// Buckets of [`CallTimes`]: calls of less than [`FIRST_CALL_NS`] nanoseconds, of less than twice, four times and so on of it,
/// and in the last one all others.
pub const CALL_BUCKETS: usize = 32;

/// Where the first of [`CALL_BUCKETS`] ends.
pub const FIRST_CALL_NS: u64 = 128;

/// What is counted of one system call on one CPU. Times are nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CallTimes {
    /// Calls by how long they took.
    pub buckets: [u64; CALL_BUCKETS],
    /// Those of them that failed.
    pub errors: u64,
    /// Sum of their times.
    pub sum: u64,
    /// The longest.
    pub longest: u64,
    /// How long the one took that was recorded last.
    pub recorded: u64,
    /// When that was.
    pub recorded_at: u64,
}

/// Data of records of [`super::SampleFlags::CALL`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Call {
    /// How long it took in nanoseconds.
    pub took: u64,
    /// What it returned: from -4095 to -1 the number of an error.
    pub returned: i64,
    /// Its number, and behind [`CALL_NUMBERS`] that in the table of 32-bit programs.
    pub slot: u32,
    /// Zero.
    pub reserved: u32,
}

impl Call {
    /// As a record's data.
    pub const fn words(self) -> [u64; SampleHeader::DATA] {
        let mut words = [0; SampleHeader::DATA];
        (words[0], words[1], words[2]) = (self.took, self.returned as u64, self.slot as u64);
        words
    }
}
