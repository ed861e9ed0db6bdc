//! Who releases a lock of user code that another thread waits for, with its stacks.

use bytemuck::{Pod, Zeroable};

use super::SampleHeader;

/// Data of records of [`super::SampleFlags::LOCK_OWNER`]: whose wait it ends. How long that was is told when the waiter runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LockOwner {
    /// When the waiter stopped running, as [`super::OffCpu::since`].
    pub since: u64,
    /// The waiter.
    pub waiter_tid: u32,
    /// Zero.
    pub reserved: u32,
}

impl LockOwner {
    /// As a record's data.
    pub const fn words(self) -> [u64; SampleHeader::DATA] {
        let mut words = [0; SampleHeader::DATA];
        (words[0], words[1]) = (self.since, self.waiter_tid as u64);
        words
    }

    /// From a record's data.
    pub const fn of(words: &[u64; SampleHeader::DATA]) -> Self {
        Self { since: words[0], waiter_tid: words[1] as u32, reserved: 0 }
    }
}
