//! Recordings of `perf record`, made by the test, and what `perf report -D` prints of them. A small one with its print is
//! kept in `data`, for machines without `perf`: Linux 6.18, `perf` 6.1, packed by zstd.
//!
//! They need `perf` (Debian's `linux-perf`, which `cargo xtask setup` installs) and root. Where it is missing, a test
//! writes `SKIPPED` and the reason to stderr, and fails if `COLLECTOR_LIVE=require` is set.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, RwLock};
use std::thread;
use std::time::Duration;

use collector_common::ids::{Avma, Nanos, Pid, Tid};
use collector_common::perf::file::{FileEvent, FileReader, FileRecord, FileWriter, Ordered, UserRecord};
use collector_common::perf::{
    Attr, AttrFlags, Aux, AuxFlags, AuxOutputHwId, BranchSampleType, BranchStack, ByteOrder, Bytes,
    DataSource, ItraceStart, Misc, OwnedRecord, Parsed, Record, RecordKind, Sample, SampleId, SampleType,
    TextPoke, Transaction, Weight, Words,
};

use crate::user::Part::{Text, U8, U16, U32, U64};
use crate::user::made;
use crate::{report, report_user};

/// Parts of samples that come of hardware.
const RARE: SampleType = SampleType(
    SampleType::IDENTIFIER.0
        | SampleType::IP.0
        | SampleType::TID.0
        | SampleType::TIME.0
        | SampleType::ADDR.0
        | SampleType::PERIOD.0
        | SampleType::RAW.0
        | SampleType::BRANCH_STACK.0
        | SampleType::WEIGHT.0
        | SampleType::DATA_SRC.0
        | SampleType::TRANSACTION.0
        | SampleType::PHYS_ADDR.0
        | SampleType::CGROUP.0
        | SampleType::DATA_PAGE_SIZE.0
        | SampleType::CODE_PAGE_SIZE.0
        | SampleType::AUX.0,
);

/// A program that maps files, forks, waits and computes.
const WORKLOAD: &str =
    "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; ls / >/dev/null; sleep 0.01; (exit 0) & wait";

/// Computes for several ticks.
const LONGER: &str = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";

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

/// What a recorder did. Those that ask for build ids are alone: the kernel marks what it writes for others at that time as
/// if it had build ids, too (see [`collector_common::perf::Mmap2`]), and perf 6.1 ends at such a record.
pub(crate) fn recorded_by(perf: &mut Command) -> io::Result<Output> {
    static AT_WORK: RwLock<()> = RwLock::new(());
    let (_alone, _among_others);
    if perf.get_args().any(|argument| argument == "--buildid-mmap") {
        _alone = AT_WORK.write().unwrap();
    } else {
        _among_others = AT_WORK.read().unwrap();
    }
    perf.stdin(Stdio::null()).output()
}

pub(crate) fn record(to: &Path, options: &[&str], script: &str) -> Result<(), String> {
    let mut perf = Command::new("perf");
    // Not into the cache of build ids, which is the user's.
    perf.args(["record", "-q", "-N", "-o"]).arg(to).args(options).args(["--", "sh", "-c", script]);
    let output = recorded_by(&mut perf).map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// A program of `programs`.
fn compiled(name: &str) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf/programs").join(name).with_extension("c");
    let program = folder().join(name);
    let cc = Command::new("cc").args(["-Wall", "-Werror", "-o"]).args([&program, &source]).output().unwrap();
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    program
}

/// What `perf report -D` prints.
pub(crate) fn report_of(file: &Path) -> Vec<report::Printed> {
    printed_by(Command::new("perf").args(["report", "-D", "-i"]).arg(file))
}

/// What `perf report -D` prints of a stream. It does not take one from a file.
pub(crate) fn report_of_stream(file: &Path) -> Vec<report::Printed> {
    printed_by(Command::new("perf").args(["report", "-D", "-i", "-"]).stdin(File::open(file).unwrap()))
}

fn printed_by(perf: &mut Command) -> Vec<report::Printed> {
    let output = perf.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    report::printed(&String::from_utf8_lossy(&output.stdout))
}

fn open(path: &Path) -> FileReader<BufReader<File>> {
    FileReader::open(BufReader::new(File::open(path).unwrap())).unwrap()
}

/// All of them: those of a stream come one by one.
fn events_of<R: Read>(mut file: FileReader<R>) -> Vec<FileEvent> {
    while file.next_record().unwrap().is_some() {}
    file.events().to_vec()
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
pub(crate) fn compare<R: Read>(
    name: &str,
    open: impl Fn() -> FileReader<R>,
    printed: &[report::Printed],
) -> Summary {
    const ROUND: &str = "FINISHED_ROUND";
    let mut file = Ordered::new(open());
    let events = events_of(open());
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
    // Between which records `perf` tells the end of a round has to do with its queue alone: how far it empties that at the end of the next
    // round depends on whether it was empty (`queue_event` of `tools/perf/util/ordered-events.c`).
    let (our_rounds, ours): (Vec<_>, Vec<_>) = ours.into_iter().partition(|ours| ours.0 == ROUND);
    let (rounds, theirs): (Vec<_>, Vec<_>) = theirs.into_iter().partition(|theirs| theirs.kind == ROUND);
    assert_eq!(our_rounds.len(), rounds.len(), "{name}");
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
    compare_recording_of(WORKLOAD, name, options, expected)
}

fn compare_recording_of(script: &str, name: &str, options: &[&str], expected: &[RecordKind]) -> SampleType {
    let path = folder().join(name).with_extension("perf.data");
    record(&path, options, script).unwrap();
    compare_file(name, &path, &report_of(&path), expected)
}

pub(crate) fn compare_file(
    name: &str,
    path: &Path,
    printed: &[report::Printed],
    expected: &[RecordKind],
) -> SampleType {
    let (counts, types) = compare(name, || open(path), printed);
    for kind in expected {
        assert!(counts.contains_key(kind), "{name} has no {kind:?}: {counts:?}");
    }
    types
}

/// Records a stream, and compares.
fn compare_stream(name: &str, options: &[&str], expected: &[RecordKind]) {
    let path = folder().join(name).with_extension("stream");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "-o", "-"]).args(options).args(["--", "sh", "-c", WORKLOAD]);
    let perf = recorded_by(perf.stdout(File::create(&path).unwrap())).unwrap();
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    compare_file(name, &path, &report_of_stream(&path), expected);
}

/// Counts, and compares.
fn compare_counts(name: &str, options: &[&str], expected: &[RecordKind]) {
    let path = folder().join(name).with_extension("stat");
    let mut perf = Command::new("perf");
    perf.args(["stat", "record", "-o"]).arg(&path).args(options).args(["--", "sh", "-c", WORKLOAD]);
    let perf = recorded_by(&mut perf).unwrap();
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    assert!(open(&path).features().is_stat());
    compare_file(name, &path, &report_of(&path), expected);
}

/// The parts of a sample at its end are in the order in which the kernel wrote these.
#[test]
fn the_recording_that_is_kept() {
    let open = || FileReader::open(Cursor::new(include_bytes!("data/packed.data"))).unwrap();
    let printed = report::printed(include_str!("data/packed.report.txt"));
    let (counts, types) = compare("kept", open, &printed);
    assert!(types.contains(SampleType::DATA_PAGE_SIZE | SampleType::CODE_PAGE_SIZE | SampleType::PHYS_ADDR));
    assert!(counts[&RecordKind::SAMPLE] > 5 && counts[&RecordKind::NAMESPACES] > 2, "{counts:?}");
}

#[test]
fn each_record_is_what_perf_says_it_is() {
    use RecordKind as Kind;
    if !can_record() {
        return;
    }
    let loads = compiled("loads");
    let loads = format!("{} 3; {WORKLOAD}", loads.display());
    let whole_machine = ["-a", "-e", "cpu-clock"];
    compare_recording_of(&loads, "programs", &whole_machine, &[Kind::KSYMBOL, Kind::BPF_EVENT]);
    let tasks = [Kind::COMM, Kind::FORK, Kind::EXIT, Kind::MMAP, Kind::MMAP2, Kind::SAMPLE];
    compare_recording("frame pointers", &["-e", "cpu-clock", "-F", "1999", "-g"], &tasks);
    let dwarf = ["-e", "cpu-clock", "-F", "997", "--call-graph", "dwarf,1024"];
    compare_recording("stacks", &dwarf, &[Kind::SAMPLE]);
    compare_recording("tracepoints", &["-e", "sched:sched_switch", "-e", "cpu-clock"], &[Kind::SAMPLE]);
    compare_recording("build ids", &["-e", "cpu-clock", "--buildid-mmap"], &[Kind::MMAP2]);
    // Of mappings another event tells, and what `perf` found in `/proc` is of none.
    let build_ids = ["-a", "-e", "cpu-clock", "--buildid-mmap"];
    compare_recording("build ids of the machine", &build_ids, &[Kind::MMAP2]);
    // No sample fits into the ring; what comes next tells so.
    let too_large = ["-m", "1", "-e", "page-faults", "-c", "1", "--call-graph", "dwarf,8192"];
    compare_recording("lost", &too_large, &[Kind::LOST]);
    // One event counts nanoseconds, and makes more samples of them than a tick may have.
    let too_fast = ["-e", "sched:sched_stat_runtime", "-c", "1000", "--no-period"];
    compare_recording_of(LONGER, "too fast", &too_fast, &[Kind::THROTTLE, Kind::UNTHROTTLE]);
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

/// What `perf` tells beside the kernel's records.
#[test]
fn each_record_of_perf_itself_is_what_it_says_it_is() {
    use RecordKind as Kind;
    if !can_record() {
        return;
    }
    let known_at_the_start = [
        Kind::HEADER_ATTR,
        Kind::HEADER_FEATURE,
        Kind::EVENT_UPDATE,
        Kind::ID_INDEX,
        Kind::THREAD_MAP,
        Kind::CPU_MAP,
        Kind::FINISHED_INIT,
        Kind::FINISHED_ROUND,
    ];
    compare_stream("stream", &["-e", "cpu-clock,page-faults"], &known_at_the_start);
    compare_stream("whole machine", &["-a", "-e", "cpu-clock"], &known_at_the_start);
    compare_stream("packed", &["-e", "cpu-clock", "-z"], &known_at_the_start);
    let tracepoint = ["-e", "sched:sched_switch", "-e", "cpu-clock"];
    compare_stream("tracepoint", &tracepoint, &[Kind::HEADER_TRACING_DATA]);
    let of_threads = folder().join("threads.perf.data");
    record(&of_threads, &["--threads", "-e", "cpu-clock"], "true").unwrap();
    // `perf report --header-only`: `directory data version : 1`.
    assert_eq!(open(&of_threads.join("data")).features().folder_version(), Some(1));
    let counted = [Kind::STAT_CONFIG, Kind::STAT, Kind::STAT_ROUND, Kind::THREAD_MAP, Kind::CPU_MAP];
    compare_counts("command", &["-e", "cpu-clock,page-faults"], &counted);
    compare_counts("each CPU", &["-a", "-A", "-e", "cpu-clock,page-faults", "-I", "10"], &counted);
    let pids = format!("1,{}", std::process::id());
    compare_counts("threads", &["-e", "cpu-clock", "--per-thread", "-p", &pids], &counted);
}

/// It has not said in its header how much it has written, and `perf` itself reads none of it.
#[test]
fn what_perf_had_written_when_it_was_killed_is_read() {
    if !can_record() {
        return;
    }
    let path = folder().join("killed.perf.data");
    _ = fs::remove_file(&path);
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-N",
        "-e",
        "cpu-clock",
        "-F",
        "4999",
        "-m",
        "8",
        "-p",
        &busy.id().to_string(),
        "-o",
    ]);
    let mut perf = perf.arg(&path).spawn().unwrap();
    let written = || fs::metadata(&path).map_or(0, |metadata| metadata.len());
    while written() < 100_000 && perf.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    for child in [&mut perf, &mut busy] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut file = open(&path);
    assert!(file.is_unfinished());
    let (mut samples, mut bytes) = (0, 0);
    let cut_off = loop {
        match file.next_record() {
            Ok(Some(record)) => {
                bytes += record.raw.size() as u64;
                let Record::Sample(sample) = record.parse().unwrap().record else { continue };
                assert_eq!(sample.pid, Some(Pid(busy.id())));
                samples += 1;
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // Records are of 64 KiB at most, of which the last one may be in part there; the header and the list of events are before them.
    assert!(samples > 1000 && bytes + 1000 + (64 << 10) >= written(), "{samples}, {bytes}, {cut_off:?}");
    assert!(cut_off.is_some() || bytes + 1000 >= written(), "{bytes} of {}", written());
}

/// Records that `perf` does not make here, in this machine's byte order, and what it prints of them.
#[test]
fn perf_reads_what_it_does_not_write_here() {
    use RecordKind as Kind;
    if !can_record() {
        return;
    }
    let order = ByteOrder::NATIVE;
    let conversion = [U64(31), U64(700), U64(5)];
    let cycles = [U64(123), U64(0xff), U8(1), U8(1), U16(0), U32(0)];
    let config = [U64(3), U64(2), U64(0), U64(1), U64(500), U64(0), U64(3)];
    let records = [
        made(Kind::CPU_MAP, order, &[U16(0), U16(3), U16(1), U16(2), U16(4)]),
        made(Kind::CPU_MAP, order, &[U16(1), U16(1), U16(8), U32(0), U64(0xb)]),
        made(Kind::CPU_MAP, order, &[U16(1), U16(2), U16(4), U32(0x11), U32(3)]),
        made(Kind::CPU_MAP, order, &[U16(2), U8(1), U8(0), U16(4), U16(6)]),
        made(Kind::EVENT_UPDATE, order, &[U64(3), U64(71), U16(0), U16(2), U16(1), U16(5)]),
        made(Kind::EVENT_UPDATE, order, &[U64(1), U64(71), U64(0x3fe0 << 48)]),
        made(Kind::ID_INDEX, order, &[U64(1), U64(71), U64(0), U64(3), U64(4), U64(500), U64(2)]),
        made(Kind::TIME_CONV, order, &conversion),
        made(Kind::TIME_CONV, order, &[&conversion[..], &cycles].concat()),
        made(Kind::STAT_CONFIG, order, &config),
        made(Kind::STAT_ROUND, order, &[U64(1), U64(77)]),
        branch_trace(order),
        made(Kind::AUXTRACE, order, &[U64(24), U64(8192), U64(0xabc), U32(2), U32(u32::MAX), U32(3), U32(0)]),
    ];
    let path = folder().join("made.perf.data");
    let mut file = FileWriter::new(File::create(&path).unwrap(), order).unwrap();
    file.add_event(&Attr { kind: 1, ..Attr::default() }, vec![71], Some("cpu-clock".into())).unwrap();
    for record in &records {
        let payload = if record.kind == Kind::AUXTRACE { &[0; 24][..] } else { &[] };
        file.write_raw(&record.as_raw(), payload).unwrap();
    }
    file.finish().unwrap();
    let kinds: Vec<_> = records.iter().map(|record| record.kind).collect();
    compare_file("made", &path, &report_of(&path), &kinds);
}

/// Records of the kernel, and parts of samples, that it does not make here: of hardware that traces, and of code that it changes.
#[test]
fn perf_reads_what_the_kernel_does_not_make_here() {
    use RecordKind as Kind;
    if !can_record() {
        return;
    }
    let path = folder().join("rare.perf.data");
    let mut file = FileWriter::new(File::create(&path).unwrap(), ByteOrder::NATIVE).unwrap();
    let attr = Attr {
        kind: 1,
        sample_period: 1,
        sample_type: RARE,
        branch_sample_type: BranchSampleType(1 << 3),
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = file.add_event(&attr, vec![71], Some("cpu-clock".into())).unwrap();
    let (pid, tid) = (Pid(4711), Tid(4712));
    let mut time = 1_000_000_000;
    let mut write = |record: Record<'_>| {
        time += 1000;
        let sample_id = SampleId {
            pid: Some(pid),
            tid: Some(tid),
            time: Some(Nanos(time)),
            identifier: Some(71),
            ..SampleId::default()
        };
        let is_sample = matches!(record, Record::Sample(_));
        let record = match record {
            Record::Sample(sample) => Record::Sample(Sample { time: Some(Nanos(time)), ..sample }),
            other => other,
        };
        let sample_id = if is_sample { SampleId::default() } else { sample_id };
        file.write(event, &Parsed { misc: Misc(2), record, sample_id, rest: Bytes::default() }).unwrap();
    };
    for flags in [AuxFlags::default(), AuxFlags::TRUNCATED, AuxFlags::OVERWRITE | AuxFlags::PARTIAL] {
        write(Record::Aux(Aux { offset: 0x1_2340, size: 0x5678, flags }));
    }
    write(Record::ItraceStart(ItraceStart { pid, tid }));
    write(Record::AuxOutputHwId(AuxOutputHwId { hw_id: 0x1234_5678_9abc }));
    let [old, new] = [[0x0f, 0x1f, 0x44, 0, 0], [0xe9, 1, 2, 3, 4]];
    let address = Avma(0xffff_ffff_8100_0123);
    for (old, new) in [(&old[..], &new[..]), (&[], &new[..3]), (&old[..], &[])] {
        write(Record::TextPoke(TextPoke { address, old: old.into(), new: new.into() }));
    }
    // From, to, and flags: predicted wrongly and rightly, in a transaction and its end, after so many cycles.
    let branches = [0x40_1000, 0x40_2000, 0b0001 | 77 << 4, 0x40_2010, 0x40_3000, 0b1110 | 65_535 << 4];
    let sample = Sample {
        identifier: Some(71),
        ip: Some(Avma(0x40_1000)),
        pid: Some(pid),
        tid: Some(tid),
        addr: Some(Avma(0x7000_1000)),
        period: Some(250),
        branch_stack: BranchStack::new(None, Words::from(&branches[..]), None),
        weight: Some(Weight(0x77)),
        data_source: Some(DataSource(0x88)),
        transaction: Some(Transaction(0x9_0000_0041)),
        phys_addr: Some(0xaaaa_0000),
        cgroup: Some(0xbb),
        data_page_size: Some(4096),
        code_page_size: Some(2 << 20),
        ..Sample::default()
    };
    // The kernel has raw data end at a multiple of 8.
    for raw in [&b"four"[..], b"twelve bytes"] {
        for aux in [&b"eight by"[..], b""] {
            write(Record::Sample(Sample { raw: Some(raw.into()), aux: Some(aux.into()), ..sample }));
        }
    }
    file.finish().unwrap();
    let printed = report_of(&path);
    let kinds = [Kind::AUX, Kind::ITRACE_START, Kind::AUX_OUTPUT_HW_ID, Kind::TEXT_POKE, Kind::SAMPLE];
    assert_eq!(compare_file("rare", &path, &printed, &kinds), RARE);
    let count = |kind| printed.iter().filter(|record| record.kind == kind).count();
    assert_eq!(["AUX", "TEXT_POKE", "SAMPLE"].map(count), [3, 3, 4]);
}

/// `PERF_AUXTRACE_INTEL_BTS`, with as many words as its decoder wants.
fn branch_trace(order: ByteOrder) -> OwnedRecord {
    made(RecordKind::AUXTRACE_INFO, order, &[&[U32(2), U32(0), U64(99)][..], &[U64(0); 8]].concat())
}

/// `perf script` prints them; they are made here.
#[test]
fn errors_of_traces_are_what_perf_says_they_are() {
    if !can_record() {
        return;
    }
    let order = ByteOrder::NATIVE;
    let attr = [U32(1), U32(64), U64(0), U64(4000), U64(7), U64(0), U64(0), U64(0), U64(0), U64(71)];
    let head = |format| [U32(1), U32(7), U32(3), U32(10), U32(11), U32(format), U64(0x0040_1000)];
    let message = Text("Lost trace data", 16);
    let time = U64(5_000_000_055);
    let guest = [time, Text("Lost trace data", 64), U32(900), U32(2)];
    let errors = [
        [&head(0)[..], &[message]].concat(),
        [&head(1)[..], &[time, message]].concat(),
        [&head(2)[..], &guest].concat(),
    ];
    let errors = errors.map(|parts| made(RecordKind::AUXTRACE_ERROR, order, &parts));
    let mut stream = [*b"PERFILE2", 16_u64.to_ne_bytes()].concat();
    for record in [made(RecordKind::HEADER_ATTR, order, &attr), branch_trace(order)].iter().chain(&errors) {
        record.as_raw().write(order, &mut stream).unwrap();
    }
    let path = folder().join("errors.stream");
    fs::write(&path, &stream).unwrap();
    let perf =
        Command::new("perf").args(["script", "-i", "-"]).stdin(File::open(path).unwrap()).output().unwrap();
    let ours = errors.iter().map(|record| {
        let UserRecord::AuxtraceError(error) = record.as_raw().parse_user(order).record else {
            panic!("{record:?}");
        };
        report_user::error_line(&error)
    });
    let theirs = String::from_utf8_lossy(&perf.stdout);
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours.collect::<Vec<_>>());
}
