//! System calls: attached while it is recorded; what was counted of each, with its name.

use std::io;

use aya::Ebpf;
use aya::maps::PerCpuArray;
use collector_common::loss::{Ledger, LossCause};
use collector_common::record::{Column, Histogram, Table, Unit};
use collector_common::wire::{CALL_NUMBERS, CallTimes, Counter, FIRST_CALL_NS, SampleFlags, SampleHeader};

use super::attached::Attached;
use super::part::{Ended, Part};
use crate::source::calls::name_of_slot;
use crate::source::{Account, EventIndex, Settings};

/// Slots of the table of calls.
const SLOTS: u32 = 2 * CALL_NUMBERS;

/// Threads whose calls are remembered until they return.
const THREADS: u32 = 16384;

/// What is counted of a call, as the map has it.
type Words = [u64; size_of::<CallTimes>() / 8];

/// The programs.
pub(super) struct Calls {
    programs: Attached,
    event: EventIndex,
    /// Calls that begin before they are recorded, and end while they are, by the way in which a recording begins: the one by which
    /// the command executes its program.
    begun_before: u64,
    /// Records taken out of the rings.
    taken: u64,
}

impl Calls {
    /// `event` is the number of their records, `end` the program at the exit of calls.
    pub(super) fn new(event: EventIndex, end: &'static str, settings: &Settings) -> Self {
        let programs = Attached::new(&[("call_begins", "sys_enter"), (end, "sys_exit")]);
        Self { programs, event, begun_before: settings.targets.command.is_some().into(), taken: 0 }
    }
}

impl Part for Calls {
    fn programs(&mut self) -> &mut Attached {
        &mut self.programs
    }

    fn map_sizes(&self) -> Vec<(&'static str, u32)> {
        vec![("CALLS", SLOTS), ("ENTERED", THREADS)]
    }

    fn event_of(&mut self, header: &SampleHeader) -> Option<EventIndex> {
        let is_call = header.flags().has(SampleFlags::CALL);
        self.taken += u64::from(is_call);
        is_call.then_some(self.event)
    }

    fn lost(&self) -> &'static [Counter] {
        &[Counter::CallsLost]
    }

    fn close(&mut self, ended: &Ended<'_>, ledger: &mut Ledger, account: &mut Account) -> io::Result<()> {
        ledger.lose(LossCause::RingFull, ended.counted.counter(Counter::CallsLost));
        let recorded = ended.counted.counter(Counter::CallsRecorded);
        ledger.lose(LossCause::Unaccounted, recorded.saturating_sub(self.taken));
        let (table, histograms) = counted(ended.ebpf)?;
        account.tables.push(table);
        account.histograms.extend(histograms);
        account.warnings.push((
            ended.counted.counter(Counter::CallsUnknown).saturating_sub(self.begun_before),
            "system calls were not counted that were made before the recording, or by too many threads",
        ));
        Ok(())
    }
}

/// What was counted: a table, those calls first that took longest together, and how long they took.
fn counted(ebpf: &Ebpf) -> io::Result<(Table, Vec<Histogram>)> {
    let map = ebpf.map("CALLS").ok_or(io::ErrorKind::NotFound)?;
    let calls: PerCpuArray<_, Words> = PerCpuArray::try_from(map).map_err(io::Error::other)?;
    let mut counted = Vec::new();
    for slot in 0..SLOTS {
        let cpus = calls.get(&slot, 0).map_err(io::Error::other)?;
        let mut all: CallTimes = bytemuck::Zeroable::zeroed();
        cpus.iter().for_each(|words| add(&mut all, &bytemuck::cast(*words)));
        if all.buckets.iter().any(|count| *count > 0) {
            counted.push((name_of_slot(slot), all));
        }
    }
    counted.sort_by(|(one, a), (other, b)| b.sum.cmp(&a.sum).then_with(|| one.cmp(other)));
    Ok((table(&counted), histograms(&counted)))
}

fn add(all: &mut CallTimes, one: &CallTimes) {
    for (bucket, count) in all.buckets.iter_mut().zip(one.buckets) {
        *bucket += count;
    }
    all.errors += one.errors;
    all.sum = all.sum.saturating_add(one.sum);
    all.longest = all.longest.max(one.longest);
}

fn table(counted: &[(String, CallTimes)]) -> Table {
    let column = |name: &str, unit| Column { name: name.to_owned(), unit };
    let columns = vec![
        column("calls", Unit::Count),
        column("failed", Unit::Count),
        column("in all", Unit::Nanoseconds),
        column("on average", Unit::Nanoseconds),
        column("at longest", Unit::Nanoseconds),
    ];
    let rows = counted.iter().map(|(name, times)| {
        let count: u64 = times.buckets.iter().sum();
        let numbers = vec![count, times.errors, times.sum, times.sum / count.max(1), times.longest];
        (name.clone(), numbers)
    });
    Table { name: "system calls".to_owned(), columns, rows: rows.collect() }
}

/// Of all calls, and then of each.
fn histograms(counted: &[(String, CallTimes)]) -> Vec<Histogram> {
    let mut all = histogram("all calls", &bytemuck::Zeroable::zeroed());
    let by_name: Vec<_> = counted.iter().map(|(name, times)| histogram(name, times)).collect();
    for one in &by_name {
        for (bucket, count) in all.buckets.iter_mut().zip(&one.buckets) {
            *bucket += count;
        }
        all.sum = all.sum.saturating_add(one.sum);
    }
    std::iter::once(all).chain(by_name).filter(|histogram| histogram.count() > 0).collect()
}

fn histogram(label: &str, times: &CallTimes) -> Histogram {
    Histogram {
        name: "times of system calls".to_owned(),
        label: label.to_owned(),
        unit: Unit::Nanoseconds,
        first_end: FIRST_CALL_NS,
        buckets: times.buckets.to_vec(),
        sum: times.sum,
    }
}
