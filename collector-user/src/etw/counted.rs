//! Samples of what was measured in, tables and histograms of them out, as Linux counts them in its kernel. ETW tells of each event, so
//! they follow from the samples: of those that were asked for, and of nothing else.

use std::collections::{BTreeMap, HashMap};

use collector_common::record::{AttributeValue, Column, ExportMachine, Histogram, Sample, Table, Unit};

use super::shortest::Shortest;
use super::{by_process, woken};

/// Buckets of a histogram: the last one begins at 2^38 of the first one's end.
const BUCKETS: usize = 40;

/// Labels of a table, as many as Linux has thread names of; what is more is together.
const MOST_LABELS: usize = 1024;
const OTHERS: &str = "[others]";

/// What is counted by the same columns and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Group {
    Disk,
    File,
    Network,
    Queue,
    Call,
    Fault,
}

impl Group {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "block_io" => Self::Disk,
            "file_io" => Self::File,
            "network_io" => Self::Network,
            "run_queue" => Self::Queue,
            "syscalls" => Self::Call,
            "fault_wait" => Self::Fault,
            _ => return None,
        })
    }

    /// What the histogram of times is called, whose all of them are, and where its first bucket ends.
    const fn times(self) -> Option<(&'static str, &'static str, u64)> {
        match self {
            Self::Disk => Some(("times of block requests", "all devices", 1000)),
            Self::File => Some(("times of reads, writes and calls on sockets", "all calls", 128)),
            Self::Queue => Some(("waits for a CPU", "all threads", 1000)),
            Self::Call => Some(("times of system calls", "all calls", 128)),
            Self::Fault => Some(("times of major faults", "all processes", 1000)),
            Self::Network => None,
        }
    }

    /// The same of that of bytes.
    const fn sizes(self) -> Option<(&'static str, &'static str, u64)> {
        match self {
            Self::Disk => Some(("sizes of block requests", "all devices", 1024)),
            Self::File => Some(("sizes of reads, writes and calls on sockets", "all calls", 64)),
            Self::Network => Some(("sizes of sends and receives", "all of them", 64)),
            Self::Queue | Self::Call | Self::Fault => None,
        }
    }

    /// What the table is called, and which numbers it has.
    const fn table(self) -> Option<(&'static str, &'static [Number])> {
        use Number::{Average, Bytes, Calls, Failed, Longest, Sum, Transfers};
        match self {
            Self::Disk | Self::Queue | Self::Fault => None,
            Self::Call => Some(("system calls", &[Calls, Failed, Sum, Average, Longest])),
            Self::File => {
                Some(("reads, writes and calls on sockets", &[Calls, Failed, Bytes, Sum, Average, Longest]))
            }
            Self::Network => Some(("sends and receives", &[Transfers, Bytes])),
        }
    }
}

/// A number of a table.
#[derive(Clone, Copy, Debug)]
enum Number {
    Calls,
    Transfers,
    Failed,
    Bytes,
    Sum,
    Average,
    Longest,
}

impl Number {
    fn column(self) -> Column {
        let (name, unit) = match self {
            Self::Calls => ("calls", Unit::Count),
            Self::Transfers => ("transfers", Unit::Count),
            Self::Failed => ("failed", Unit::Count),
            Self::Bytes => ("transferred", Unit::Bytes),
            Self::Sum => ("in all", Unit::Nanoseconds),
            Self::Average => ("on average", Unit::Nanoseconds),
            Self::Longest => ("at longest", Unit::Nanoseconds),
        };
        Column { name: name.to_owned(), unit }
    }

    fn of(self, count: &Count) -> u64 {
        match self {
            Self::Calls | Self::Transfers => count.all,
            Self::Failed => count.failed,
            Self::Bytes => count.bytes,
            Self::Sum => count.sum,
            Self::Average => count.sum / count.all.max(1),
            Self::Longest => count.longest,
        }
    }
}

/// What there was of something.
#[derive(Clone, Debug)]
struct Count {
    all: u64,
    failed: u64,
    sum: u64,
    longest: u64,
    bytes: u64,
    times: [u64; BUCKETS],
    sizes: [u64; BUCKETS],
}

impl Default for Count {
    fn default() -> Self {
        let (times, sizes) = ([0; BUCKETS], [0; BUCKETS]);
        Self { all: 0, failed: 0, sum: 0, longest: 0, bytes: 0, times, sizes }
    }
}

impl Count {
    fn add(&mut self, group: Group, facts: &Facts, value: u64) {
        let (time, bytes) = if group.times().is_some() { (value, facts.bytes) } else { (0, value) };
        self.all += 1;
        self.failed += u64::from(facts.has_failed);
        self.sum = self.sum.saturating_add(time);
        self.longest = self.longest.max(time);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((.., first)) = group.times() {
            put(&mut self.times, first, time);
        }
        if let Some((.., first)) = group.sizes().filter(|_| bytes > 0) {
            put(&mut self.sizes, first, bytes);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.all += other.all;
        self.failed += other.failed;
        self.sum = self.sum.saturating_add(other.sum);
        self.longest = self.longest.max(other.longest);
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (into, from) in [(&mut self.times, &other.times), (&mut self.sizes, &other.sizes)] {
            into.iter_mut().zip(from).for_each(|(bucket, count)| *bucket += count);
        }
    }
}

/// Counts a size in its bucket: the first ends at `first`, which is not in it.
fn put(buckets: &mut [u64; BUCKETS], first: u64, size: u64) {
    let place = (size / first.max(1)).checked_ilog2().map_or(0, |double| double as usize + 1);
    if let Some(bucket) = buckets.get_mut(place.min(BUCKETS - 1)) {
        *bucket += 1;
    }
}

/// What a sample's attributes say of it.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    bytes: u64,
    has_failed: bool,
}

/// Adds tables and histograms of the samples that are there, which lack times off a CPU that are shorter than these.
pub(super) fn add_counted(machine: &mut ExportMachine, shortest: Shortest) {
    let groups: Vec<_> = machine.kinds().iter().map(|kind| Group::of(machine.string(kind.name))).collect();
    let mut counted: BTreeMap<Group, HashMap<String, Count>> = BTreeMap::new();
    let mut label = String::new();
    for sample in machine.samples().iter() {
        let Some(group) = groups.get(usize::from(sample.kind.0)).copied().flatten() else { continue };
        let facts = describe(machine, group, &sample, &mut label);
        let counts = counted.entry(group).or_default();
        if counts.len() >= MOST_LABELS && !counts.contains_key(&label) {
            OTHERS.clone_into(&mut label);
        }
        if !counts.contains_key(&label) {
            counts.insert(label.clone(), Count::default());
        }
        if let Some(count) = counts.get_mut(&label) {
            count.add(group, &facts, sample.value.unsigned_abs());
        }
    }
    for (group, counts) in counted {
        add(machine, group, counts);
    }
    by_process::add_tables(machine);
    woken::add_table(machine, shortest);
}

fn add(machine: &mut ExportMachine, group: Group, counts: HashMap<String, Count>) {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(one, a), (other, b)| (b.sum, b.bytes, one).cmp(&(a.sum, a.bytes, other)));
    if let Some((name, numbers)) = group.table() {
        let row = |count: &Count| numbers.iter().map(|number| number.of(count)).collect();
        machine.add_table(Table {
            name: name.to_owned(),
            columns: numbers.iter().map(|number| number.column()).collect(),
            rows: counts.iter().map(|(label, count)| (label.clone(), row(count))).collect(),
        });
    }
    let mut whole = Count::default();
    for (_, count) in &counts {
        whole.merge(count);
    }
    let mut histograms = |named: Option<(&str, &str, u64)>, unit, of: fn(&Count) -> ([u64; BUCKETS], u64)| {
        let Some((name, all, first_end)) = named else { return };
        let each = counts.iter().map(|(label, count)| (label.as_str(), count));
        for (label, count) in std::iter::once((all, &whole)).chain(each) {
            let (buckets, sum) = of(count);
            if buckets.iter().any(|count| *count > 0) {
                let (name, label, buckets) = (name.to_owned(), label.to_owned(), buckets.to_vec());
                machine.add_histogram(Histogram { name, label, unit, first_end, buckets, sum });
            }
        }
    };
    histograms(group.times(), Unit::Nanoseconds, |count| (count.times, count.sum));
    histograms(group.sizes(), Unit::Bytes, |count| (count.sizes, count.bytes));
}

/// What a sample says of itself; its label is written to `label`.
fn describe(machine: &ExportMachine, group: Group, sample: &Sample, label: &mut String) -> Facts {
    let mut facts = Facts::default();
    let (mut device, mut operation, mut address, mut call) = ("", "", "", "");
    for (key, value) in machine.attributes().get(sample.attributes) {
        match (machine.string(*key), *value) {
            ("bytes", AttributeValue::Number(bytes)) => facts.bytes = bytes.unsigned_abs(),
            ("error", _) => facts.has_failed = true,
            ("device", AttributeValue::Label(text)) => device = machine.string(text),
            ("operation", AttributeValue::Label(text)) => operation = machine.string(text),
            ("call", AttributeValue::Label(text)) => call = machine.string(text),
            ("address", AttributeValue::Label(text)) => address = machine.string(text),
            _ => {}
        }
    }
    label.clear();
    let parts = match group {
        Group::Disk => [device, " ", operation],
        Group::File => [operation, "", ""],
        Group::Call => [call, "", ""],
        Group::Fault => [machine.string(machine.process(machine.thread(sample.thread).process).name), "", ""],
        Group::Queue => [machine.string(machine.thread(sample.thread).name), "", ""],
        Group::Network => [operation, " ", address.split(' ').next().unwrap_or_default()],
    };
    label.extend(parts);
    facts
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Tid};

    use super::*;

    #[test]
    fn buckets_double_and_the_last_takes_the_rest() {
        let mut buckets = [0; BUCKETS];
        for size in [0, 127, 128, 255, 256, u64::MAX] {
            put(&mut buckets, 128, size);
        }
        assert_eq!((&buckets[..3], buckets[BUCKETS - 1]), (&[2, 2, 1][..], 1));
    }

    #[test]
    fn more_names_than_there_is_room_for_are_together() {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind("run_queue", Unit::Nanoseconds, 1);
        let process = machine.add_process(Pid(1), "many", None, Nanos(0));
        for number in 0..MOST_LABELS as u32 + 10 {
            let name = machine.intern_string(&format!("thread {number}"));
            let thread = machine.intern_thread(process, Tid(number), name);
            machine.add_sample(&Sample { thread, kind, value: 5, ..Sample::default() });
        }
        add_counted(&mut machine, Shortest::default());
        let of = |label: &str| machine.histograms().iter().find(|it| it.label == label).map(Histogram::count);
        assert_eq!((of("all threads"), of(OTHERS), of("thread 7")), (Some(1034), Some(10), Some(1)));
    }
}
