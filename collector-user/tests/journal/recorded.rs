//! The journals that are kept, and what is made of them.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use collector_common::record::{ExportMachine, Sample};
use collector_user::journal::Journal;
use collector_user::session::{Recording, Session};
use flate2::read::GzDecoder;

/// Those that are kept, by what they are of.
pub(crate) const NAMES: [&str; 13] = [
    "cpu_profiling",
    "perf_events",
    "off_cpu",
    "wall_clock",
    "scheduling",
    "locks",
    "io_monitoring",
    "memory_tracking",
    "memory_growth",
    "syscalls",
    "processes",
    "page_faults",
    "tracepoint",
];

fn path(name: &str, ending: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/journal/recorded").join(name).with_extension(ending)
}

/// The bytes of a journal.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path(name, "gz")).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The recording of one.
pub(crate) fn replayed(name: &str) -> Recording {
    let bytes = bytes(name);
    let journal = Journal::open(bytes.as_slice()).unwrap();
    let settings = journal.settings();
    Session::replay(journal, settings).unwrap()
}

/// The numbers that the recorded program told of itself, line by line.
pub(crate) fn told(name: &str) -> Vec<Vec<i64>> {
    let text = fs::read_to_string(path(name, "told")).unwrap();
    text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect()
}

/// Samples of a kind, by its name.
pub(crate) fn of_kind<'a>(machine: &'a ExportMachine, kind: &'a str) -> impl Iterator<Item = Sample> + 'a {
    let is_it =
        move |sample: &Sample| machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind;
    machine.samples().iter().filter(is_it)
}

/// Values of samples of a kind and a thread.
pub(crate) fn of_thread(machine: &ExportMachine, kind: &str, tid: i64) -> Vec<i64> {
    let of_thread = of_kind(machine, kind).filter(|it| i64::from(machine.thread(it.thread).tid.0) == tid);
    of_thread.map(|sample| sample.value).collect()
}

/// A row of a table, by its label and the beginning of the table's name.
pub(crate) fn row<'a>(machine: &'a ExportMachine, table: &str, label: &str) -> &'a [u64] {
    let tables = machine.tables().iter().filter(|it| it.name.starts_with(table));
    let mut rows = tables.flat_map(|table| &table.rows);
    let row = rows.find(|(name, _)| name == label);
    &row.unwrap_or_else(|| panic!("no {label:?} in {:#?}", machine.tables())).1
}
