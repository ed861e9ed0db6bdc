//! Recording through plain perf events: as root, and as a user without any right.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use collector_common::ids::Pid;
use collector_common::loss::{Ledger, LossCause};
use collector_user::clock;
use collector_user::kernel::online_cpus;
use collector_user::procfs;
use collector_user::session::{self, Backend, Ended, Recording, Session, SessionSettings};
use collector_user::source::perf::PerfEvents;
use collector_user::source::{COUNTERS, EventIndex, EventRequest, Settings, Source as _, Targets};

use crate::prerequisites::{live, live_with, skip};
use crate::programs::{compile, folder};
use crate::recording::{Recorded, assert_balanced, collector, record, record_in};
use crate::targets::Cgroup;

/// `nobody`, on Debian as elsewhere.
const NOBODY: u32 = 65534;

fn settings(sampling: Settings) -> SessionSettings {
    SessionSettings { sampling, backend: Backend::Perf, ..SessionSettings::default() }
}

/// Each of the family burns half a second, which is 2,500 periods: they are there by their names, or counted as lost.
fn assert_has_family(samples: [u64; 3], ledger: [u64; 2]) {
    let [delivered, produced] = ledger;
    assert!((7300..9000).contains(&produced), "{produced} produced, {samples:?}");
    assert!(samples.iter().all(|samples| (250..2800).contains(samples)), "{samples:?}");
    assert!(delivered >= samples.iter().sum(), "{samples:?} of {delivered}");
}

const FAMILY: [&str; 3] = ["family", "family-thread", "family-child"];

/// The family is there, with whole stacks.
fn assert_is_family(recorded: &Recorded) {
    assert_eq!(recorded.stats["backend"], "perf");
    let ledger = ["/samples/delivered", "/samples/produced"].map(|place| recorded.figure(place));
    assert_has_family(FAMILY.map(|name| recorded.samples_of(name)), ledger);
    let working = recorded.stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame == "work"));
    let whole: u64 = working.clone().filter(|stack| !stack.is_cut()).map(|stack| stack.count).sum();
    let all: u64 =
        recorded.stacks.iter().filter(|stack| stack.has_user_part()).map(|stack| stack.count).sum();
    assert!(whole * 100 >= all * 99, "{whole} of {all}: {}", recorded.stderr);
}

/// Samples of threads of this name.
fn samples_of(recording: &Recording, name: &str) -> u64 {
    let machine = &recording.machine;
    let has_name = |thread| machine.string(machine.thread(thread).name) == name;
    machine.samples().iter().filter(|sample| has_name(sample.thread)).count() as u64
}

#[test]
fn a_command_with_its_threads_and_children() {
    let Some(_live) = live("a_command_with_its_threads_and_children") else { return };
    let folder = folder();
    let family = compile(folder.path(), "family", "family.c", &["-pthread"]);
    let args = ["--backend".as_ref(), "perf".as_ref(), "--".as_ref(), family.as_os_str()];
    assert_is_family(&record(folder.path(), args));
}

#[test]
fn a_user_without_rights_records_own_programs() {
    let Some(_live) = live("a_user_without_rights_records_own_programs") else { return };
    let folder = folder();
    let family = compile(folder.path(), "family", "family.c", &["-pthread"]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let args = [OsStr::new("--"), family.as_os_str()];
    let recorded = record_in(folder.path(), args, |command| {
        command.uid(NOBODY).gid(NOBODY);
    });
    assert_is_family(&recorded);
    assert!(recorded.stderr.contains("plain perf events record"), "{}", recorded.stderr);
    let level: i32 =
        fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim().parse().unwrap();
    let has_kernel =
        recorded.stacks.iter().flat_map(|stack| &stack.frames).any(|frame| frame.ends_with("_[k]"));
    assert!(level < 2 || !has_kernel, "{:?}", recorded.stacks);
}

#[test]
fn what_a_user_without_rights_may_not_record() {
    let Some(_live) = live("what_a_user_without_rights_may_not_record") else { return };
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = |args: &[&str], expected: &str| {
        let mut command = collector();
        command.args(["run", "-d", "1s", "-o"]).arg(folder.path().join("x.folded")).args(args);
        let output = command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(expected), "{stderr}");
    };
    refused(&[], "or record your own processes with `-p PID` or `-- COMMAND`");
    refused(&["--backend", "ebpf"], "recording needs root, or CAP_BPF and CAP_PERFMON");
    refused(&["-p", &std::process::id().to_string()], "is another user's, or has more rights");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_running_process_with_its_threads_and_children() {
    let Some(_live) = live("a_running_process_with_its_threads_and_children") else { return };
    record_running_family(|shell| [shell].into());
}

#[test]
fn a_process_that_is_named_beside_its_parent_counts_once() {
    let Some(_live) = live("a_process_that_is_named_beside_its_parent_counts_once") else { return };
    let is_child = |pid: &Pid, parent| procfs::summary(*pid).is_ok_and(|process| process.parent == parent);
    record_running_family(|shell| {
        let children = procfs::pids().unwrap().into_iter().filter(|pid| is_child(pid, Pid(shell)));
        let named: BTreeSet<u32> = children.map(|pid| pid.0).chain([shell]).collect();
        assert_eq!(named.len(), 2, "{named:?}");
        named
    });
}

/// Writes to so many bytes of the stack.
#[inline(never)]
fn touch<const BYTES: usize>() {
    std::hint::black_box(&mut [1_u8; BYTES]);
}

#[test]
fn a_thread_that_is_met_after_it_inherited_its_events_counts_once() {
    const PAGES: usize = 500;
    /// Of a stack that had another thread before, the C library gives back all but a few.
    const KEPT: usize = 64;
    let Some(_live) = live("a_thread_that_is_met_after_it_inherited_its_events_counts_once") else { return };
    let targets = Targets { pids: [std::process::id()].into(), ..Targets::default() };
    let settings = Settings { clock: false, targets, ..Settings::default() };
    let counters = ["page-faults", "minor-faults"].map(|name| {
        let found = COUNTERS.iter().find(|counter| counter.name == name);
        found.unwrap().trigger
    });
    let requests = (0..).map(EventIndex::of_hook).zip(counters);
    let requests: Vec<_> = requests.map(|(index, trigger)| EventRequest::new(index, trigger)).collect();
    let mut events = PerfEvents::open(&settings, false, &requests, &online_cpus().unwrap()).unwrap();
    let (go, told) = std::sync::mpsc::channel::<()>();
    let (tell, thread) = std::sync::mpsc::channel();
    // Between the opening and the start, from where it is looked for new threads again. Pages of a new thread's stack are fresh, while
    // those of the heap may have been of something else.
    let touching = std::thread::Builder::new().stack_size(4 * PAGES * 4096).spawn(move || {
        let tid = fs::read_link("/proc/thread-self").unwrap();
        tell.send(tid.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
        told.recv().unwrap();
        touch::<{ (PAGES + KEPT) * 4096 }>();
    });
    let touching = touching.unwrap();
    let thread: u32 = thread.recv().unwrap();
    events.start().unwrap();
    go.send(()).unwrap();
    touching.join().unwrap();
    events.stop().unwrap();
    let mut counts = [0; 2];
    events.drain(clock::now(), &mut |record| {
        if record.header.tid == thread {
            counts[usize::from(record.event.0 - 1)] += 1;
        }
    });
    assert!(counts.iter().all(|count| (PAGES..2 * PAGES).contains(count)), "{counts:?}");
    let mut ledger = Ledger::default();
    events.close(&mut ledger).unwrap();
    assert_eq!(ledger.total_lost(), 0, "{ledger:?}");
}

/// Records a family below a shell while it works; `named` says what is named, given the shell's pid.
fn record_running_family(named: impl FnOnce(u32) -> BTreeSet<u32>) {
    let folder = folder();
    let program = compile(folder.path(), "family", "family.c", &["-pthread"]);
    // The family is a child of what is named.
    let script = "echo $$; \"$1\"; true";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", script, "sh"]).arg(&program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let pid: u32 = lines.next().unwrap().unwrap().parse().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let targets = Targets { pids: named(pid), ..Targets::default() };
    let sampling = Settings { frequency: 4999, targets, ..Settings::default() };
    let mut session = Session::start(settings(sampling), None).unwrap();
    drop(shell.stdin.take());
    let (stop, _never) = UnixStream::pair().unwrap();
    assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Processes);
    let recording = session.finish().unwrap();
    assert!(shell.wait().unwrap().success());
    let ledger = [recording.ledger.delivered(), recording.ledger.produced()];
    assert_has_family(FAMILY.map(|name| samples_of(&recording, name)), ledger);
}

#[test]
fn the_whole_machine_by_name_and_by_cgroup() {
    let Some(_live) = live("the_whole_machine_by_name_and_by_cgroup") else { return };
    let Some(cgroup) = Cgroup::new() else {
        return skip("the_whole_machine_by_name_and_by_cgroup", "no cgroup v2 hierarchy is mounted");
    };
    let folder = folder();
    let inside = compile(folder.path(), "inside", "recursion.c", &[]);
    let outside = compile(folder.path(), "outside", "recursion.c", &[]);
    let check = |targets: Targets, wanted: &[&str], unwanted: &[&str]| {
        let sampling = Settings { targets, ..Settings::default() };
        let mut session = Session::start(settings(sampling), None).unwrap();
        let script = r#""$2"; echo $$ > "$3/cgroup.procs"; exec "$1""#;
        let mut shell = Command::new("sh");
        let mut shell =
            shell.args(["-euc", script, "sh"]).args([&inside, &outside, &cgroup.0]).spawn().unwrap();
        let (stop, at_the_end) = UnixStream::pair().unwrap();
        let waiting = std::thread::spawn(move || {
            let status = shell.wait();
            drop(at_the_end);
            status
        });
        assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Stopped);
        assert!(waiting.join().unwrap().unwrap().success());
        let recording = session.finish().unwrap();
        let counts = |name| samples_of(&recording, name);
        assert!(wanted.iter().all(|name| counts(name) > 200), "{wanted:?}: {:?}", recording.stats);
        assert!(unwanted.iter().all(|name| counts(name) == 0), "{unwanted:?}");
    };
    check(Targets::default(), &["inside", "outside"], &[]);
    let comm = Some("outside".to_owned());
    check(Targets { comm, ..Targets::default() }, &["outside"], &["inside"]);
    check(Targets { cgroup: Some(cgroup.0.clone()), ..Targets::default() }, &["inside"], &["outside"]);
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let Some(_live) = live("what_there_is_no_room_for_is_counted") else { return };
    let folder = folder();
    let storm = OsString::from(compile(folder.path(), "storm", "storm.c", &[]));
    // The least there can be: room for three samples.
    let sampling = Settings { frequency: 9999, ring_bytes: Some(4096), ..Settings::default() };
    let command = session::Command::start(&[storm]).unwrap();
    let mut session = Session::start(settings(sampling), Some(command)).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    let recording = session.finish().unwrap();
    let ledger = &recording.ledger;
    assert!(ledger.lost(LossCause::RingFull) > 100 && ledger.delivered() > 0, "{ledger:?}");
    assert_eq!(ledger.lost(LossCause::Malformed), 0, "{ledger:?}");
    assert_eq!(recording.machine.samples().len() as u64, ledger.delivered());
    assert_balanced(&recording.stats_now().to_json());
}

/// Threads that wait until their ends are dropped.
fn waiting_threads(count: usize) -> (Vec<std::sync::mpsc::Sender<()>>, Vec<std::thread::JoinHandle<()>>) {
    let start = |_| {
        let (end, told) = std::sync::mpsc::channel::<()>();
        (end, std::thread::spawn(move || assert!(told.recv().is_err())))
    };
    (0..count).map(start).unzip()
}

#[test]
fn threads_need_open_files_on_each_cpu() {
    let Some(_live) = live_with("threads_need_open_files_on_each_cpu", &["bash"]) else { return };
    let (ends, threads) = waiting_threads(100);
    let cpus = online_cpus().unwrap().len();
    let mut bash = Command::new("bash");
    bash.args(["-euc", "ulimit -n 200\nexec \"$@\"", "bash"]).arg(env!("CARGO_BIN_EXE_collector"));
    bash.args(["run", "--backend", "perf", "-d", "1s", "-o", "-", "--format", "folded", "-p"]);
    let output = bash.arg(std::process::id().to_string()).output().unwrap();
    drop(ends);
    for thread in threads {
        thread.join().unwrap();
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let says = format!("threads on {cpus} CPUs need");
    assert!(stderr.contains(&says) && stderr.contains("200 may be open: raise the limit"), "{stderr}");
}

/// A setting of the kernel, put back in the end.
struct Changed {
    path: &'static str,
    before: String,
}

impl Changed {
    fn to(path: &'static str, value: &str) -> Self {
        let before = fs::read_to_string(path).unwrap();
        fs::write(path, value).unwrap();
        Self { path, before }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        fs::write(self.path, &self.before).unwrap();
    }
}

#[test]
fn memory_that_may_not_be_locked_is_told_of() {
    let Some(_live) = live_with("memory_that_may_not_be_locked_is_told_of", &["bash"]) else { return };
    let changed = Changed::to("/proc/sys/kernel/perf_event_mlock_kb", "8");
    let mut bash = Command::new("bash");
    bash.args(["-euc", "ulimit -l 0\nexec \"$@\"", "bash"]).arg(env!("CARGO_BIN_EXE_collector"));
    bash.args(["run", "--backend", "perf", "-d", "1s", "-o", "-", "--format", "folded", "--", "true"]);
    let output = bash.uid(NOBODY).gid(NOBODY).output().unwrap();
    drop(changed);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for says in ["8 KiB a CPU", "perf_event_mlock_kb", "0 KiB (`ulimit -l`)"] {
        assert!(stderr.contains(says), "{stderr}");
    }
    assert!(!stderr.contains("another user's"), "{stderr}");
}

#[test]
fn a_folder_that_is_no_cgroup() {
    let Some(_live) = live("a_folder_that_is_no_cgroup") else { return };
    for folder in ["/etc", "/proc", "/sys/fs/cgroup/cgroup.procs", "/no/such/folder"] {
        let args = ["--backend", "perf", "--cgroup", folder, "-d", "1s", "-o", "-", "--format", "folded"];
        let output = collector().arg("run").args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(&format!("{folder} is no cgroup to record")), "{stderr}");
    }
}

#[test]
fn a_cgroup_and_a_command_at_once() {
    let Some(_live) = live("a_cgroup_and_a_command_at_once") else { return };
    let args =
        ["--backend", "perf", "--cgroup", "/sys/fs/cgroup", "-o", "-", "--format", "folded", "--", "true"];
    let output = collector().arg("run").args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("leave one out, or use --backend ebpf"), "{stderr}");
}
