//! The programs at the block layer's tracepoints: attached while it is recorded, and what they counted.

use std::collections::BTreeMap;
use std::io;

use aya::Ebpf;
use aya::maps::PerCpuHashMap;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Histogram, Unit};
use collector_common::wire::{
    BLOCK_SIZES, BLOCK_TIMES, BlockCounts, BlockKey, Counter, SampleFlags, SampleHeader,
};

use super::attached::Attached;
use super::part::{Ended, Part};
use crate::devices::{device_name, operation_name};
use crate::source::{Account, EventIndex};

/// The programs, with their tracepoints.
const TRACEPOINTS: [(&str, &str); 2] =
    [("block_issue", "block_rq_issue"), ("block_complete", "block_rq_complete")];

/// Requests that devices can have at a time: some thousands each.
const MOST_REQUESTS: u32 = 1 << 14;

/// A map's key and value as the kernel has them.
type KeyWords = [u32; size_of::<BlockKey>() / 4];
type CountWords = [u64; size_of::<BlockCounts>() / 8];

/// The programs.
pub(super) struct Blocks {
    programs: Attached,
    event: EventIndex,
    /// Records of complete requests, taken out of the rings.
    taken: u64,
}

impl Blocks {
    pub(super) fn new(event: EventIndex) -> Self {
        Self { programs: Attached::new(&TRACEPOINTS), event, taken: 0 }
    }
}

impl Part for Blocks {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("BLOCK_REQUESTS", MOST_REQUESTS)]
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        if !header.flags().has(SampleFlags::BLOCK) {
            return None;
        }
        self.taken += u64::from(header.flags().has(SampleFlags::BACK));
        Some(self.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::BlockLost, Counter::BlockFull]
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::BlockLost));
        ledger.lose(LossCause::NoRoom, ended.counted.counter(Counter::BlockFull));
        let told = ended.counted.counter(Counter::BlockTold);
        ledger.lose(LossCause::Unaccounted, told.saturating_sub(self.taken));
        account.histograms.extend(histograms(ended.ebpf)?);
        Ok(())
    }
}

/// How long requests took, then how large they were: of all devices, and by device and operation, those first that took
/// longest together.
fn histograms(ebpf: &Ebpf) -> io::Result<Vec<Histogram>> {
    let counts = ebpf.map("BLOCK_COUNTS").ok_or(io::ErrorKind::NotFound)?;
    let counts: PerCpuHashMap<_, KeyWords, CountWords> =
        PerCpuHashMap::try_from(counts).map_err(io::Error::other)?;
    let mut by_key = BTreeMap::new();
    for entry in &counts {
        let (key, cpus) = entry.map_err(io::Error::other)?;
        let key: BlockKey = bytemuck::cast(key);
        let (times, sizes) = by_key.entry(key).or_insert_with(|| empty(label(key)));
        for words in cpus.iter() {
            add(times, sizes, &bytemuck::cast(*words));
        }
    }
    let mut found: Vec<_> = by_key.into_values().collect();
    found.sort_by_key(|(times, _)| std::cmp::Reverse(times.sum));
    let mut all = empty("all devices".to_owned());
    for (times, sizes) in &found {
        merge(&mut all.0, times);
        merge(&mut all.1, sizes);
    }
    let (times, sizes): (Vec<_>, Vec<_>) = std::iter::once(all).chain(found).unzip();
    Ok(times.into_iter().chain(sizes).collect())
}

fn label(key: BlockKey) -> String {
    format!("{} {}", device_name(key.device), operation_name(key.operation))
}

fn empty(label: String) -> (Histogram, Histogram) {
    let histogram = |name: &str, label, unit, first_end, buckets| Histogram {
        name: name.to_owned(),
        label,
        unit,
        first_end,
        buckets: vec![0; buckets],
        sum: 0,
    };
    let times = histogram("times of block requests", label.clone(), Unit::Nanoseconds, 1000, BLOCK_TIMES);
    let sizes = histogram("sizes of block requests", label, Unit::Bytes, 1024, BLOCK_SIZES);
    (times, sizes)
}

fn add(times: &mut Histogram, sizes: &mut Histogram, counts: &BlockCounts) {
    times.buckets.iter_mut().zip(counts.times).for_each(|(bucket, count)| *bucket += count);
    times.sum += counts.ns;
    sizes.buckets.iter_mut().zip(counts.sizes).for_each(|(bucket, count)| *bucket += count);
    sizes.sum += counts.bytes;
}

fn merge(into: &mut Histogram, from: &Histogram) {
    into.buckets.iter_mut().zip(&from.buckets).for_each(|(bucket, count)| *bucket += count);
    into.sum += from.sum;
}
