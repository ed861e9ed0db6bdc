//! Page faults: the data of their records, and what is counted of each program.

use bytemuck::{Pod, Zeroable};

use super::SampleHeader;

/// Data of records of [`super::SampleFlags::FAULT`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Fault {
    /// How many faults it stands for, itself included: as many as it was chosen from.
    pub stands_for: u64,
    /// 1 where a disk was waited for, else 0.
    pub is_major: u64,
}

impl Fault {
    /// As a record's data.
    pub const fn words(self) -> [u64; SampleHeader::DATA] {
        let mut words = [0; SampleHeader::DATA];
        (words[0], words[1]) = (self.stands_for, self.is_major);
        words
    }

    /// What a record has in the first words of its data.
    pub const fn of(data: &[u64; SampleHeader::DATA]) -> Self {
        let [stands_for, is_major, ..] = *data;
        Self { stands_for, is_major }
    }
}

/// Faults of processes of one name, on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct FaultCounts {
    /// Those that memory alone answered.
    pub minor: u64,
    /// Those that waited for a disk.
    pub major: u64,
}
