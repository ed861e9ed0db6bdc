//! What decides how an event's records are laid out: [`ParseConfig`], taken from its `perf_event_attr`.
//!
//! Bits: `enum perf_event_sample_format`, `perf_event_read_format` and `perf_branch_sample_type` of
//! `include/uapi/linux/perf_event.h`.

use super::bits::bit_set;
use super::fields::Fields;
use super::{Attr, AttrFlags, ByteOrder, RawRecord, RecordKind};
use crate::ids::Nanos;

bit_set! {
    /// `sample_type`: which parts a sample has, `PERF_SAMPLE_*`.
    SampleType(u64) {
        /// The address of the instruction.
        IP = 0;
        /// Process and thread.
        TID = 1;
        /// The time.
        TIME = 2;
        /// The address of the data.
        ADDR = 3;
        /// Counter values.
        READ = 4;
        /// The callchain.
        CALLCHAIN = 5;
        /// The event's id; of an inherited event, its parent's.
        ID = 6;
        /// The CPU.
        CPU = 7;
        /// The period.
        PERIOD = 8;
        /// The event's own id.
        STREAM_ID = 9;
        /// A tracepoint's fields, or what a PMU adds.
        RAW = 10;
        /// The last branches.
        BRANCH_STACK = 11;
        /// The registers of user space.
        REGS_USER = 12;
        /// A copy of the user stack.
        STACK_USER = 13;
        /// What the access cost, one number.
        WEIGHT = 14;
        /// Where the data came from.
        DATA_SRC = 15;
        /// The event's id, at a place that is the same for all `sample_type`s.
        IDENTIFIER = 16;
        /// Why a transaction was aborted.
        TRANSACTION = 17;
        /// The registers that were interrupted.
        REGS_INTR = 18;
        /// The physical address of the data (Linux 4.14).
        PHYS_ADDR = 19;
        /// A part of the AUX area (Linux 5.5).
        AUX = 20;
        /// The cgroup's id (Linux 5.7).
        CGROUP = 21;
        /// The size of the page with the data (Linux 5.11).
        DATA_PAGE_SIZE = 22;
        /// The size of the page with the instruction (Linux 5.11).
        CODE_PAGE_SIZE = 23;
        /// What the access cost, three numbers (Linux 5.12). Excludes [`Self::WEIGHT`].
        WEIGHT_STRUCT = 24;
    }
}

impl SampleType {
    /// The parts that records other than samples have at their end, too, with `sample_id_all`.
    pub const SAMPLE_ID: Self =
        Self(Self::TID.0 | Self::TIME.0 | Self::ID.0 | Self::STREAM_ID.0 | Self::CPU.0 | Self::IDENTIFIER.0);
}

bit_set! {
    /// `read_format`: what comes with a counter's value, `PERF_FORMAT_*`.
    ReadFormat(u64) {
        /// How long the event was enabled.
        TOTAL_TIME_ENABLED = 0;
        /// How long it counted.
        TOTAL_TIME_RUNNING = 1;
        /// The event's id.
        ID = 2;
        /// All values of the event's group.
        GROUP = 3;
        /// How many records were lost (Linux 6.0).
        LOST = 4;
    }
}

bit_set! {
    /// `branch_sample_type`, as far as it decides the layout or is of use to name, `PERF_SAMPLE_BRANCH_*`.
    BranchSampleType(u64) {
        /// Branches in user space.
        USER = 0;
        /// Branches in the kernel.
        KERNEL = 1;
        /// Branches in the hypervisor.
        HV = 2;
        /// Any branch.
        ANY = 3;
        /// Any call.
        ANY_CALL = 4;
        /// Any return.
        ANY_RETURN = 5;
        /// Indirect calls.
        IND_CALL = 6;
        /// Transaction aborts.
        ABORT_TX = 7;
        /// Branches in a transaction.
        IN_TX = 8;
        /// Branches outside one.
        NO_TX = 9;
        /// Conditional branches.
        COND = 10;
        /// The processor keeps a stack of calls.
        CALL_STACK = 11;
        /// Indirect jumps.
        IND_JUMP = 12;
        /// Direct calls.
        CALL = 13;
        /// No flags.
        NO_FLAGS = 14;
        /// No cycles.
        NO_CYCLES = 15;
        /// The branch's type is kept in its flags.
        TYPE_SAVE = 16;
        /// The list begins with the hardware's index of its top (Linux 5.7).
        HW_INDEX = 17;
        /// The privilege is kept in its flags (Linux 6.1).
        PRIV_SAVE = 18;
        /// Behind the list is a list of event counts, a number for each branch (Linux 6.8).
        COUNTERS = 19;
    }
}

/// How an event's records are laid out. Small, and made once per event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseConfig {
    /// The parts of a sample.
    pub sample_type: SampleType,
    /// What comes with a counter's value.
    pub read_format: ReadFormat,
    /// Decides what is beside the branch stack. The counts of branches are a matter of the whole group: all members of a
    /// group of which one has [`BranchSampleType::COUNTERS`] get them, which a `perf.data` is read by
    /// ([`file`](super::file)).
    pub branch_sample_type: BranchSampleType,
    /// The registers in [`super::Sample::user_registers`], a bit each.
    pub sample_regs_user: u64,
    /// The registers in [`super::Sample::interrupted_registers`], a bit each.
    pub sample_regs_intr: u64,
    /// Whether records other than samples end in a [`super::SampleId`].
    pub sample_id_all: bool,
    /// Whether build ids were asked for. Without it, [`super::Misc::MMAP_BUILD_ID`] is not looked at.
    pub build_id: bool,
    /// The byte order of the records.
    pub byte_order: ByteOrder,
}

impl ParseConfig {
    /// Of an event with these attributes, on a machine with this byte order.
    pub fn from(attr: &Attr, byte_order: ByteOrder) -> Self {
        Self {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch_sample_type: attr.branch_sample_type,
            sample_regs_user: attr.sample_regs_user,
            sample_regs_intr: attr.sample_regs_intr,
            sample_id_all: attr.flags.contains(AttrFlags::SAMPLE_ID_ALL),
            build_id: attr.flags.contains(AttrFlags::BUILD_ID),
            byte_order,
        }
    }

    /// Bytes of the [`super::SampleId`] at the end of records other than samples.
    pub const fn sample_id_size(&self) -> usize {
        if self.sample_id_all {
            self.sample_type.and(SampleType::SAMPLE_ID).0.count_ones() as usize * 8
        } else {
            0
        }
    }

    /// The id of the event that a record is from, without the rest of the record. To find an event among several, all
    /// must have it at the same place: by [`SampleType::IDENTIFIER`], or by the same `sample_type`.
    pub fn event_id(&self, raw: &RawRecord<'_>) -> Option<u64> {
        if raw.kind.may_be_too_long() {
            return raw.parse(self).ok()?.sample_id.event();
        }
        if self.sample_type.contains(SampleType::IDENTIFIER) {
            return self.word(raw, SampleType::default(), SampleType::IDENTIFIER);
        }
        let has_id = self.sample_type.contains(SampleType::ID);
        has_id.then(|| self.word(raw, BEFORE_TIME | SampleType::TIME | SampleType::ADDR, FROM_ID)).flatten()
    }

    /// When a record was written, without the rest of the record.
    pub fn time(&self, raw: &RawRecord<'_>) -> Option<Nanos> {
        if raw.kind.may_be_too_long() {
            return raw.parse(self).ok()?.sample_id.time;
        }
        let has_time = self.sample_type.contains(SampleType::TIME);
        has_time.then(|| self.word(raw, BEFORE_TIME, SampleType::TIME | FROM_ID)).flatten().map(Nanos)
    }

    /// The number that in a sample has `before` it, and in other records is the first of the `last` parts.
    fn word(&self, raw: &RawRecord<'_>, before: SampleType, last: SampleType) -> Option<u64> {
        let len_of = |parts: SampleType| self.sample_type.and(parts).0.count_ones() as usize * 8;
        let at = if raw.kind == RecordKind::SAMPLE {
            len_of(before)
        } else if self.sample_id_all && raw.kind.is_of_kernel() {
            // Of a record that is too short for its sample id, no part of it is there.
            let id = raw.body.len().checked_sub(self.sample_id_size())?;
            id + self.sample_id_size() - len_of(last)
        } else {
            return None;
        };
        let (_, from) = raw.body.split_at_checked(at)?;
        Fields::new(from, self.byte_order).u64()
    }
}

/// The parts before the time in a sample.
const BEFORE_TIME: SampleType = SampleType::IDENTIFIER.or(SampleType::IP).or(SampleType::TID);

/// The parts from the id on in a sample id.
const FROM_ID: SampleType =
    SampleType::ID.or(SampleType::STREAM_ID).or(SampleType::CPU).or(SampleType::IDENTIFIER);
