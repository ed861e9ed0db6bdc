//! The last branches that the processor took: `struct perf_branch_entry`.

use crate::ids::Avma;
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{BranchSampleType, ByteOrder, ParseConfig, SampleType, Words};

/// What is known of a branch. The number is the C structure's bit-fields with the first in the lowest bits, as they
/// lie on a little-endian machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BranchFlags(pub u64);

/// Bits of each bit-field from the first on: four single bits, cycles, type, speculation, new type, privilege,
/// reserved.
const FIELD_WIDTHS: [u32; 10] = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31];

impl BranchFlags {
    const fn field(self, at: u32, width: u32) -> u64 {
        self.0 >> at & ((1 << width) - 1)
    }

    /// Whether the target was predicted wrongly.
    pub const fn is_mispredicted(self) -> bool {
        self.field(0, 1) != 0
    }

    /// Whether the target was predicted.
    pub const fn is_predicted(self) -> bool {
        self.field(1, 1) != 0
    }

    /// Whether it was in a transaction.
    pub const fn is_in_transaction(self) -> bool {
        self.field(2, 1) != 0
    }

    /// Whether it is the abort of a transaction.
    pub const fn is_abort(self) -> bool {
        self.field(3, 1) != 0
    }

    /// Cycles since the branch before.
    pub const fn cycles(self) -> u16 {
        self.field(4, 16) as u16
    }

    /// `PERF_BR_*`.
    pub const fn kind(self) -> u8 {
        self.field(20, 4) as u8
    }

    /// `PERF_BR_SPEC_*`.
    pub const fn speculation(self) -> u8 {
        self.field(24, 2) as u8
    }

    /// `PERF_BR_NEW_*`, when [`Self::kind`] is `PERF_BR_EXTEND_ABI`.
    pub const fn new_kind(self) -> u8 {
        self.field(26, 4) as u8
    }

    /// `PERF_BR_PRIV_*`.
    pub const fn privilege(self) -> u8 {
        self.field(30, 3) as u8
    }

    /// On a big-endian machine the first bit-field is in the highest bits.
    fn from_field(field: u64, order: ByteOrder) -> Self {
        if order == ByteOrder::Little {
            return Self(field);
        }
        let (mut at, mut flags) = (0, 0);
        for width in FIELD_WIDTHS {
            flags |= (field << at >> (64 - width)) << at;
            at += width;
        }
        Self(flags)
    }

    fn to_field(self, order: ByteOrder) -> u64 {
        if order == ByteOrder::Little {
            return self.0;
        }
        let (mut at, mut field) = (0, 0);
        for width in FIELD_WIDTHS {
            field |= self.field(at, width) << (64 - at - width);
            at += width;
        }
        field
    }
}

/// A branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchEntry {
    /// The branch.
    pub from: Avma,
    /// Where it went.
    pub to: Avma,
    /// What is known of it.
    pub flags: BranchFlags,
    /// Occurrences of events since the branch before, some bits for each event: a
    /// [`file::BranchCounters`](crate::perf::file::BranchCounters) tells of which.
    pub counters: Option<u64>,
}

/// The branches, the last one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchStack<'a> {
    /// The hardware's index of its top; `u64::MAX` if it has none. With [`BranchSampleType::HW_INDEX`], but the
    /// kernel leaves it out where the event has no branches at all.
    pub hw_index: Option<u64>,
    /// From, to and flags of each.
    entries: Words<'a>,
    /// With [`BranchSampleType::COUNTERS`], a number for each.
    counters: Option<Words<'a>>,
}

impl<'a> BranchStack<'a> {
    /// Of numbers as the kernel lays them out: from, to and flags of each branch, and a number more for each in
    /// `counters`. `None` if their lengths don't match.
    pub fn new(hw_index: Option<u64>, entries: Words<'a>, counters: Option<Words<'a>>) -> Option<Self> {
        let branches = entries.len() / 3;
        let matches =
            entries.len().is_multiple_of(3) && counters.is_none_or(|counters| counters.len() == branches);
        matches.then_some(Self { hw_index, entries, counters })
    }

    /// How many branches there are.
    pub const fn len(&self) -> usize {
        self.entries.len() / 3
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Branch by branch.
    pub fn iter(&self) -> impl Iterator<Item = BranchEntry> + use<'a> {
        let mut words = self.entries.iter();
        let mut counters = self.counters.map(|counters| counters.iter());
        let order = self.entries.order();
        std::iter::from_fn(move || {
            let (from, to) = (Avma(words.next()?), Avma(words.next()?));
            let flags = BranchFlags::from_field(words.next()?, order);
            let counters = counters.as_mut().and_then(Iterator::next);
            Some(BranchEntry { from, to, flags, counters })
        })
    }

    /// `index_of_none`: whether a list without branches has an index, which the record doesn't tell.
    pub(super) fn read(fields: &mut Fields<'a>, config: &ParseConfig, index_of_none: bool) -> Option<Self> {
        let count = fields.u64()?;
        let has = |bit| config.branch_sample_type.contains(bit);
        let has_index = has(BranchSampleType::HW_INDEX) && (count > 0 || index_of_none);
        let hw_index = if has_index { Some(fields.u64()?) } else { None };
        let entries = fields.words(count.checked_mul(3)?)?;
        let counters = if has(BranchSampleType::COUNTERS) { Some(fields.words(count)?) } else { None };
        Some(Self { hw_index, entries, counters })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>, config: &ParseConfig) -> Result<(), WriteError> {
        let asked = |bit| config.branch_sample_type.contains(bit);
        let index_fits = self.hw_index.is_some() == asked(BranchSampleType::HW_INDEX)
            || self.hw_index.is_none() && self.is_empty();
        let counters_fit = self.is_empty() || self.counters.is_some() == asked(BranchSampleType::COUNTERS);
        if !(index_fits && counters_fit) {
            return Err(WriteError::Layout(SampleType::BRANCH_STACK));
        }
        writer.u64(self.len() as u64);
        if let Some(index) = self.hw_index {
            writer.u64(index);
        }
        if self.entries.order() == writer.order() {
            writer.words(self.entries);
        } else {
            for branch in self.iter() {
                writer.address(branch.from);
                writer.address(branch.to);
                writer.u64(branch.flags.to_field(writer.order()));
            }
        }
        if let Some(counters) = self.counters {
            writer.words(counters);
        }
        Ok(())
    }
}
