//! The programs at the tracepoints of locks of the kernel: attached while it is recorded, and what they counted.

use std::collections::BTreeMap;
use std::io;

use aya::Ebpf;
use aya::maps::PerCpuArray;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Histogram, Unit};
use collector_common::wire::{
    Counter, FIRST_LOCK_NS, KernelLockCounts, LOCK_BUCKETS, LockFlags, LockOffsets, SampleFlags, SampleHeader,
};

use super::attached::{Attached, left_out};
use super::btf::{BtfError, KernelTypes};
use super::part::{Ended, Part};
use crate::source::{Account, EventIndex};

/// The program at the beginning of waits.
const BEGINS: &str = "lock_wait_begins";

/// The programs, with their tracepoints.
const TRACEPOINTS: [(&str, &str); 2] = [(BEGINS, "contention_begin"), ("lock_wait_ends", "contention_end")];

/// Threads that can wait at a time, each for one lock mostly.
const MOST_WAITS: u32 = 1 << 14;

/// What is counted of waits with the same flags, as the map has it.
type Words = [u64; size_of::<KernelLockCounts>() / 8];

/// The programs.
pub(super) struct KernelLocks {
    programs: Attached,
    event: EventIndex,
    /// Records taken out of the rings.
    taken: u64,
}

impl KernelLocks {
    /// `event` is the number of their records.
    pub(super) fn new(event: EventIndex) -> Self {
        Self { programs: Attached::new(&TRACEPOINTS), event, taken: 0 }
    }
}

impl Part for KernelLocks {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    /// Kernels with other locks than are known here have them without owners.
    fn globals(&self, types: &KernelTypes) -> Result<Vec<(&'static str, Vec<u8>)>, BtfError> {
        let owner = |lock| types.offset(&[lock, "owner"]).unwrap_or(LockOffsets::UNKNOWN);
        let offsets = LockOffsets {
            mutex_owner: owner("mutex"),
            rwsem_owner: owner("rw_semaphore"),
            rt_mutex_owner: owner("rt_mutex_base"),
            reserved: 0,
        };
        Ok(vec![("LOCK_OFFSETS", bytemuck::bytes_of(&offsets).to_vec())])
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("KERNEL_LOCKS", MOST_WAITS)]
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        let is_wait = header.flags().has(SampleFlags::KERNEL_LOCK);
        self.taken += u64::from(is_wait);
        is_wait.then_some(self.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::KernelLockLost, Counter::KernelLockFull]
    }

    /// Enters into the ledger what was lost.
    ///
    /// ```text
    /// began ──┬─ while our own programs ran there, by the kernel or by them: lost, whoever waited
    ///         ├─ no room in the map: lost
    ///         └─ kept account of ──┬─ the end was not met, for the same reason: lost
    ///                              ├─ neither chosen nor long, or too short: counted alone
    ///                              ├─ no room in the ring: lost
    ///                              └─ recorded: delivered
    /// ```
    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        let counter = |counter| ended.counted.counter(counter);
        let not_nested = left_out(ended.ebpf, BEGINS)?;
        let not_run = counter(Counter::KernelLockNested) + counter(Counter::KernelLockOpen) + not_nested;
        ledger.lose(LossCause::NotRun, not_run);
        ledger.lose(LossCause::RingFull, counter(Counter::KernelLockLost));
        ledger.lose(LossCause::NoRoom, counter(Counter::KernelLockFull));
        let told = counter(Counter::KernelLockTold);
        ledger.lose(LossCause::Unaccounted, told.saturating_sub(self.taken));
        account.histograms.extend(histograms(ended.ebpf)?);
        Ok(())
    }
}

/// How long waits took: all, and by kind of lock, those first that took longest together.
fn histograms(ebpf: &Ebpf) -> io::Result<Vec<Histogram>> {
    let counts = ebpf.map("KERNEL_LOCK_COUNTS").ok_or(io::ErrorKind::NotFound)?;
    let counts: PerCpuArray<_, Words> = PerCpuArray::try_from(counts).map_err(io::Error::other)?;
    let mut all = empty("all locks");
    let mut by_kind = BTreeMap::new();
    for flags in 0..=LockFlags::ALL {
        let cpus = counts.get(&flags, 0).map_err(io::Error::other)?;
        let name = LockFlags(flags).name();
        for words in cpus.iter() {
            let counts: KernelLockCounts = bytemuck::cast(*words);
            add(&mut all, &counts);
            add(by_kind.entry(name).or_insert_with(|| empty(name)), &counts);
        }
    }
    let mut by_kind: Vec<_> = by_kind.into_values().filter(|kind| kind.count() > 0).collect();
    by_kind.sort_by(|one, other| other.sum.cmp(&one.sum).then_with(|| one.label.cmp(&other.label)));
    Ok(std::iter::once(all).filter(|all| all.count() > 0).chain(by_kind).collect())
}

fn empty(label: &str) -> Histogram {
    Histogram {
        name: "waits for kernel locks".to_owned(),
        label: label.to_owned(),
        unit: Unit::Nanoseconds,
        first_end: FIRST_LOCK_NS,
        buckets: vec![0; LOCK_BUCKETS],
        sum: 0,
    }
}

fn add(histogram: &mut Histogram, counts: &KernelLockCounts) {
    histogram.buckets.iter_mut().zip(counts.buckets).for_each(|(bucket, count)| *bucket += count);
    histogram.sum = histogram.sum.saturating_add(counts.ns);
}
