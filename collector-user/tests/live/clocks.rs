//! The clock that closures are told times in: what a program saw on that clock before and after what it did.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_common::event::Event;
use collector_common::ids::Nanos;
use collector_common::sharing::Writable;
use collector_user::clock;
use collector_user::replay::Replay;
use collector_user::session::{Backend, EventClock, SessionSettings};
use collector_user::source::Hook;
use collector_user::tracefs::Tracefs;

use crate::prerequisites::{find, live_with};
use crate::programs::{compile, folder};
use crate::scenarios;

const CLOCKS: [EventClock; 3] = [EventClock::Monotonic, EventClock::Realtime, EventClock::Boottime];

/// Nanoseconds by which what is told may lie outside of what the program saw: clocks are not read at once.
const READ_APART: u64 = 1_000;

/// `perf record` reads the time of day in microseconds.
const READ_BY_PERF: u64 = 3_000;

/// A day, by which the test's time since boot is ahead: else it may be what the recording's clock shows.
const AHEAD: u64 = 86_400;

/// Runs a test again where time since boot is ahead, unless this is there.
fn runs_ahead(test: &str) -> bool {
    const MARK: &str = "COLLECTOR_TEST_IS_AHEAD";
    if env::var_os(MARK).is_some() {
        let anchor = clock::anchor();
        let ahead = anchor.boottime.unwrap().0 - anchor.monotonic.0;
        assert!(ahead >= AHEAD * 1_000_000_000, "{anchor:?}");
        return true;
    }
    let ahead = AHEAD.to_string();
    let output = Command::new("unshare")
        .args(["--time", "--fork", "--boottime", &ahead])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(MARK, "")
        .output()
        .unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    false
}

/// `bracketed.c`, and what it will tell.
struct Bracketed {
    program: PathBuf,
    told: PathBuf,
}

/// What a clock showed before and after each of the things that it did.
type Brackets = Vec<[u64; 2]>;

impl Bracketed {
    fn of(folder: &Path) -> Self {
        let program = compile(folder, "bracketed", "bracketed.c", &[]);
        Self { program, told: folder.join("told") }
    }

    fn command(&self) -> [OsString; 2] {
        [&self.program, &self.told].map(OsString::from)
    }

    fn brackets(&self, clock: EventClock) -> Brackets {
        let of_clock = CLOCKS.iter().position(|one| *one == clock).unwrap();
        let text = fs::read_to_string(&self.told).unwrap();
        let bracket = |line: &str| {
            let shown: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            assert_eq!(shown.len(), 6, "{line}");
            [shown[of_clock], shown[of_clock + 3]]
        };
        let brackets: Brackets = text.lines().map(bracket).collect();
        assert_eq!(brackets.len(), 20);
        brackets
    }
}

/// Times that closures were told, by what they are of.
type Told = Writable<BTreeMap<&'static str, Vec<Nanos>>>;

/// Has a closure note the times of an event.
fn note(event: &mut Event, name: &'static str, told: &Told) {
    let told = told.clone();
    event.add_closure(move |data| {
        let time = data.context().unwrap().time;
        Ok(told.write(|told| told.entry(name).or_default().push(time))?)
    });
}

/// How many brackets have a time in them, or just beside.
fn met(times: &[Nanos], brackets: &Brackets, apart: u64) -> usize {
    let is_met = |[before, after]: &&[u64; 2]| {
        times.iter().any(|time| (before - apart..=after + apart).contains(&time.0))
    };
    brackets.iter().filter(is_met).count()
}

/// Hooks that a recording by any backend takes: a tracepoint, and twice the same counter.
fn hooks(told: &Told) -> Vec<Hook> {
    let mut asked = Tracefs::open().unwrap().event("syscalls:sys_enter_getppid").unwrap();
    note(&mut asked, "asked", told);
    let mut hooks = vec![Hook::tracepoint(asked)];
    for name in ["fault", "same fault"] {
        let mut hook = Hook::counter("page-faults").unwrap();
        note(&mut hook.event, name, told);
        hooks.push(hook);
    }
    hooks
}

#[test]
fn closures_are_told_times_in_the_clock_that_was_chosen() {
    let test = "closures_are_told_times_in_the_clock_that_was_chosen";
    let Some(_live) = live_with(test, &["unshare"]) else { return };
    if !runs_ahead(&format!("clocks::{test}")) {
        return;
    }
    for (backend, event_clock) in [Backend::Ebpf, Backend::Perf]
        .into_iter()
        .flat_map(|backend| CLOCKS.map(|event_clock| (backend, event_clock)))
    {
        let (folder, told) = (folder(), Told::new(BTreeMap::new()));
        let bracketed = Bracketed::of(folder.path());
        let mut settings = SessionSettings { event_clock, backend, ..scenarios::settings(&[]) };
        if backend == Backend::Ebpf {
            // What comes of our programs' records, at once and when the thread is back.
            settings.events = scenarios::settings(&["syscalls", "off_cpu"]).events;
            for (name, known) in [("syscalls", "call"), ("off_cpu", "sleep")] {
                let hook = settings.events.iter_mut().find(|hook| hook.event.name() == name).unwrap();
                note(&mut hook.event, known, &told);
            }
        }
        settings.events.extend(hooks(&told));
        let recording = scenarios::record(settings, &bracketed.command());
        let (told, brackets) = (told.into_inner().unwrap(), bracketed.brackets(event_clock));
        let what = format!("{backend:?}, {event_clock}");
        assert_eq!(told["asked"].len(), brackets.len(), "{what}: {told:?}");
        assert_eq!(told.len(), if backend == Backend::Ebpf { 5 } else { 3 }, "{what}: {told:?}");
        for (name, times) in &told {
            let met = met(times, &brackets, READ_APART);
            // Of calls those that took longest are told: of a number the first one on each CPU.
            let enough = if *name == "call" { met > 0 } else { met == brackets.len() };
            assert!(enough, "{what}, {name}: {met} of {brackets:?} in {times:?}");
        }
        // The recording keeps its own, which samples of the sleeps tell.
        if backend == Backend::Ebpf {
            let times: Vec<Nanos> = recording.machine.samples().iter().map(|sample| sample.time).collect();
            let own = bracketed.brackets(EventClock::Monotonic);
            assert_eq!(met(&times, &own, READ_APART), own.len(), "{what}: {own:?} in {times:?}");
        }
    }
}

#[test]
fn closures_of_a_replayed_perf_data_are_told_the_time_of_day() {
    let test = "closures_of_a_replayed_perf_data_are_told_the_time_of_day";
    let Some(_live) = live_with(test, &["perf"]) else { return };
    let folder = folder();
    let (bracketed, data) = (Bracketed::of(folder.path()), folder.path().join("perf.data"));
    let record = |options: &[&str]| {
        let mut perf = Command::new(find("perf").unwrap());
        perf.args(["record", "-q", "-N"]).args(options).arg("-o").arg(&data);
        assert!(perf.arg("--").args(bracketed.command()).status().unwrap().success());
    };
    let asked = ["-e", "syscalls:sys_enter_getppid"];
    record(&[&asked[..], &["-k", "mono"]].concat());
    for clock in [EventClock::Monotonic, EventClock::Realtime] {
        let mut replay = Replay::open_path(&data).unwrap();
        let told = Told::new(BTreeMap::new());
        let [replayed] = replay.hooks_mut() else { panic!("one event was recorded") };
        note(&mut replayed.event, "asked", &told);
        replay.set_event_clock(clock).unwrap();
        replay.run();
        let (told, brackets) = (told.into_inner().unwrap(), bracketed.brackets(clock));
        let asked = &told["asked"];
        assert_eq!(asked.len(), brackets.len());
        assert_eq!(met(asked, &brackets, READ_BY_PERF), brackets.len(), "{clock}: {brackets:?}, {asked:?}");
    }
    let refused = |clock| Replay::open_path(&data).unwrap().set_event_clock(clock).unwrap_err().to_string();
    let told = refused(EventClock::Boottime);
    assert!(told.starts_with("closures can't be told times in CLOCK_BOOTTIME"), "{told}");
    // Its times are of the scheduler's clock, which nothing relates to others.
    record(&asked);
    let told = refused(EventClock::Realtime);
    assert!(
        told.starts_with("closures can't be told times in CLOCK_REALTIME") && told.contains("-k mono"),
        "{told}"
    );
    Replay::open_path(&data).unwrap().set_event_clock(EventClock::Monotonic).unwrap();
    // Those since boot are known where they are the recording's own.
    record(&["-e", "page-faults", "-c", "1", "-k", "boottime"]);
    let mut replay = Replay::open_path(&data).unwrap();
    let told = Told::new(BTreeMap::new());
    note(&mut replay.hooks_mut()[0].event, "fault", &told);
    replay.set_event_clock(EventClock::Boottime).unwrap();
    replay.run();
    let (told, brackets) = (told.into_inner().unwrap(), bracketed.brackets(EventClock::Boottime));
    assert_eq!(met(&told["fault"], &brackets, READ_APART), brackets.len(), "{brackets:?}, {told:?}");
}
