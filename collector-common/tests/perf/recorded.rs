//! Recordings of `perf record`, made by the test, and what `perf report -D` prints of them. A small one with its print is
//! kept in `data`, for machines without `perf`: Linux 6.18, `perf` 6.1, packed by zstd.
//!
//! They need `perf` (Debian's `linux-perf`, which `cargo xtask setup` installs) and root. Where it is missing, a test
//! writes `SKIPPED` and the reason to stderr, and fails if `COLLECTOR_LIVE=require` is set.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use collector_common::perf::file::{FileReader, FileRecord, Ordered, UserRecord};
use collector_common::perf::{RecordKind, SampleType};

use crate::{report, report_user};

/// A program that maps files, forks, waits and computes.
const WORKLOAD: &str =
    "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; ls / >/dev/null; sleep 0.01; (exit 0) & wait";

/// Whether `perf` can record here: tried once, as two of them would write one file.
pub(crate) fn can_record() -> bool {
    static WORKS: LazyLock<bool> = LazyLock::new(|| {
        let probe = folder().join("probe.perf.data");
        record(&probe, &["-e", "cpu-clock"], "true").is_ok()
    });
    if !*WORKS {
        eprintln!("SKIPPED: perf can't record here");
        let required = std::env::var_os("COLLECTOR_LIVE").is_some_and(|live| live == "require");
        assert!(!required, "perf can't record here");
    }
    *WORKS
}

pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perf-records");
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn record(to: &Path, options: &[&str], script: &str) -> Result<(), String> {
    let mut perf = Command::new("perf");
    // Not into the cache of build ids, which is the user's.
    perf.args(["record", "-q", "-N", "-o"]).arg(to).args(options).args(["--", "sh", "-c", script]);
    let output = perf.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// What `perf report -D` prints.
fn report_of(file: &Path) -> Vec<report::Printed> {
    let output = Command::new("perf").args(["report", "-D", "-i"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    report::printed(&String::from_utf8_lossy(&output.stdout))
}

fn open(path: &Path) -> FileReader<BufReader<File>> {
    FileReader::open(BufReader::new(File::open(path).unwrap())).unwrap()
}

/// A record is written as it was read.
fn assert_written_as_read(record: &FileRecord<'_>) {
    let order = record.config.byte_order;
    let mut whole = Vec::new();
    record.raw.write(order, &mut whole).unwrap();
    let mut written = Vec::new();
    if !record.raw.kind.is_of_kernel() {
        let parsed = record.parse_user();
        assert!(!matches!(parsed.record, UserRecord::Other(_)), "{parsed:?}");
        parsed.write(order, &mut written).unwrap();
        assert_eq!(written, whole, "{parsed:?}");
        return;
    }
    let parsed = record.parse().unwrap();
    parsed.write(&record.config, &mut written).unwrap();
    assert_eq!(written, whole, "{parsed:?}");
    assert!(parsed.rest.is_empty(), "{parsed:?}");
}

/// How often each type of record is in a recording, and what its samples have.
type Summary = (BTreeMap<RecordKind, usize>, SampleType);

/// Compares each record of a recording, in the order of their times, with what `perf` prints of it.
fn compare<R: Read>(name: &str, file: FileReader<R>, printed: &[report::Printed]) -> Summary {
    let mut file = Ordered::new(file);
    let events = file.file().events().to_vec();
    let mut counts: BTreeMap<RecordKind, usize> = BTreeMap::new();
    let mut ours = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        *counts.entry(record.raw.kind).or_default() += 1;
        let Some(kind) = report::name(record.raw.kind) else { continue };
        assert_written_as_read(&record);
        let parsed = record.parse().unwrap();
        let time = parsed.sample_id.time.map_or(0, |time| time.0);
        assert_eq!(record.config.time(&record.raw), parsed.sample_id.time, "{parsed:?}");
        let lines = match record.event {
            Some(event) => report::lines(&parsed, &events[event]),
            None => report_user::lines(&record.parse_user().record),
        };
        let lines = lines.unwrap_or_default();
        ours.push((kind, time, record.raw.size() as u64, lines));
    }
    let known = |printed: &&report::Printed| ours.iter().any(|ours| ours.0 == printed.kind);
    let theirs: Vec<_> = printed.iter().filter(known).collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let at = theirs.offset;
        assert_eq!(
            (ours.0, ours.1, ours.2),
            (theirs.kind.as_str(), theirs.time, theirs.size),
            "{name}: {at:#x}"
        );
        if !ours.3.is_empty() {
            assert_eq!(ours.3, theirs.lines, "{name}: {at:#x}");
        }
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let types = file.file().events().iter().map(|event| event.config.sample_type);
    (counts, types.fold(SampleType::default(), SampleType::or))
}

/// Records, and compares.
fn compare_recording(name: &str, options: &[&str], expected: &[RecordKind]) -> SampleType {
    let path = folder().join(name).with_extension("perf.data");
    record(&path, options, WORKLOAD).unwrap();
    let (counts, types) = compare(name, open(&path), &report_of(&path));
    for kind in expected {
        assert!(counts.contains_key(kind), "{name} has no {kind:?}: {counts:?}");
    }
    types
}

/// The parts of a sample at its end are in the order in which the kernel wrote these.
#[test]
fn the_recording_that_is_kept() {
    let file = FileReader::open(Cursor::new(include_bytes!("data/packed.data"))).unwrap();
    let printed = report::printed(include_str!("data/packed.report.txt"));
    let (counts, types) = compare("kept", file, &printed);
    assert!(types.contains(SampleType::DATA_PAGE_SIZE | SampleType::CODE_PAGE_SIZE | SampleType::PHYS_ADDR));
    assert!(counts[&RecordKind::SAMPLE] > 5 && counts[&RecordKind::NAMESPACES] > 2, "{counts:?}");
}

#[test]
fn each_record_is_what_perf_says_it_is() {
    use RecordKind as Kind;
    if !can_record() {
        return;
    }
    let tasks = [Kind::COMM, Kind::FORK, Kind::EXIT, Kind::MMAP, Kind::MMAP2, Kind::SAMPLE];
    compare_recording("frame pointers", &["-e", "cpu-clock", "-F", "1999", "-g"], &tasks);
    let dwarf = ["-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,1024"];
    compare_recording("stacks", &dwarf, &[Kind::SAMPLE]);
    compare_recording("tracepoints", &["-e", "sched:sched_switch", "-e", "cpu-clock"], &[Kind::SAMPLE]);
    compare_recording("build ids", &["-e", "cpu-clock", "--buildid-mmap"], &[Kind::MMAP2]);
    // No sample fits into the ring; what comes next tells so.
    let too_large = ["-m", "1", "-e", "page-faults", "-c", "1", "--call-graph", "dwarf,8192"];
    compare_recording("lost", &too_large, &[Kind::LOST]);
    // One event counts nanoseconds, and makes more samples of them than a tick may have.
    let too_fast = ["-e", "sched:sched_stat_runtime", "-c", "1000", "--no-period"];
    compare_recording("too fast", &too_fast, &[Kind::THROTTLE, Kind::UNTHROTTLE]);
    compare_recording("counters", &["-e", "cpu-clock,page-faults", "-s"], &[Kind::READ]);
    let registers = ["-e", "cpu-clock", "--intr-regs", "--user-regs=ip,sp"];
    compare_recording("registers", &registers, &[Kind::SAMPLE]);
    compare_recording("group", &["-e", "{cpu-clock,page-faults}:S"], &[Kind::SAMPLE]);
    compare_recording(
        "whole machine",
        &["-a", "-e", "cpu-clock", "--switch-events"],
        &[Kind::SWITCH_CPU_WIDE],
    );
    compare_recording(
        "packed",
        &["-e", "cpu-clock", "-F", "4999", "-z"],
        &[Kind::SAMPLE, Kind::FINISHED_ROUND],
    );
    let everything = [
        "-e",
        "cpu-clock",
        "-g",
        "--switch-events",
        "--namespaces",
        "--all-cgroups",
        "-d",
        "--phys-data",
        "--data-page-size",
        "--code-page-size",
        "--weight",
        "--sample-cpu",
    ];
    let parts = compare_recording("everything", &everything, &[Kind::SWITCH, Kind::NAMESPACES, Kind::CGROUP]);
    let expected = SampleType::DATA_PAGE_SIZE
        | SampleType::CODE_PAGE_SIZE
        | SampleType::PHYS_ADDR
        | SampleType::CGROUP
        | SampleType::WEIGHT_STRUCT
        | SampleType::DATA_SRC;
    assert!(parts.contains(expected), "{parts:?}");
}
