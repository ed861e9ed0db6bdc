//! Samples of memory and of page faults in, tables of them by process out.

use std::collections::BTreeMap;

use collector_common::record::{Column, ExportMachine, ProcessId, Table, Unit};

/// What is counted of a process, by its place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Blocks,
    Allocated,
    Kept,
    Mapped,
    Reserved,
    Unmapped,
    Minor,
    Major,
    Waited,
}

/// How many there are.
const COUNTS: usize = 9;

type Counts = [u64; COUNTS];

impl Count {
    /// That to which the values of a kind's samples add up.
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "alloc_objects" => Self::Blocks,
            "inuse_objects" => Self::Kept,
            "mapped_space" => Self::Mapped,
            "reserved_space" => Self::Reserved,
            "unmapped_space" => Self::Unmapped,
            "minor-faults" => Self::Minor,
            "major-faults" => Self::Major,
            "fault_wait" => Self::Waited,
            _ => return None,
        })
    }
}

/// Adds tables of the samples that are there.
pub(super) fn add_tables(machine: &mut ExportMachine) {
    let kinds: Vec<_> = machine.kinds().iter().map(|kind| Count::of(machine.string(kind.name))).collect();
    let mut all: BTreeMap<ProcessId, Counts> = BTreeMap::new();
    let mut before = 0;
    for sample in machine.samples().iter() {
        let value = sample.value.unsigned_abs();
        if let Some(count) = kinds.get(usize::from(sample.kind.0)).copied().flatten() {
            let counts = all.entry(machine.thread(sample.thread).process).or_default();
            add(counts, count, value);
            // The bytes of a block are the sample before that of the block, and others of that kind are no blocks.
            if count == Count::Blocks {
                add(counts, Count::Allocated, before);
            }
        }
        before = value;
    }
    let system = machine.system();
    let seconds = system.end.0.saturating_sub(system.start.0) as f64 / 1e9;
    let per_second = |bytes: u64| if seconds > 0.0 { (bytes as f64 / seconds).round() as u64 } else { 0 };
    let get = |counts: &Counts, count: Count| counts.get(count as usize).copied().unwrap_or(0);
    let blocks = table(
        "native memory",
        &[
            ("blocks", Unit::Count),
            ("allocated", Unit::Bytes),
            ("per second", Unit::Bytes),
            ("blocks freed", Unit::Count),
        ],
        rows(machine, &all, |counts| {
            let (blocks, bytes) = (get(counts, Count::Blocks), get(counts, Count::Allocated));
            vec![blocks, bytes, per_second(bytes), blocks.saturating_sub(get(counts, Count::Kept))]
        }),
    );
    let of = |named: [Count; 3]| move |counts: &Counts| named.map(|count| get(counts, count)).to_vec();
    let mapped = table(
        "virtual memory",
        &[("committed", Unit::Bytes), ("reserved alone", Unit::Bytes), ("given back", Unit::Bytes)],
        rows(machine, &all, of([Count::Mapped, Count::Reserved, Count::Unmapped])),
    );
    let faults = table(
        "page faults",
        &[("minor", Unit::Count), ("major", Unit::Count), ("waited for disks", Unit::Nanoseconds)],
        rows(machine, &all, of([Count::Minor, Count::Major, Count::Waited])),
    );
    for table in [blocks, mapped, faults].into_iter().flatten() {
        machine.add_table(table);
    }
}

fn add(counts: &mut Counts, count: Count, value: u64) {
    if let Some(sum) = counts.get_mut(count as usize) {
        *sum = sum.saturating_add(value);
    }
}

/// Those of processes that have any, those first that have most of the first number.
fn rows(
    machine: &ExportMachine,
    all: &BTreeMap<ProcessId, Counts>,
    numbers: impl Fn(&Counts) -> Vec<u64>,
) -> Vec<(String, Vec<u64>)> {
    let row = |(id, counts): (&ProcessId, &Counts)| {
        let process = machine.process(*id);
        (format!("{} ({})", machine.string(process.name), process.pid), numbers(counts))
    };
    let mut rows: Vec<_> = all.iter().map(row).collect();
    rows.retain(|(_, numbers)| numbers.iter().any(|number| *number > 0));
    rows.sort_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    rows
}

fn table(name: &str, columns: &[(&str, Unit)], rows: Vec<(String, Vec<u64>)>) -> Option<Table> {
    let columns = columns.iter().map(|(name, unit)| Column { name: (*name).to_owned(), unit: *unit });
    let columns = columns.collect();
    (!rows.is_empty()).then(|| Table { name: name.to_owned(), columns, rows })
}
