//! What another program writes into BPF maps: `bpf_output.c` has a program of its own in the kernel, put together by hand, that
//! writes a numbered record for each call that is marked, and counts what it wrote and what it could not.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use aya::maps::MapData;
use collector_common::event::{Context, EventFlags, EventId, filter};
use collector_common::loss::LossCause;
use collector_common::sharing::Writable;
use collector_user::clock;
use collector_user::session::{self, Recording, Session, SessionSettings};
use collector_user::source::bpf_map::{BpfMap, BpfMapError, MapKind, MapSpec};
use collector_user::source::{Hook, Settings};
use collector_user::tracefs::Tracefs;
use tempfile::TempDir;

use crate::prerequisites::{live_with, skip};
use crate::programs::{Running, compile, folder};
use crate::recording::{collector, record, run};

/// What `bpf_output.c` writes.
const FIELDS: &str = "(pid:u32, tid:u32, number:u64, ns:u64, comm:char[16])";

/// A BPF file system of the test's own.
struct Pins(TempDir);

impl Pins {
    fn new() -> Self {
        let folder = folder();
        let mut mount = Command::new("mount");
        assert!(mount.args(["-t", "bpf", "bpf"]).arg(folder.path()).status().unwrap().success());
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `bpf:` and a path.
    fn spec(&self, rest: &str) -> String {
        format!("bpf:{}/{rest}", self.0.path().display())
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.0.path()).status().unwrap().success());
    }
}

/// The other program, with its map at `events`.
struct Writer {
    // Before the file system that it unpins from.
    child: Child,
    answers: BufReader<ChildStdout>,
    program: PathBuf,
    id: u32,
    pins: Pins,
    _folder: TempDir,
}

impl Writer {
    fn start(kind: &str, size: u32) -> Self {
        let (pins, folder) = (Pins::new(), folder());
        let program = compile(folder.path(), "bpf_output", "bpf_output.c", &[]);
        let tracepoint = Tracefs::open().unwrap().event("syscalls:sys_enter_getpgid").unwrap().id().0;
        let mut child = Command::new(&program)
            .args(["serve", kind, &size.to_string(), &tracepoint.to_string()])
            .arg(pins.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut writer = Self { child, answers, program, id: 0, pins, _folder: folder };
        let answer = writer.answer();
        writer.id = answer.strip_prefix("ready ").unwrap().parse().unwrap();
        writer
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// How many records it wrote so far, and how many it could not.
    fn counts(&mut self) -> [u64; 2] {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let answer = self.answer();
        let (wrote, failed) = answer.split_once(' ').unwrap();
        [wrote, failed].map(|count| count.parse().unwrap())
    }

    /// How many slots of its map somebody has, which it empties.
    fn slots(&mut self) -> u64 {
        self.child.stdin.as_mut().unwrap().write_all(b"slots\n").unwrap();
        self.answer().parse().unwrap()
    }

    /// What makes it write records with these numbers, and the pid of it.
    fn call(&self, first: u64, count: u64) -> u32 {
        let mut caller = Command::new(&self.program);
        let mut caller = caller.args(["call", &first.to_string(), &count.to_string()]).spawn().unwrap();
        assert!(caller.wait().unwrap().success());
        caller.id()
    }

    fn hook(&self) -> Hook {
        MapSpec::parse(&self.pins.spec(&format!("events{FIELDS}"))).unwrap().open().unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// A record that a closure got.
#[derive(Clone, Debug)]
struct Seen {
    pid: u32,
    tid: u32,
    number: u64,
    ns: u64,
    comm: String,
    context: Context,
}

type Records = Writable<Vec<Seen>>;

/// Keeps all records of a hook.
fn keep(hook: &mut Hook) -> Records {
    let seen = Records::new(Vec::new());
    let kept = seen.clone();
    let [pid, tid, number, ns, comm] =
        ["pid", "tid", "number", "ns", "comm"].map(|name| hook.event.format().field_ref(name).unwrap());
    hook.event.add_closure(move |data| {
        let record = Seen {
            pid: data.try_get_u32(pid)?,
            tid: data.try_get_u32(tid)?,
            number: data.try_get_u64(number)?,
            ns: data.try_get_u64(ns)?,
            comm: data.try_get_str(comm)?.to_owned(),
            context: *data.context().unwrap(),
        };
        Ok(kept.write(|seen| seen.push(record))?)
    });
    seen
}

fn numbers(records: &Records) -> Vec<u64> {
    records.write(|seen| seen.iter().map(|record| record.number).collect()).unwrap()
}

fn start(events: Vec<Hook>, settings: SessionSettings) -> Session {
    let sampling = Settings { clock: false, ..settings.sampling };
    Session::start(SessionSettings { sampling, events, ..settings }, None).unwrap()
}

/// Records while a command runs.
fn record_command(settings: SessionSettings, command: &[String]) -> Recording {
    let command: Vec<_> = command.iter().map(Into::into).collect();
    let mut session = Session::start(settings, Some(session::Command::start(&command).unwrap())).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    session.finish().unwrap()
}

fn caller(writer: &Writer, first: u64, count: u64) -> [String; 4] {
    let program = writer.program.to_str().unwrap();
    [program, "call", &first.to_string(), &count.to_string()].map(str::to_owned)
}

/// The programs beside those of all live tests.
const PROGRAMS: [&str; 2] = ["mount", "umount"];

#[test]
fn records_of_a_ring_map_are_what_was_written() {
    let Some(_live) = live_with("records_of_a_ring_map_are_what_was_written", &PROGRAMS) else { return };
    let mut writer = Writer::start("ring", 1 << 20);
    // What waits already is taken, too.
    let before = clock::now();
    let early = writer.call(0, 100);
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let settings = SessionSettings {
        sampling: Settings { clock: false, ..Settings::default() },
        events: vec![hook],
        ..SessionSettings::default()
    };
    let recording = record_command(settings, &caller(&writer, 100, 5000));
    let after = clock::now();
    assert_eq!(writer.counts(), [5100, 0]);
    assert_eq!(numbers(&seen), (0..5100).collect::<Vec<_>>());
    assert_eq!([recording.ledger.delivered(), recording.ledger.total_lost()], [5100, 0]);
    assert!(recording.machine.samples().is_empty(), "no stacks were asked for");
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    let seen = seen.into_inner().unwrap();
    let late = seen.last().unwrap().pid;
    for (at, record) in seen.iter().enumerate() {
        let Seen { pid, tid, ns, context, .. } = *record;
        assert_eq!((pid, tid, &*record.comm), (if at < 100 { early } else { late }, pid, "bpf_output"));
        // The time is when it was taken, and the thread what the fields say.
        assert_eq!([context.pid.0, context.tid.0], [pid, tid]);
        assert!(before.0 <= ns && ns <= context.time.0 && context.time <= after, "{record:?}");
    }
    assert!(seen.is_sorted_by_key(|record| record.ns) && seen.is_sorted_by_key(|record| record.context.time));
}

#[test]
fn records_of_a_perf_event_array_are_what_was_written() {
    let test = "records_of_a_perf_event_array_are_what_was_written";
    let Some(_live) = live_with(test, &PROGRAMS) else { return };
    let mut writer = Writer::start("perf", 0);
    writer.call(0, 10);
    assert_eq!(writer.counts(), [0, 10], "nobody has a slot");
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let settings = SessionSettings {
        sampling: Settings { clock: false, ..Settings::default() },
        events: vec![hook],
        ..SessionSettings::default()
    };
    let before = clock::now();
    let recording = record_command(settings, &caller(&writer, 0, 5000));
    let after = clock::now();
    assert_eq!(writer.counts(), [5000, 10]);
    assert_eq!(numbers(&seen), (0..5000).collect::<Vec<_>>());
    assert_eq!([recording.ledger.delivered(), recording.ledger.total_lost()], [5000, 0]);
    let seen = seen.into_inner().unwrap();
    for record in &seen {
        let context = record.context;
        assert_eq!([context.pid.0, context.tid.0], [record.pid, record.tid], "as the kernel says, too");
        assert!(before.0 <= record.ns && record.ns <= context.time.0 && context.time <= after, "{record:?}");
    }
    // The slots are free again.
    assert_eq!(writer.slots(), 0);
    writer.call(0, 10);
    assert_eq!(writer.counts(), [5000, 20]);
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let Some(_live) = live_with("what_there_is_no_room_for_is_counted", &PROGRAMS) else { return };
    // As small as a ring may be.
    let small = SessionSettings {
        sampling: Settings { ring_bytes: Some(4096), ..Settings::default() },
        ..SessionSettings::default()
    };
    let mut writer = Writer::start("perf", 0);
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let session = start(vec![hook], small);
    // Meanwhile it takes nothing.
    writer.call(0, 20_000);
    let recording = session.finish().unwrap();
    let [wrote, failed] = writer.counts();
    assert!(failed > 0 && wrote + failed == 20_000, "{wrote} {failed}");
    assert_eq!([recording.ledger.delivered(), recording.ledger.lost(LossCause::RingFull)], [wrote, failed]);
    assert_eq!(recording.ledger.produced(), 20_000, "{:?}", recording.ledger);
    let numbers = numbers(&seen);
    assert!(numbers.len() as u64 == wrote && numbers.is_sorted());

    // Of a ring map the program alone knows.
    let mut writer = Writer::start("ring", 4096);
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let session = start(vec![hook], SessionSettings::default());
    writer.call(0, 20_000);
    let recording = session.finish().unwrap();
    let [wrote, failed] = writer.counts();
    // A record has 40 bytes and a header of 8.
    assert_eq!([wrote, failed], [4096 / 48, 20_000 - 4096 / 48]);
    assert_eq!([recording.ledger.delivered(), recording.ledger.total_lost()], [wrote, 0]);
    assert_eq!(self::numbers(&seen), (0..wrote).collect::<Vec<_>>());
}

#[test]
fn a_small_ring_is_emptied_in_time() {
    let Some(_live) = live_with("a_small_ring_is_emptied_in_time", &PROGRAMS) else { return };
    let mut writer = Writer::start("ring", 4096);
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let mut session = start(vec![hook], SessionSettings::default());
    // 85 records fit: 60 do once the 60 before are taken.
    let began = Instant::now();
    for round in 0..50 {
        writer.call(60 * round, 60);
        let all = 60 * (round as usize + 1);
        let is_there = || seen.write(|seen| seen.len() >= all).unwrap();
        while !is_there() && began.elapsed() < Duration::from_mins(1) {
            session.parse_until(|_| true).unwrap();
        }
    }
    let recording = session.finish().unwrap();
    assert_eq!(writer.counts(), [3000, 0]);
    assert_eq!(recording.ledger.delivered(), 3000);
    assert_eq!(numbers(&seen), (0..3000).collect::<Vec<_>>());
}

#[test]
fn two_readers_of_a_ring_map_share_its_records() {
    let Some(_live) = live_with("two_readers_of_a_ring_map_share_its_records", &PROGRAMS) else { return };
    let writer = Writer::start("ring", 1 << 20);
    let mut readers: Vec<_> = (0..2)
        .map(|_| {
            let mut hook = writer.hook();
            let seen = keep(&mut hook);
            assert!(hook.note().unwrap().contains("no other reader"), "{:?}", hook.note());
            (start(vec![hook], SessionSettings::default()), seen)
        })
        .collect();
    for round in 0..10 {
        writer.call(round * 10, 10);
        let (session, _) = &mut readers[round as usize % 2];
        session.parse_for(Duration::from_millis(1)).unwrap();
    }
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    for (session, seen) in readers {
        let recording = session.finish().unwrap();
        let own = numbers(&seen);
        assert!(own.len() >= 10 && own.is_sorted(), "{own:?}");
        assert_eq!(recording.ledger.delivered(), own.len() as u64);
        all.extend(own);
        warnings.extend(recording.warnings);
    }
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>(), "each record has one reader");
    assert!(warnings.len() == 2 && warnings.iter().all(|it| it.contains("another reader")), "{warnings:?}");
}

#[test]
fn slots_that_another_recording_took_stay_its_own() {
    let Some(_live) = live_with("slots_that_another_recording_took_stay_its_own", &PROGRAMS) else { return };
    let mut writer = Writer::start("perf", 0);
    let mut hooks = [(); 2].map(|()| writer.hook());
    let seen = hooks.each_mut().map(keep);
    assert!(hooks[0].note().unwrap().contains("takes the map's slots"), "{:?}", hooks[0].note());
    let [first, second] = hooks.map(|hook| start(vec![hook], SessionSettings::default()));
    writer.call(0, 100);
    assert_eq!(first.finish().unwrap().ledger.delivered(), 0);
    writer.call(100, 100);
    assert_eq!(second.finish().unwrap().ledger.delivered(), 200);
    assert_eq!(writer.slots(), 0);
    let third = start(vec![writer.hook()], SessionSettings::default());
    assert!(writer.slots() > 0, "while it is recorded");
    drop(third);
    assert_eq!(seen.each_ref().map(numbers), [vec![], (0..200).collect()]);
    assert_eq!(writer.counts(), [200, 0]);
}

#[test]
fn a_map_by_its_number_and_by_a_descriptor() {
    let Some(_live) = live_with("a_map_by_its_number_and_by_a_descriptor", &PROGRAMS) else { return };
    for (kind, expected) in [("ring", MapKind::Ring), ("perf", MapKind::PerfEvents)] {
        let mut writer = Writer::start(kind, 1 << 20);
        let mut by_id = MapSpec::parse(&format!("bpf:id:{}{FIELDS}", writer.id)).unwrap().open().unwrap();
        by_id.event.set_filter(Some(&filter::parse("number >= 30 && number < 70").unwrap())).unwrap();
        let seen = keep(&mut by_id);
        let session = start(vec![by_id], SessionSettings::default());
        writer.call(0, 100);
        assert_eq!(session.finish().unwrap().ledger.delivered(), 40);
        assert_eq!(numbers(&seen), (30..70).collect::<Vec<_>>());

        // A copy of a descriptor that is open elsewhere, as a loader in the same process has it.
        let elsewhere = MapData::from_pin(writer.pins.path("events")).unwrap();
        let map = BpfMap::from_fd(elsewhere.fd().as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(map.kind(), expected);
        let by_descriptor = MapSpec::parse(&format!("bpf:fd:{}", elsewhere.fd().as_fd().as_raw_fd()));
        let [own, known] = [by_descriptor.unwrap().open().unwrap().event.id(), EventId(writer.id.into())];
        assert_eq!(own, known, "it is the same map");
        let mut event = collector_common::event::Event::new(EventId(1), "own");
        let lengths = Writable::new(Vec::new());
        let kept = lengths.clone();
        event.add_closure(move |data| Ok(kept.write(|all| all.push(data.full_data().len()))?));
        let session = start(vec![Hook::bpf_map(event, map)], SessionSettings::default());
        writer.call(0, 10);
        assert_eq!(session.finish().unwrap().ledger.delivered(), 10);
        // A perf event's data with their length fill up eight bytes.
        let len = if expected == MapKind::Ring { 40 } else { 44 };
        assert_eq!(lengths.into_inner().unwrap(), [len; 10]);
        assert_eq!(writer.slots(), 0, "it leaves nothing in the map, which is open elsewhere");
        drop(elsewhere);
    }
}

#[test]
fn a_descriptor_may_be_closed_once_its_map_is_an_event() {
    let test = "a_descriptor_may_be_closed_once_its_map_is_an_event";
    let Some(_live) = live_with(test, &PROGRAMS) else { return };
    for kind in ["ring", "perf"] {
        let mut writer = Writer::start(kind, 1 << 20);
        let elsewhere = MapData::from_pin(writer.pins.path("events")).unwrap();
        let number = elsewhere.fd().as_fd().as_raw_fd();
        let mut hook = MapSpec::parse(&format!("bpf:fd:{number}{FIELDS}")).unwrap().open().unwrap();
        let seen = keep(&mut hook);
        drop(elsewhere);
        // Which have its number, as nobody else opens any.
        let others = [(); 4].map(|()| File::open("/dev/null").unwrap());
        let session = start(vec![hook], SessionSettings::default());
        writer.call(0, 100);
        let ledger = session.finish().unwrap().ledger;
        assert_eq!([ledger.delivered(), ledger.total_lost()], [100, 0], "{kind}");
        assert_eq!(numbers(&seen), (0..100).collect::<Vec<_>>(), "{kind}");
        assert_eq!(writer.slots(), 0, "{kind}");
        drop(others);
    }
}

/// What it was started with is open elsewhere still, so that the kernel would leave in the map what was put there through it.
#[test]
fn a_killed_recording_leaves_nothing_in_a_map_that_it_was_started_with() {
    let test = "a_killed_recording_leaves_nothing_in_a_map_that_it_was_started_with";
    let Some(_live) = live_with(test, &PROGRAMS) else { return };
    let mut writer = Writer::start("perf", 0);
    let map = MapData::from_pin(writer.pins.path("events")).unwrap();
    let mut recorder = collector();
    recorder.args(["run", "-e", &format!("bpf:fd:0{FIELDS}"), "-o", "-", "--format", "folded"]);
    recorder
        .stdin(map.fd().as_fd().try_clone_to_owned().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut recorder = Running::of(&mut recorder);
    let began = Instant::now();
    while writer.counts()[0] == 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "it does not record");
        writer.call(0, 1);
    }
    recorder.0.kill().unwrap();
    recorder.0.wait().unwrap();
    assert_eq!(writer.slots(), 0);
    drop(map);
}

#[test]
fn a_map_that_the_collector_is_started_with() {
    let Some(_live) = live_with("a_map_that_the_collector_is_started_with", &PROGRAMS) else { return };
    let mut writer = Writer::start("ring", 1 << 20);
    let folder = folder();
    let file = folder.path().join("x.jsonl");
    let map = MapData::from_pin(writer.pins.path("events")).unwrap();
    let mut recorder = collector();
    recorder.args(["run", "-e", &format!("bpf:fd:0{FIELDS}"), "-o"]).arg(&file).arg("--");
    recorder.args(caller(&writer, 0, 200)).stdin(map.fd().as_fd().try_clone_to_owned().unwrap());
    let output = recorder.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(writer.counts(), [200, 0]);
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let numbers = lines.filter_map(|line| line["fields"]["number"].as_u64());
    assert_eq!(numbers.collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_map_beside_the_sampling_clock() {
    let Some(_live) = live_with("a_map_beside_the_sampling_clock", &PROGRAMS) else { return };
    for (kind, backend) in
        [("ring", session::Backend::Ebpf), ("perf", session::Backend::Ebpf), ("ring", session::Backend::Perf)]
    {
        let writer = Writer::start(kind, 1 << 20);
        let mut hook = writer.hook();
        hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
        let settings = SessionSettings { events: vec![hook], backend, ..SessionSettings::default() };
        let recording = record_command(settings, &caller(&writer, 0, 1000));
        let machine = &recording.machine;
        let names: Vec<&str> = machine.kinds().iter().map(|kind| machine.string(kind.name)).collect();
        assert_eq!(names, ["cpu", &writer.pins.spec("events")]);
        let of_map: Vec<_> = machine.samples().iter().filter(|sample| sample.kind.0 == 1).collect();
        assert_eq!(of_map.len(), 1000);
        assert!(
            of_map.iter().all(|sample| machine.string(machine.thread(sample.thread).name) == "bpf_output")
        );
    }
}

#[test]
fn stacks_of_a_perf_event_array() {
    let Some(_live) = live_with("stacks_of_a_perf_event_array", &PROGRAMS) else { return };
    let writer = Writer::start("perf", 0);
    let folder = folder();
    let event = writer.pins.spec(&format!("events{FIELDS} /number < 300 && comm == 'bpf_output'/"));
    let caller = caller(&writer, 0, 1000);
    let args = ["-e", &event, "--"].into_iter().chain(caller.iter().map(String::as_str));
    let recorded = record(folder.path(), args);
    assert!(recorded.stderr.contains("takes the map's slots"), "{}", recorded.stderr);
    assert_eq!(recorded.samples_of("bpf_output"), 300, "{}", recorded.stderr);
    for stack in &recorded.stacks {
        assert!(!stack.is_cut() && stack.user_frames().any(|frame| frame == "main"), "{stack:?}");
        assert!(stack.frames.iter().any(|frame| frame.ends_with("_[k]")), "{stack:?}");
    }
}

#[test]
fn samples_of_a_ring_map_are_its_threads() {
    let Some(_live) = live_with("samples_of_a_ring_map_are_its_threads", &PROGRAMS) else { return };
    let writer = Writer::start("ring", 1 << 20);
    let folder = folder();
    let caller = caller(&writer, 0, 500);
    for (fields, comm) in [(FIELDS, "bpf_output"), ("", "[unknown]")] {
        let event = writer.pins.spec(&format!("events{fields}"));
        let args = ["-e", &event, "--"].into_iter().chain(caller.iter().map(String::as_str));
        let recorded = record(folder.path(), args);
        assert_eq!(recorded.samples_of(comm), 500, "{}: {:?}", recorded.stderr, recorded.stacks);
        assert_eq!(recorded.figure("/samples/delivered"), 500);
    }
}

#[test]
fn a_wrong_map_is_told_in_a_line() {
    let Some(_live) = live_with("a_wrong_map_is_told_in_a_line", &PROGRAMS) else { return };
    let writer = Writer::start("ring", 4096);
    let folder = folder();
    let spec = |rest| writer.pins.spec(rest);
    for (event, code, expected) in [
        (spec("event"), 2, "nothing is pinned there: did you mean bpf:/"),
        (spec("quite/else"), 2, "nor anything that is called alike"),
        ("bpf:/absent/map".to_owned(), 2, "as no BPF file system is"),
        (
            spec("table"),
            2,
            "is a map of type array, which gives no records: name one of type ringbuf or perf_event_array; there are bpf:id:",
        ),
        (spec("program"), 2, "is a program, not a map"),
        ("bpf:/dev/null".to_owned(), 2, "is nothing of BPF's"),
        ("bpf:id:4294967295".to_owned(), 2, "no map has this number; there are bpf:id:"),
        ("bpf:id:x".to_owned(), 2, "the form is bpf:/PATH"),
        ("bpf:fd:1000000".to_owned(), 2, "was started without this descriptor"),
        ("bpf:fd:0".to_owned(), 2, "not a map"),
        (spec("events(pid:u7)"), 2, "`u7` is no type of a field"),
        (spec("events(pid:u32) /pd == 1/"), 2, "did you mean `pid`"),
    ] {
        let output = run([
            "-e".as_ref(),
            event.as_ref(),
            "-o".as_ref(),
            folder.path().join("x.folded").as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{event}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "{event}: {stderr}");
    }
    let absent = MapSpec::parse("bpf:id:4294967295").unwrap().open().unwrap_err();
    let BpfMapError::NoSuchId { loaded, .. } = absent else { panic!("{absent}") };
    assert!(loaded.contains(&format!("bpf:id:{} (ringbuf numbered)", writer.id)), "{loaded:?}");
    let settings = || SessionSettings { events: vec![writer.hook(), writer.hook()], ..Default::default() };
    let error = Session::start(settings(), None).err().unwrap().to_string();
    assert!(error.contains("is recorded already"), "{error}");
    assert!(Path::new(&writer.pins.path("events")).exists());
}

#[test]
fn a_cpu_that_comes_back_has_its_slot_again() {
    let test = "a_cpu_that_comes_back_has_its_slot_again";
    let Some(_live) = live_with(test, &["mount", "umount", "taskset"]) else { return };
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    if !fs::read(switch).is_ok_and(|state| state == b"1\n") {
        return skip(test, "CPU 1 can't be put offline");
    }
    let writer = Writer::start("perf", 0);
    let mut hook = writer.hook();
    let seen = keep(&mut hook);
    let mut session = start(vec![hook], SessionSettings::default());
    for state in ["0", "1"] {
        fs::write(switch, state).unwrap();
    }
    let began = Instant::now();
    let is_there = || seen.write(|seen| seen.iter().any(|record| record.context.cpu == 1)).unwrap();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing of CPU 1");
        let mut caller = Command::new("taskset");
        let caller = caller.args(["-c", "1"]).arg(&writer.program).args(["call", "0", "5"]);
        assert!(caller.status().unwrap().success());
        session.parse_for(Duration::from_millis(100)).unwrap();
    }
    drop(session.finish().unwrap());
}
