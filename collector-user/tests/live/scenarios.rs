//! Scenarios: what they measure is what programs of known behaviour measured of themselves, or what the kernel's own
//! tracepoints tell beside them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::loss::LossCause;
use collector_common::record::{ESTIMATED, ExportMachine, Sample};
use collector_common::sharing::Writable;
use collector_user::scenario;
use collector_user::session::{self, Recording, Session, SessionSettings};
use collector_user::source::{Hook, Settings, Shortest};
use collector_user::tracefs::Tracefs;

use crate::prerequisites::live;
use crate::programs::{Running, compile, folder};
use crate::recording::{assert_balanced, collector, run};

/// What a thread of `naps` tells of itself, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Told {
    burned: i64,
    slept: i64,
    lived: i64,
    /// With what came before its first instruction and after its last.
    was_there: i64,
}

/// `naps` with its arguments, in a folder.
struct Naps {
    command: Vec<OsString>,
    told: std::path::PathBuf,
}

impl Naps {
    /// Threads that burn and sleep for so many microseconds, so many times.
    fn of(folder: &Path, threads: u32, turns: u32, burn_us: u32, sleep_us: u32) -> Self {
        let program = compile(folder, "naps", "naps.c", &["-pthread"]);
        let told = folder.join("told");
        let numbers = [threads, turns, burn_us, sleep_us].map(|number| number.to_string().into());
        let command = [program.into()].into_iter().chain(numbers).chain([told.clone().into()]);
        Self { command: command.collect(), told }
    }

    /// By thread.
    fn told(&self) -> BTreeMap<u32, Told> {
        let text = fs::read_to_string(&self.told).unwrap();
        let threads = text.lines().map(|line| {
            let numbers: Vec<i64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let [tid, burned, slept, lived, was_there] = numbers[..] else { panic!("{line}") };
            (tid as u32, Told { burned, slept, lived, was_there })
        });
        threads.collect()
    }
}

/// A session's settings with scenarios by their names, and nothing else.
pub(crate) fn settings(names: &[&str]) -> SessionSettings {
    let sampling = Settings { clock: false, ..Settings::default() };
    let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
    for name in names {
        scenario::by_name(name).unwrap().register(&mut settings);
    }
    settings
}

pub(crate) fn record(settings: SessionSettings, command: &[OsString]) -> Recording {
    let command = session::Command::start(command).unwrap();
    let mut session = Session::start(settings, Some(command)).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    let recording = finish(session);
    assert_eq!(recording.ledger.lost(LossCause::Unaccounted), 0, "{:?}", recording.ledger);
    recording
}

/// Records the whole machine while a command runs.
pub(crate) fn record_machine(settings: SessionSettings, command: &[OsString]) -> Recording {
    let mut session = Session::start(settings, None).unwrap();
    let (stop, ended) = UnixStream::pair().unwrap();
    let command = command.to_vec();
    let runs = std::thread::spawn(move || {
        let status = Command::new(&command[0]).args(&command[1..]).status();
        drop(ended);
        status
    });
    session.run(stop.as_fd(), |_| {}).unwrap();
    assert!(runs.join().unwrap().unwrap().success());
    finish(session)
}

fn finish(session: Session) -> Recording {
    let recording = session.finish().unwrap();
    assert_balanced(&recording.stats_now().to_json());
    recording
}

/// The sum of a kind's samples in a function, or in what it calls; and how many those are.
pub(crate) fn in_function(recording: &Recording, kind: &str, function: &str) -> (i64, usize) {
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    let of_kind = machine.samples().iter().filter(|sample| {
        machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind
            && machine
                .stacks()
                .get(sample.stack)
                .iter()
                .any(|&frame| symbols.name(frame).function == function)
    });
    of_kind.fold((0, 0), |(sum, count), sample| (sum + sample.value, count + 1))
}

/// What an attribute says; empty where it is absent.
pub(crate) fn attribute<'a>(machine: &'a ExportMachine, sample: &Sample, name: &str) -> Cow<'a, str> {
    machine.attribute(sample.attributes, name).unwrap_or_default()
}

/// Sums of a thread's samples whose attribute `name` is `value`, or of all.
fn sum(machine: &ExportMachine, tid: u32, attributed: Option<(&str, &str)>) -> i64 {
    let samples = machine.samples().iter().filter(|sample| machine.thread(sample.thread).tid.0 == tid);
    let samples = samples
        .filter(|sample| attributed.is_none_or(|(name, value)| attribute(machine, sample, name) == value));
    samples.map(|sample| sample.value).sum()
}

pub(crate) fn assert_near(measured: i64, truth: i64, part: f64, what: &str) {
    let off = (measured - truth) as f64 / truth as f64;
    assert!(off.abs() <= part, "{what}: {measured} of {truth}, off by {:.2} %", 100.0 * off);
}

/// All of a thread's time, within 2 %: what it measured itself, and what others had it wait for before and after.
fn assert_lived(measured: i64, told: &Told) {
    let bounds = 0.98 * told.lived as f64..=1.02 * told.was_there as f64;
    assert!(bounds.contains(&(measured as f64)), "{measured}: {told:?}");
}

#[test]
fn off_cpu_has_the_time_that_threads_sleep_and_where() {
    let Some(_live) = live("off_cpu_has_the_time_that_threads_sleep_and_where") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 2, 5, 0, 100_000);
    let recording = record(settings(&["off_cpu"]), &naps.command);
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    let told = naps.told();
    assert_eq!(told.len(), 2);
    let mut of_all = 0;
    for (&tid, told) in &told {
        let of_thread = machine.samples().iter().filter(|sample| machine.thread(sample.thread).tid.0 == tid);
        let naps = of_thread.filter(|sample| {
            let stack = machine.stacks().get(sample.stack);
            stack.iter().any(|&frame| symbols.name(frame).function == "nap_for")
        });
        let naps: Vec<i64> = naps.map(|sample| sample.value).collect();
        // What it waited for a CPU then is no part of it.
        let (blocked, least) = (naps.iter().sum::<i64>(), 98_000_000 * naps.len() as i64);
        assert!(blocked >= least && blocked <= told.slept, "{blocked}: {told:?}");
        of_all += naps.len() as u64;
    }
    // Of some threads, as the first process's on some virtual machines, the kernel does not tell what they do: of one that such a thread
    // woke, and that ran when such a thread had, it is not known for how long it slept.
    let missed = recording.ledger.lost(LossCause::NotRun);
    assert!(of_all + missed >= 10 && of_all >= 8, "{of_all} naps, {:?}", recording.ledger);
    let kind = machine.kinds()[0];
    assert_eq!([machine.string(kind.name), kind.unit.name()], ["off_cpu", "nanoseconds"]);
    assert_eq!(machine.kinds().len(), 1, "the clock was not asked for");
    let wakers = machine.tables().iter().find(|table| table.name == "who woke whom").unwrap();
    // The main thread joins each of them: the first one at least wakes it, and on a busy machine they meet in the kernel, too.
    let main = wakers.rows.iter().find(|(label, _)| label == "naps -> naps").unwrap();
    assert!(main.1[0] >= 1, "{wakers:?}");
}

#[test]
fn who_woke_a_thread_has_the_time_for_which_it_was_blocked() {
    const TURNS: u64 = 8;
    let Some(_live) = live("who_woke_a_thread_has_the_time_for_which_it_was_blocked") else { return };
    let folder = folder();
    let program = compile(folder.path(), "wakes", "wakes.c", &["-pthread"]);
    let file = folder.path().join("told");
    let numbers = [TURNS, 15, 45].map(|number| number.to_string().into());
    let command: Vec<_> =
        [program.into()].into_iter().chain(numbers).chain([file.clone().into_os_string()]).collect();
    let recording = record(settings(&["off_cpu"]), &command);
    let text = fs::read_to_string(file).unwrap();
    let wakers = recording.machine.tables().iter().find(|table| table.name == "who woke whom").unwrap();
    assert_eq!(wakers.columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), ["times", "blocked"]);
    // Of which the kernel did not tell when they ended.
    let missed = recording.ledger.lost(LossCause::NotRun);
    for ((name, wait), line) in [("early", 15_000_000), ("late", 45_000_000)].into_iter().zip(text.lines()) {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let [least, most] = numbers[..] else { panic!("{line}") };
        let label = format!("{name} -> woken");
        let row = wakers.rows.iter().find(|(found, _)| *found == label);
        let (_, row) = row.unwrap_or_else(|| panic!("{wakers:?}"));
        let [times, blocked] = &row[..] else { panic!("{row:?}") };
        println!("{label}: {times} times, {blocked} ns between {least} and {most}");
        assert!(*times <= TURNS && times + missed >= TURNS, "{wakers:?}, {:?}", recording.ledger);
        let least = if *times == TURNS { least } else { times * wait };
        assert!((least..=most).contains(blocked), "{blocked}: {line}, {wakers:?}");
    }
}

#[test]
fn short_times_off_are_sampled_and_weighted() {
    let Some(_live) = live("short_times_off_are_sampled_and_weighted") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 1, 8000, 0, 100);
    let mut settings = settings(&["off_cpu"]);
    let event = &mut settings.events[0].event;
    let [blocked, waited] = ["blocked_ns", "waited_ns"].map(|name| event.format().field_ref(name).unwrap());
    let weight = event.format().field_ref("weight").unwrap();
    let sums = Writable::new(BTreeMap::<u32, (f64, u32)>::new());
    let summed = sums.clone();
    event.add_closure(move |data| {
        let took = data.try_get_u64(blocked)? + data.try_get_u64(waited)?;
        let weighted = took as f64 * data.try_get_f64(weight)?;
        let tid = data.context().unwrap().tid.0;
        summed.write(|sums| {
            let (sum, count) = sums.entry(tid).or_default();
            *sum += weighted;
            *count += 1;
        })?;
        Ok(())
    });
    let recording = record(settings, &naps.command);
    let (&tid, told) = naps.told().first_key_value().map(|(tid, told)| (tid, *told)).unwrap();
    let sums = sums.into_inner().unwrap();
    let (weighted, count) = sums[&tid];
    // Off by 3 % for chance alone, where about one in seven is taken; on a busy machine, where waits are longer, all may be.
    assert_near(weighted as i64, told.lived - told.burned, 0.25, "time off");
    // And in the recording they add up to all of it.
    let machine = &recording.machine;
    let blocked = sum(machine, tid, None);
    assert!(blocked >= 784_000_000 && blocked <= told.slept, "{blocked}: {told:?}");
    let samples = machine.samples().iter().filter(|sample| machine.thread(sample.thread).tid.0 == tid);
    assert_eq!(samples.count(), count as usize);
}

#[test]
fn wall_clock_sums_to_the_time_that_threads_live() {
    let Some(_live) = live("wall_clock_sums_to_the_time_that_threads_live") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 2, 1, 500_000, 500_000);
    let recording = record(settings(&["wall_clock"]), &naps.command);
    let machine = &recording.machine;
    let told = naps.told();
    assert_eq!(told.len(), 2);
    for (&tid, told) in &told {
        let [running, blocked, runnable] =
            ["running", "blocked", "runnable"].map(|state| sum(machine, tid, Some(("state", state))));
        assert_lived(sum(machine, tid, None), told);
        assert_eq!(sum(machine, tid, None), running + blocked + runnable);
        assert!(blocked >= 490_000_000 && blocked <= told.slept, "{blocked}: {told:?}");
        // A host that takes the CPU away is no other thread: that is time on the CPU here, and not in the thread's clock.
        assert!(running as f64 >= 0.98 * told.burned as f64, "{running}: {told:?}");
    }
}

#[test]
fn times_begin_when_the_thread_did_what_they_tell_of() {
    let Some(_live) = live("times_begin_when_the_thread_did_what_they_tell_of") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 1, 5, 20_000, 100_000);
    let recording = record(settings(&["wall_clock", "syscalls"]), &naps.command);
    let machine = &recording.machine;
    let (&tid, told) = naps.told().first_key_value().map(|(tid, told)| (tid, *told)).unwrap();
    let spans = |name: &str, attributes: &[(&str, bool)]| -> Vec<[u64; 2]> {
        let samples = machine.samples().iter().filter(|sample| machine.thread(sample.thread).tid.0 == tid);
        let of_kind = samples.filter(|sample| {
            let kind = machine.kinds()[usize::from(sample.kind.0)];
            let told = ["call", "state", ESTIMATED].map(|name| attribute(machine, sample, name));
            machine.string(kind.name) == name
                && attributes
                    .iter()
                    .all(|&(value, is_wanted)| told.iter().any(|told| told == value) == is_wanted)
        });
        let mut spans: Vec<_> =
            of_kind.map(|sample| [sample.time.0, sample.time.0 + sample.value as u64]).collect();
        spans.sort_unstable();
        spans
    };
    // A thread is blocked or waits for a CPU, one after the other; for how long it runs is told in sums.
    let off = spans("wall_clock", &[("running", false), ("yes", false)]);
    for pair in off.windows(2) {
        let [[_, end], [start, _]] = pair else { unreachable!() };
        assert!(end <= start, "{pair:?}");
    }
    // The last one may end later: who waits for a thread's end is woken before the kernel is done with it.
    assert!(off[off.len() - 1][0] - off[0][0] <= told.was_there as u64 + 1_000_000, "{told:?} {off:?}");
    // It sleeps within a system call. Not all of these are recorded.
    let calls = spans("syscalls", &[("clock_nanosleep", true)]);
    assert!(!calls.is_empty());
    for call in calls {
        let mut within = off.iter().filter(|off| call[0] <= off[0] && off[1] <= call[1]);
        assert!(within.any(|[start, end]| end - start > 90_000_000), "{call:?} {off:?}");
    }
}

#[test]
fn scenarios_are_recorded_together() {
    let Some(_live) = live("scenarios_are_recorded_together") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 1, 2, 100_000, 100_000);
    let recording = record(settings(&["cpu", "offcpu", "wall", "sched"]), &naps.command);
    let machine = &recording.machine;
    let told = naps.told();
    let (&tid, told) = told.first_key_value().unwrap();
    let of_kind = |name: &str| -> Vec<Sample> {
        let kind = machine.kinds().iter().position(|kind| machine.string(kind.name) == name).unwrap();
        let samples = machine.samples().iter().filter(|sample| usize::from(sample.kind.0) == kind);
        samples.filter(|sample| machine.thread(sample.thread).tid.0 == tid).collect()
    };
    let values = |samples: &[Sample]| samples.iter().map(|sample| sample.value).sum::<i64>();
    let state = |samples: &[Sample], state| -> Vec<Sample> {
        samples.iter().filter(|sample| attribute(machine, sample, "state") == state).copied().collect()
    };
    let (cpu, off_cpu, wall) = (of_kind("cpu"), of_kind("off_cpu"), of_kind("wall_clock"));
    assert_eq!(values(&off_cpu), values(&state(&wall, "blocked")));
    // One of the latter is of the thread's end, which is no tick of the clock.
    assert_eq!(cpu.len() + 1, state(&wall, "running").len());
    assert_lived(values(&wall), told);
    assert!(machine.histograms().iter().any(|histogram| histogram.label == "naps"));
}

#[test]
fn a_thread_that_is_blocked_in_the_end_is_told_of() {
    let Some(_live) = live("a_thread_that_is_blocked_in_the_end_is_told_of") else { return };
    let _sleeping = Running::of(Command::new("sleep").arg("1000"));
    let duration = Some(Duration::from_millis(500));
    let sleep = ["sleep".into(), "500".into()];
    let recording = record(SessionSettings { duration, ..settings(&["off_cpu"]) }, &sleep);
    let machine = &recording.machine;
    let open: Vec<_> =
        machine.samples().iter().filter(|sample| attribute(machine, sample, "open") == "yes").collect();
    assert_eq!(open.len(), 1);
    let took = machine.system().end.0 - machine.system().start.0;
    assert!(open[0].value > 0 && open[0].value as u64 <= took, "{open:?} of {took}");
    assert!(!machine.stacks().get(open[0].stack).is_empty());
    // The command goes on, and is nobody's.
    let pid = machine.process(machine.thread(open[0].thread).process).pid.0;
    assert!(Command::new("kill").arg(pid.to_string()).status().unwrap().success());
}

#[test]
fn times_off_that_find_no_room_are_counted() {
    let Some(_live) = live("times_off_that_find_no_room_are_counted") else { return };
    let folder = folder();
    // Each nap is at least a period long, so that all are told of.
    let naps = Naps::of(folder.path(), 32, 50, 0, 2000);
    let mut settings = settings(&["off_cpu"]);
    settings.sampling.ring_bytes = Some(4096);
    let recording = record(settings, &naps.command);
    let ledger = &recording.ledger;
    assert!(ledger.lost(LossCause::RingFull) > 0, "{ledger:?}");
    assert!(ledger.delivered() > 0, "{ledger:?}");
    // And the main thread's, and waits for locks and pages.
    let naps = 32 * 50;
    assert!((naps..naps + 200).contains(&ledger.produced()), "{ledger:?}");
}

#[test]
fn short_times_off_are_left_out_when_that_is_asked_for() {
    let Some(_live) = live("short_times_off_are_left_out_when_that_is_asked_for") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 1, 20, 0, 5000);
    for (off_cpu, wall_clock) in [(3_000_000, 60_000_000_000), (60_000_000_000, 0)] {
        let mut settings = settings(&["off_cpu", "wall_clock"]);
        settings.sampling.shortest =
            Shortest { off_cpu: Nanos(off_cpu), wall_clock: Nanos(wall_clock), ..Shortest::default() };
        let recording = record(settings, &naps.command);
        let machine = &recording.machine;
        let (tid, told) = naps.told().into_iter().next().unwrap();
        // Each time off of the thread that naps.
        let times = |kind: &str, state: &str| -> Vec<i64> {
            let is_one = |sample: &Sample| {
                machine.string(machine.kinds()[usize::from(sample.kind.0)].name) == kind
                    && machine.thread(sample.thread).tid.0 == tid
                    && attribute(machine, sample, "state") == state
            };
            machine.samples().iter().filter(is_one).map(|sample| sample.value).collect()
        };
        let blocked = [("off_cpu", "", off_cpu), ("wall_clock", "blocked", wall_clock)];
        for (kind, state, shortest) in blocked {
            let times = times(kind, state);
            let sum = times.iter().sum::<i64>();
            if shortest > 1_000_000_000 {
                assert_eq!(sum, 0, "{kind}: {times:?}");
            } else {
                // Of 20 naps of 5 ms; what it waits for a CPU, afterwards or when its timer runs already, is not in it.
                assert!((90_000_000..=told.was_there).contains(&sum), "{kind}: {sum} of {told:?}");
                assert!(times.iter().all(|time| *time >= shortest as i64), "{kind}: {times:?}");
            }
        }
        // But for ticks of the sampling clock, which a machine that is busy passes over.
        let lost = recording.ledger.total_lost() - recording.ledger.lost(LossCause::NotRun);
        assert_eq!(lost, 0, "{:?}", recording.ledger);
    }
}

/// Waits for a CPU as the kernel's own tracepoints tell of them: since when each thread could run, the number of waits of
/// threads called `naps`, and their sum.
#[derive(Debug, Default)]
struct Waits {
    since: BTreeMap<i32, u64>,
    count: u64,
    sum: u64,
}

/// A hook at a tracepoint that calls `tell` with numbers of the fields, in the order named, and the time.
fn at<const N: usize>(
    tracepoint: &str,
    fields: [&str; N],
    waits: &Writable<Waits>,
    tell: impl Fn(&mut Waits, [i64; N], &str, u64) + 'static,
) -> Hook {
    let mut event = Tracefs::open().unwrap().event(tracepoint).unwrap();
    let fields = fields.map(|name| event.format().field_ref(name).unwrap());
    let next = event.format().field_ref("next_comm");
    let waits = waits.clone();
    event.add_closure(move |data| {
        let mut numbers = [0; N];
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number = data.try_get_i64(field)?;
        }
        let next = next.map_or(Ok(""), |field| data.try_get_str(field))?;
        Ok(waits.write(|waits| tell(waits, numbers, next, data.context().unwrap().time.0))?)
    });
    Hook::tracepoint(event)
}

#[test]
fn waits_for_a_cpu_are_those_that_tracepoints_tell_of() {
    let Some(_live) = live("waits_for_a_cpu_are_those_that_tracepoints_tell_of") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 3, 20, 10_000, 1000);
    let waits = Writable::new(Waits::default());
    let mut settings = settings(&["scheduling"]);
    let can_run = |waits: &mut Waits, [tid]: [i64; 1], _: &str, time| {
        waits.since.entry(tid as i32).or_insert(time);
    };
    settings.events.push(at("sched:sched_waking", ["pid"], &waits, can_run));
    settings.events.push(at("sched:sched_wakeup_new", ["pid"], &waits, can_run));
    let fields = ["prev_pid", "prev_state", "next_pid"];
    settings.events.push(at(
        "sched:sched_switch",
        fields,
        &waits,
        |waits, [prev, state, next], name, time| {
            // What it was woken for before it stopped running is over.
            waits.since.remove(&(prev as i32));
            // `TASK_REPORT_MAX` of `include/linux/sched.h`: it was taken off.
            if state % 0x100 == 0 {
                waits.since.insert(prev as i32, time);
            }
            let since = waits.since.remove(&(next as i32));
            if let Some(since) = since.filter(|_| name == "naps") {
                waits.count += 1;
                waits.sum += time - since;
            }
        },
    ));
    // On one CPU, so that they wait for each other.
    let taskset = [OsString::from("taskset"), "-c".into(), "0".into()];
    let command: Vec<_> = taskset.into_iter().chain(naps.command.iter().cloned()).collect();
    let recording = record_machine(settings, &command);
    let machine = &recording.machine;
    let measured = machine.histograms().iter().find(|histogram| histogram.label == "naps").unwrap();
    let waits = waits.into_inner().unwrap();
    assert_eq!(recording.ledger.lost(LossCause::RingFull), 0, "{:?}", recording.ledger);
    assert!(waits.count > 60, "{} {}", waits.count, waits.sum);
    assert_near(measured.count() as i64, waits.count as i64, 0.02, "number of waits");
    assert_near(measured.sum as i64, waits.sum as i64, 0.02, "sum of waits");
    // Three threads that burn 0.2 s each on one CPU: two of them wait at any time.
    assert!(measured.sum > 300_000_000, "{measured:?}");
}

#[test]
fn plain_perf_events_do_not_measure_it() {
    let Some(_live) = live("plain_perf_events_do_not_measure_it") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let args = ["-s", "off_cpu", "--backend", "perf", "-d", "100ms", "-o"].map(OsString::from);
    let output = run(args.into_iter().chain([file.into_os_string()]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("off_cpu is measured by programs in the kernel"), "{stderr}");
    assert!(stderr.contains("leave out `--backend perf`"), "{stderr}");
}

#[test]
fn other_readers_see_each_kind_with_its_unit() {
    let Some(_live) = live("other_readers_see_each_kind_with_its_unit") else { return };
    let folder = folder();
    let naps = Naps::of(folder.path(), 1, 2, 100_000, 100_000);
    let file = folder.path().join("all.pb.gz");
    let mut command = collector();
    command.args(["run", "-s", "cpu", "-s", "offcpu", "-s", "wall", "-o"]).arg(&file).arg("--");
    let output = command.args(&naps.command).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let raw = Command::new("go").args(["tool", "pprof", "-raw"]).arg(&file).output().unwrap();
    let raw = String::from_utf8(raw.stdout).unwrap();
    let types = raw.lines().find(|line| line.contains("wall_clock/")).unwrap_or_default();
    let types: Vec<&str> = types.split_whitespace().map(|name| name.trim_end_matches("[dflt]")).collect();
    let expected = [
        "cpu_samples/count",
        "cpu/nanoseconds",
        "off_cpu_samples/count",
        "off_cpu/nanoseconds",
        "wall_clock_samples/count",
        "wall_clock/nanoseconds",
    ];
    assert_eq!(types, expected, "{raw}");
    let mut top = Command::new("go");
    top.args(["tool", "pprof", "-top", "-sample_index=off_cpu", "-unit=ms", "-focus=nap_for"]).arg(&file);
    let top = String::from_utf8(top.output().unwrap().stdout).unwrap();
    let napped = top.lines().find(|line| line.ends_with(" nap_for")).unwrap_or_else(|| panic!("{top}"));
    let columns: Vec<&str> = napped.split_whitespace().collect();
    let total: f64 = columns[3].trim_end_matches("ms").parse().unwrap();
    let slept = naps.told().values().map(|told| told.slept).sum::<i64>() as f64 / 1e6;
    assert!(total >= 195.0 && total <= slept, "{total} of {slept}: {top}");
}
