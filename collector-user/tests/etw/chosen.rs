//! What of a file is kept: processes of a name, alone or among those that are asked for, and times off a CPU that are long enough.

use std::collections::BTreeSet;
use std::io::Cursor;

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{EventRecords, ExportMachine};
use collector_user::etw::{Asked, Asking, Lost, Recorded, RecordedPart, Shortest};
use windows_etw::etl::EtlFile;

use crate::file::{Buffer, TICKS, Trace, perf_info};
use crate::made::Payload;
use crate::shown;

/// Opcodes of processes and threads.
const START: u8 = 1;
const THERE: u8 = 3;
const THERE_AT_THE_END: u8 = 4;

/// `Process`, by its number and that of the one that made it.
fn process(at: i64, opcode: u8, [pid, parent]: [u32; 2], image: &str) -> Vec<u8> {
    let payload = Payload::default().u64(&[0x1000]).u32(&[pid, parent, 1, 0, 0]);
    let payload = payload.u8(image.as_bytes()).u8(&[0]).wide(image);
    perf_info(17, 2, (3, opcode), TICKS + at, &payload.0)
}

/// `Thread`, by its process and its number.
fn thread(at: i64, opcode: u8, numbers: [u32; 2]) -> Vec<u8> {
    let payload = Payload::default().u32(&numbers).u64(&[0; 7]).u32(&[0]);
    perf_info(17, 2, (5, opcode), TICKS + at, &payload.0)
}

/// `Image/Load`, which is among the processes' events in a file.
fn image(at: i64, pid: u32, path: &str) -> Vec<u8> {
    const BASE: u64 = 0x7ff0_0000;
    let payload = Payload::default().u64(&[BASE, 0x1_0000]).u32(&[pid, 1, 2, 0]).u64(&[BASE, 0, 0]);
    perf_info(17, 2, (3, 10), TICKS + at, &payload.wide(path).0)
}

/// `PerfInfo/Sample`.
fn sample(at: i64, tid: u32) -> Vec<u8> {
    let payload = Payload::default().u64(&[0x10_0000]).u32(&[tid]).u8(&[1, 0, 0, 0]);
    perf_info(17, 2, (15, 46), TICKS + at, &payload.0)
}

/// `Thread/CSwitch`: the old thread's state is 5 if it waits.
fn switch(at: i64, old: u32, new: u32) -> Vec<u8> {
    let state = if old == 0 { 2 } else { 5 };
    let payload = Payload::default().u32(&[new, old]).u8(&[8, 8, 0, 0, 4, 1, state, 0]).u32(&[0, 0]);
    perf_info(17, 2, (5, 36), TICKS + at, &payload.0)
}

fn read(records: &[Vec<u8>], asking: &Asking) -> Recorded {
    let buffer = Buffer { size: 4096, ..Buffer::default() }.bytes(records);
    let file = EtlFile::open(Cursor::new(Trace::default().file(&[buffer]))).unwrap();
    Recorded::read(vec![RecordedPart { file, lost: Lost::default() }], asking).unwrap()
}

/// `Work.exe` with a child of another name, which makes a `work.exe` again; and a thread of which nothing is told.
fn family() -> Vec<Vec<u8>> {
    vec![
        process(1, THERE, [70, 4], "Work.exe"),
        process(1, THERE, [80, 70], "other.exe"),
        thread(2, THERE, [70, 71]),
        thread(2, THERE, [80, 81]),
        sample(10, 71),
        sample(11, 81),
        process(20, START, [90, 80], "work.exe"),
        thread(21, START, [90, 91]),
        sample(30, 91),
        sample(31, 71),
        sample(32, 500),
    ]
}

fn read_family(whose: &[Asked], comm: Option<&str>) -> Recorded {
    let asking = Asking {
        whose: whose.to_vec(),
        comm: comm.map(str::to_owned),
        event_bytes: EventRecords::LIMIT,
        tells_lives: true,
        ..Asking::default()
    };
    read(&family(), &asking)
}

fn threads(recorded: &Recorded) -> Vec<u32> {
    shown::samples(&recorded.machine, "cpu").into_iter().map(|it| it.tid).collect()
}

fn pids_of_events(machine: &ExportMachine) -> BTreeSet<u32> {
    let pid = |thread| machine.process(machine.thread(thread).process).pid.0;
    machine.event_records().iter().map(|(_, record, _)| pid(record.thread)).collect()
}

#[test]
fn a_name_is_of_processes_and_not_of_what_they_make() {
    let all = read_family(&[], None);
    assert_eq!(threads(&all), [71, 81, 91, 71, 500]);
    assert!(pids_of_events(&all.machine).is_superset(&[70, 80, 90].into()));

    let named = read_family(&[], Some("WORK.exe"));
    assert_eq!(threads(&named), [71, 91, 71]);
    assert_eq!(pids_of_events(&named.machine), [70, 90].into());
    assert_eq!((named.stats.ledger.delivered(), named.stats.ledger.total_lost()), (3, 0));
    let lives = |recorded: &Recorded| {
        let machine = &recorded.machine;
        machine.lives().iter().map(|life| machine.process(life.process).pid.0).collect::<Vec<_>>()
    };
    assert_eq!(lives(&named), [90]);
    assert!(!named.warnings.iter().any(|line| line.contains("no process")), "{:?}", named.warnings);

    let other = read_family(&[], Some("other.exe"));
    assert_eq!((threads(&other), lives(&other)), (vec![81], vec![]));
}

#[test]
fn a_name_chooses_among_those_that_are_asked_for() {
    let of = |pid, comm| threads(&read_family(&[Asked::Running(Pid(pid))], comm));
    assert_eq!(of(70, None), [71, 81, 91, 71]);
    assert_eq!(of(70, Some("other.exe")), [81]);
    assert_eq!(of(80, None), [81, 91]);
    assert_eq!(of(80, Some("work.exe")), [91]);
    let started = read_family(&[Asked::Started(Pid(90))], Some("other.exe"));
    assert_eq!((threads(&started), pids_of_events(&started.machine)), (vec![], [].into()));
}

/// As it is told where nobody was asked for methods at the end.
#[test]
fn whether_dotnet_is_there_is_said_of_those_that_are_kept() {
    let has = |path: &str, whose: &[Asked]| {
        let mut records = family();
        records.push(image(40, 80, path));
        read(&records, &Asking { whose: whose.to_vec(), ..Asking::default() }).has_dotnet
    };
    let core = r"\Device\HarddiskVolume3\dotnet\CoreCLR.dll";
    assert!(has(core, &[]) && has(core, &[Asked::Running(Pid(70))]));
    assert!(has(r"C:\Windows\Microsoft.NET\Framework64\v4.0.30319\clr.dll", &[]));
    assert!(!has(core, &[Asked::Running(Pid(90))]));
    for other in [r"C:\notclr.dll", r"C:\clr.dll\other.dll", ""] {
        assert!(!has(other, &[]), "{other}");
    }
}

#[test]
fn a_name_that_nobody_has_is_told_with_what_is_like_it() {
    let nobody = read_family(&[], Some("work"));
    assert_eq!((threads(&nobody), nobody.machine.samples().len()), (vec![], 0));
    let told = "no process was called `work`: did you mean Work.exe or work.exe?; `tasklist` lists names";
    assert!(nobody.warnings.iter().any(|line| line.starts_with(told)), "{:?}", nobody.warnings);
}

#[test]
fn a_name_that_others_alone_have_is_told_where_some_are_asked_for() {
    let told = |asked, comm| {
        let recorded = read_family(&[asked], Some(comm));
        let told: Vec<_> =
            recorded.warnings.iter().filter(|line| line.starts_with("no process")).cloned().collect();
        (threads(&recorded), told)
    };
    assert_eq!(told(Asked::Running(Pid(80)), "other.exe"), (vec![81], vec![]));
    assert_eq!(told(Asked::Running(Pid(70)), "other.exe"), (vec![81], vec![]));
    let (kept, told) = told(Asked::Started(Pid(90)), "other.exe");
    assert!(kept.is_empty());
    let [line] = &told[..] else { panic!("{told:?}") };
    assert!(line.starts_with("no process that was asked for was called `other.exe`; "), "{line}");
}

#[test]
fn a_name_that_is_told_at_the_end_is_of_all_that_was_recorded() {
    let records = [
        process(1, THERE, [70, 4], ""),
        process(1, THERE, [80, 4], ""),
        thread(2, THERE, [70, 71]),
        thread(2, THERE, [80, 81]),
        sample(10, 71),
        sample(11, 81),
        process(40, THERE_AT_THE_END, [70, 4], "make.exe"),
        process(40, THERE_AT_THE_END, [80, 4], "cc.exe"),
    ];
    let recorded = read(&records, &Asking { comm: Some("make.exe".to_owned()), ..Asking::default() });
    assert_eq!(threads(&recorded), [71]);
}

#[test]
fn times_off_that_are_too_short_are_no_samples_and_no_losses() {
    // Ticks are 100 ns: 71 is off its CPU for 10 and for 100 microseconds.
    let switches = [switch(0, 71, 0), switch(100, 0, 71), switch(200, 71, 0), switch(1200, 0, 71)];
    let told = |micros: u64| {
        let shortest = Shortest { off_cpu: Nanos(micros * 1000), ..Shortest::default() };
        let asking = Asking { scenarios: vec!["off_cpu".to_owned()], shortest, ..Asking::default() };
        let Recorded { machine, stats, .. } = read(&switches, &asking);
        let values: Vec<_> = shown::samples(&machine, "off_cpu").into_iter().map(|it| it.value).collect();
        (values, [stats.ledger.produced(), stats.ledger.delivered(), stats.ledger.total_lost()])
    };
    assert_eq!(told(0), (vec![10_000, 100_000], [2, 2, 0]));
    assert_eq!(told(10), told(0));
    assert_eq!(told(11), (vec![100_000], [1, 1, 0]));
    assert_eq!(told(101), (vec![], [0, 0, 0]));
}
