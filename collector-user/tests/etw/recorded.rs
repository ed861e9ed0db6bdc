//! Files as a recording on Windows leaves them, read as that does: one file and two, whose processes are wanted, and what was lost.

use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;

use collector_common::event::{FileTime, Guid};
use collector_common::ids::{Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::record::{EventRecords, ExportMachine};
use collector_user::etw::{Asked, Asking, Lost, Recorded, RecordedPart, Taker, Trace};
use windows_etw::decode::kernel::{KernelEvent, PERF_INFO};
use windows_etw::etl::{Clock, ClockKind, EtlFile, TraceVersion};
use windows_etw::record::{Descriptor, EtwRecord, Extended, PointerSize, Schema};

use crate::data::{baseline, bytes, counts, number, split, value};

const FILE: &str = "net.4.5.2.x64.etl";
/// `Test.x64.exe`, which `cmd.exe` makes in the middle of the trace.
const TEST: Pid = Pid(3676);
const CMD: Pid = Pid(3508);
const PERFVIEW: Pid = Pid(3988);

fn part(bytes: &[u8], lost: Lost) -> RecordedPart<Cursor<Vec<u8>>> {
    RecordedPart { file: EtlFile::open(Cursor::new(bytes.to_vec())).unwrap(), lost }
}

fn read(bytes: &[u8], whose: &[Asked]) -> Recorded {
    let asking = Asking {
        whose: whose.to_vec(),
        volumes: vec![(r"\Device\Mup\DfsClient\;Z:0000000000020d40\clrmain\".to_owned(), r"X:\".to_owned())],
        event_bytes: EventRecords::LIMIT,
        frequency_hz: 997,
        tells_lives: true,
        began_after_ns: 1000,
        ..Asking::default()
    };
    Recorded::read(vec![part(bytes, Lost::default())], &asking).unwrap()
}

/// Processes of samples and of raw events, by number.
fn pids(machine: &ExportMachine) -> [BTreeSet<Pid>; 2] {
    let pid = |thread| machine.process(machine.thread(thread).process).pid;
    let events = machine.event_records().iter().map(|(_, record, _)| pid(record.thread));
    [machine.samples().iter().map(|sample| pid(sample.thread)).collect(), events.collect()]
}

/// CPU samples of a process, by the records themselves: those of its threads, whose numbers no other process has in this trace.
fn samples_of(bytes: &[u8], of: Pid) -> u64 {
    let mut file = EtlFile::open(Cursor::new(bytes)).unwrap();
    let mut threads: HashMap<Tid, Pid> = HashMap::new();
    let mut samples = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        match KernelEvent::decode(&record) {
            Ok(Some(
                KernelEvent::ThreadStart(thread)
                | KernelEvent::ThreadDcStart(thread)
                | KernelEvent::ThreadDcStop(thread),
            )) => {
                threads.insert(thread.tid, thread.pid);
            }
            Ok(Some(KernelEvent::Sample(sample))) => samples.push(sample.tid),
            _ => {}
        }
    }
    samples.iter().filter(|tid| threads.get(tid) == Some(&of)).count() as u64
}

/// Samples of a kind called `cpu`.
fn cpu(machine: &ExportMachine) -> u64 {
    let kinds = machine.kinds();
    let is_cpu = |kind: u16| machine.string(kinds[usize::from(kind)].name) == "cpu";
    machine.samples().iter().filter(|sample| is_cpu(sample.kind.0)).count() as u64
}

/// A process and all below it, by the records themselves: no number is used twice in this trace.
fn family(bytes: &[u8], of: Pid) -> BTreeSet<Pid> {
    let mut file = EtlFile::open(Cursor::new(bytes)).unwrap();
    let mut made = Vec::new();
    while let Some(record) = file.next_record().unwrap() {
        if let Ok(Some(KernelEvent::ProcessStart(process) | KernelEvent::ProcessDcStart(process))) =
            KernelEvent::decode(&record)
        {
            made.push((process.parent.0, process.pid.0));
        }
    }
    // PerfView counts 32 that were there before, and one that began.
    assert_eq!(made.len(), 33);
    let mut family = BTreeSet::from([of]);
    for _ in 0..made.len() {
        let children = made.iter().filter(|(parent, _)| family.contains(parent));
        let children: Vec<Pid> = children.map(|(_, child)| *child).collect();
        family.extend(children);
    }
    assert!(family.contains(&TEST) && (2..10).contains(&family.len()), "{family:?}");
    family
}

#[test]
fn without_a_choice_all_is_there_and_all_is_accounted_for() {
    let Some(bytes) = bytes(FILE) else { return };
    let Recorded { machine, stats, warnings, .. } = read(&bytes, &[]);
    let told = baseline(FILE);
    let processes: BTreeSet<Pid> = told
        .lines()
        .filter(|line| line.contains("Windows Kernel/Process/Start "))
        .map(|line| Pid(number(value(line, "ProcessID")) as u32))
        .collect();
    assert!(processes.contains(&TEST));
    let lives = machine.lives().iter().map(|life| machine.process(life.process).pid);
    assert_eq!(lives.collect::<BTreeSet<_>>(), processes);

    let json = stats.to_json();
    let count = machine.samples().len() as u64;
    assert_eq!((&json["backend"], json["frequency_hz"].as_u64()), (&"etw".into(), Some(997)));
    assert_eq!(json["samples"]["produced"].as_u64(), Some(count));
    assert_eq!(json["samples"]["delivered"].as_u64(), Some(count));
    assert!(json["lost"].as_object().unwrap().values().all(|lost| lost.as_u64() == Some(0)));
    assert_eq!(json["kernel"], "Windows 6.2.9200");
    // The last event that PerfView lists.
    assert!((12_581_000_000..13_000_000_000).contains(&stats.duration_ns), "{}", stats.duration_ns);
    let first = stats.start_to_first_sample_ns.unwrap();
    // PerfView: the first sample is 29.4 ms after the beginning.
    assert!((1000..60_000_000).contains(&first), "{first}");
    assert!(json["frames"].as_u64().unwrap() > 10 * count, "{}", json["frames"]);
    assert!(warnings.iter().all(|line| !line.contains("no process")), "{warnings:?}");
    assert!(machine.system().account[0].starts_with("none lost"), "{:?}", machine.system().account);
}

#[test]
fn a_started_process_is_all_that_is_kept() {
    let Some(bytes) = bytes(FILE) else { return };
    let Recorded { machine, stats, warnings, .. } = read(&bytes, &[Asked::Started(TEST)]);
    assert_eq!(pids(&machine), [BTreeSet::from([TEST]), BTreeSet::from([TEST])]);
    let cpu = cpu(&machine);
    assert_eq!(cpu, samples_of(&bytes, TEST));
    assert!(cpu > 3000, "{cpu}");
    assert_eq!(stats.ledger.delivered(), machine.samples().len() as u64);
    assert!(warnings.iter().all(|line| !line.contains("no process")), "{warnings:?}");
    assert_eq!(machine.lives().len(), 1);
    // It is on another machine, which the trace has no drive for.
    let test = machine.modules().iter().map(|module| machine.string(module.path));
    let test: Vec<&str> = test.filter(|path| path.ends_with(r"\Test.x64.exe")).collect();
    assert!(test.contains(&r"X:\public\PerfInvestigations\20-07-28.TestTraces\Test.x64.exe"), "{test:?}");
}

/// Those of others come before and between, and are many times as many.
#[test]
fn events_of_others_take_no_room() {
    let Some(bytes) = bytes(FILE) else { return };
    let read_of = |whose: &[Asked], comm: Option<&str>, event_bytes| {
        let (whose, comm) = (whose.to_vec(), comm.map(str::to_owned));
        let asking = Asking { whose, comm, event_bytes, ..Asking::default() };
        let Recorded { machine, stats, .. } =
            Recorded::read(vec![part(&bytes, Lost::default())], &asking).unwrap();
        let records = machine.event_records();
        let own = records.iter().map(|(_, record, bytes)| (record.time, bytes.to_vec())).collect::<Vec<_>>();
        (own, stats.ledger.lost(LossCause::EventsFull))
    };
    let read = |whose: &[Asked], event_bytes| read_of(whose, None, event_bytes);
    let (all, lost) = read(&[], EventRecords::LIMIT);
    let (own, _) = read(&[Asked::Started(TEST)], EventRecords::LIMIT);
    assert!(lost == 0 && own.len() > 10_000 && all.len() > 2 * own.len(), "{}, {}", own.len(), all.len());
    // Each takes its bytes and, with all that is told of it, less than 100 more.
    let room = own.iter().map(|(_, bytes)| bytes.len() as u64 + 100).sum();
    assert!(read(&[], room).1 > 0);
    let (kept, lost) = read(&[Asked::Started(TEST)], room);
    assert_eq!((kept.len(), lost), (own.len(), 0));
    assert!(kept == own);
    // By its name it is the same one.
    let (kept, lost) = read_of(&[], Some("test.X64.exe"), room);
    assert!(lost == 0 && kept == own, "{lost}, {}", kept.len());
}

#[test]
fn children_are_kept_with_their_parents() {
    let Some(bytes) = bytes(FILE) else { return };
    let Recorded { machine, .. } = read(&bytes, &[Asked::Running(CMD)]);
    let [samples, events] = pids(&machine);
    let family = family(&bytes, CMD);
    assert!(samples.contains(&TEST) && samples.is_subset(&family), "{samples:?}");
    assert!(events.contains(&TEST) && events.is_subset(&family), "{events:?}");
    let known: u64 = family.iter().map(|pid| samples_of(&bytes, *pid)).sum();
    assert_eq!(cpu(&machine), known);

    let Recorded { machine, .. } = read(&bytes, &[Asked::Running(PERFVIEW), Asked::Started(TEST)]);
    assert_eq!(cpu(&machine), samples_of(&bytes, TEST) + samples_of(&bytes, PERFVIEW));
}

/// Processes by their names, by the records themselves: no number is used twice in this trace.
fn called(bytes: &[u8], image: &str) -> BTreeSet<Pid> {
    let mut file = EtlFile::open(Cursor::new(bytes)).unwrap();
    let mut called = BTreeSet::new();
    while let Some(record) = file.next_record().unwrap() {
        if let Ok(Some(KernelEvent::ProcessStart(process) | KernelEvent::ProcessDcStart(process))) =
            KernelEvent::decode(&record)
            && process.image.to_string() == image
        {
            called.insert(process.pid.0);
        }
    }
    called
}

#[test]
fn all_processes_of_a_name_are_kept_and_nothing_that_they_make() {
    let Some(bytes) = bytes(FILE) else { return };
    let named = called(&bytes, "svchost.exe");
    assert!(named.len() > 5, "{named:?}");
    for (image, comm) in [("svchost.exe", "SvcHost.exe"), ("cmd.exe", "cmd.exe")] {
        let named = called(&bytes, image);
        let asking = Asking {
            comm: Some(comm.to_owned()),
            event_bytes: EventRecords::LIMIT,
            tells_lives: true,
            ..Asking::default()
        };
        let Recorded { machine, stats, warnings, .. } =
            Recorded::read(vec![part(&bytes, Lost::default())], &asking).unwrap();
        assert!(pids(&machine).iter().all(|pids| !pids.is_empty() && pids.is_subset(&named)), "{comm}");
        assert_eq!(cpu(&machine), named.iter().map(|pid| samples_of(&bytes, *pid)).sum::<u64>(), "{comm}");
        assert_eq!(stats.ledger.delivered(), machine.samples().len() as u64);
        assert!(machine.lives().is_empty(), "{comm}");
        assert!(warnings.iter().all(|line| !line.contains("no process")), "{warnings:?}");
    }
}

#[test]
fn who_was_not_there_at_the_beginning_is_not_meant() {
    let Some(bytes) = bytes(FILE) else { return };
    let Recorded { machine, stats, warnings, .. } = read(&bytes, &[Asked::Running(TEST)]);
    assert_eq!(
        (machine.samples().len(), stats.ledger.produced(), machine.event_records().iter().count()),
        (0, 0, 0)
    );
    assert_eq!(stats.start_to_first_sample_ns, None);
    let told = format!("no process {TEST} was there when the recording began");
    assert!(warnings.contains(&told), "{warnings:?}");
}

#[test]
fn two_files_are_one_recording_in_the_order_of_time() {
    let Some(bytes) = bytes(FILE) else { return };
    let whole = read(&bytes, &[]).machine;
    let parts = split(&bytes).map(|bytes| part(&bytes, Lost::default())).into();
    let asking = Asking { event_bytes: EventRecords::LIMIT, ..Asking::default() };
    let Recorded { machine, stats, .. } = Recorded::read(parts, &asking).unwrap();
    let of = |machine: &ExportMachine| {
        let rows = machine.samples().iter();
        let rows = rows.map(|it| (it.time, it.cpu, it.value, machine.stacks().get(it.stack).len()));
        // Of one time it is not said which comes first.
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        rows
    };
    let told = baseline(FILE);
    let told = counts(&told).find(|(name, _)| *name == "Windows Kernel/PerfInfo/Sample").unwrap().1;
    assert!(told > 6000 && cpu(&whole) <= told, "{told}");
    let [of_parts, of_whole] = [of(&machine), of(&whole)];
    let differ = of_parts.iter().zip(&of_whole).position(|(one, other)| one != other);
    assert_eq!((of_parts.len(), differ), (of_whole.len(), None));
    // Half of the buffers that the header counts are in the other file.
    assert!(stats.ledger.lost(LossCause::BufferLost) > 0);
}

#[test]
fn what_a_session_and_its_file_lost_is_in_the_ledger_once() {
    let Some(mut bytes) = bytes(FILE) else { return };
    // The header of a buffer has 72 bytes, that of the record 32; `TRACE_LOGFILE_HEADER` has its counts at 0x30 and 0x114.
    for (at, count) in [(0x30, 7_u32), (0x114, 3)] {
        bytes[72 + 32 + at..][..4].copy_from_slice(&count.to_le_bytes());
    }
    let ledger = |lost| {
        let Recorded { machine, stats, .. } =
            Recorded::read(vec![part(&bytes, lost)], &Asking::default()).unwrap();
        assert_eq!(machine.system().lost, Some(stats.ledger.total_lost()));
        assert!(machine.system().account[0].contains("ring_full"), "{:?}", machine.system().account);
        stats
    };
    let stats = ledger(Lost::default());
    let json = stats.to_json();
    assert_eq!(
        (json["lost"]["ring_full"].as_u64(), json["lost"]["buffer_lost"].as_u64()),
        (Some(7), Some(3))
    );
    assert_eq!(json["samples"]["produced"].as_u64(), Some(stats.ledger.delivered() + 10));
    let told = ledger(Lost { events: 9, buffers: 2 }).ledger;
    assert_eq!([LossCause::RingFull, LossCause::BufferLost].map(|cause| told.lost(cause)), [9, 3]);
}

/// Nanoseconds between CPU samples.
fn periods(machine: &ExportMachine) -> Vec<u64> {
    let kinds = machine.kinds().iter().filter(|kind| machine.string(kind.name).starts_with("cpu"));
    kinds.map(|kind| kind.period).collect()
}

#[test]
fn the_interval_is_the_traces_own_or_else_what_the_session_told() {
    // One sample by hand: its address, its thread, a count and flags.
    let payload: Vec<u8> = [0x1000_u64.to_le_bytes(), [9, 0, 0, 0, 1, 0, 0, 0]].concat();
    let sampled = |told: Option<u32>| {
        let clock = Clock {
            kind: ClockKind::PerformanceCounter,
            frequency: 1_000_000_000,
            start_ticks: 0,
            start: FileTime(132_223_104_000_000_000),
        };
        let (windows, pointer_size) = (TraceVersion::default(), PointerSize::Bits64);
        let mut taker = Taker::new(Trace { clock, boot: None, end: None, cpus: 1, windows, pointer_size }, 0);
        taker.take(&EtwRecord {
            provider: PERF_INFO,
            descriptor: Descriptor { opcode: 46, version: 2, ..Descriptor::default() },
            schema: Schema::Classic,
            pointer_size,
            pid: None,
            tid: None,
            cpu: 0,
            ticks: 5,
            activity: Guid([0; 16]),
            extended: Extended::default(),
            payload: &payload,
        });
        if let Some(units) = told {
            taker.tell_interval(units);
        }
        periods(&taker.finish().machine)
    };
    assert_eq!([sampled(Some(2500)), sampled(None)], [[250_000], [1_000_000]]);

    let Some(bytes) = bytes(FILE) else { return };
    let asking = Asking { interval_100ns: Some(2500), ..Asking::default() };
    let own = Recorded::read(vec![part(&bytes, Lost::default())], &asking).unwrap();
    assert_eq!(periods(&own.machine), [1_000_000]);
}

#[test]
fn nothing_is_no_recording() {
    let none: Vec<RecordedPart<Cursor<Vec<u8>>>> = Vec::new();
    assert!(Recorded::read(none, &Asking::default()).is_err());
}
