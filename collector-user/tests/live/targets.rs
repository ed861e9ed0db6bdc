//! Who is recorded: `-p`, `--comm`, `--cgroup`, and which CPUs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use collector_common::record::{ExportMachine, Sample};
use collector_user::kernel::online_cpus;
use collector_user::scenario::{SCENARIOS, Scenario};
use collector_user::session::{Backend, Ended, Session, SessionError, SessionSettings};
use collector_user::source::{Settings, Targets};

use crate::prerequisites::{live, live_with, skip};
use crate::programs::{Running, compile, folder};
use crate::recording::{FREQUENCY, Stack, collector, files, read, record, run};
use crate::scenarios::record_machine;

fn settings(pid: u32) -> SessionSettings {
    let targets = Targets { pids: [pid].into(), ..Targets::default() };
    SessionSettings {
        sampling: Settings { frequency: 4999, targets, ..Settings::default() },
        ..SessionSettings::default()
    }
}

#[test]
fn a_process_with_its_threads_and_children() {
    let Some(_live) = live("a_process_with_its_threads_and_children") else { return };
    let folder = folder();
    let file = compile(folder.path(), "family", "family.c", &["-pthread"]);
    let other = compile(folder.path(), "other", "recursion.c", &[]);
    let mut family = Command::new(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(family.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut session = Session::start(settings(family.id()), None).unwrap();
    let mut other = Command::new(other).spawn().unwrap();
    drop(family.stdin.take());
    let (stop, _never) = UnixStream::pair().unwrap();
    assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Processes);
    let recording = session.finish().unwrap();
    assert!(family.wait().unwrap().success());
    assert!(other.wait().unwrap().success());

    let machine = &recording.machine;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in machine.samples().iter() {
        let thread = machine.thread(sample.thread);
        let process = machine.process(thread.process);
        let parent = process.parent.map(|parent| machine.process(parent).pid.0);
        assert!([Some(process.pid.0), parent].contains(&Some(family.id())), "{process:?}");
        *counts.entry(machine.string(thread.name)).or_default() += 1;
    }
    // Each burns half a second, which is 2,500 periods.
    for name in ["family", "family-thread", "family-child"] {
        assert!(counts.get(name).is_some_and(|count| *count > 250), "{name}: {counts:?}");
    }
}

/// A program of ours that waits for a line after it has said `ready`.
fn waiting(folder: &Path, name: &str, source: &str, options: &[&str]) -> Child {
    let program = compile(folder, name, source, &[&["-pthread"], options].concat());
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn a_process_whose_threads_come_and_go() {
    let Some(_live) = live("a_process_whose_threads_come_and_go") else { return };
    let folder = folder();
    let mut churn = waiting(folder.path(), "churn", "churn.c", &[]);
    let mut session = Session::start(settings(churn.id()), None).unwrap();
    drop(churn.stdin.take());
    let (stop, _never) = UnixStream::pair().unwrap();
    assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Processes);
    let recording = session.finish().unwrap();
    assert!(churn.wait().unwrap().success());
    // One of its threads alone burns a second, which is 4,999 periods.
    assert!(recording.ledger.produced() > 4900, "{:?}", recording.ledger);
    assert!(recording.ledger.delivered() > 500, "{:?}", recording.ledger);
    assert_eq!(recording.machine.processes().iter().filter(|process| process.pid.0 == churn.id()).count(), 1);
}

#[test]
fn a_process_without_its_main_thread() {
    let Some(_live) = live("a_process_without_its_main_thread") else { return };
    without_its_main_thread(&[], 99);
}

#[test]
fn a_process_without_its_main_thread_and_file() {
    let Some(_live) = live("a_process_without_its_main_thread_and_file") else { return };
    without_its_main_thread(&["-DUNLINK_SELF"], 99);
}

#[test]
fn a_large_stack_without_a_main_thread() {
    let Some(_live) = live("a_large_stack_without_a_main_thread") else { return };
    // What lies beyond the copies of the last tenth of its half second is gone when it is asked for.
    without_its_main_thread(&["-DFRAME=160000"], 75);
}

#[test]
fn code_without_rules_nor_a_main_thread() {
    let Some(_live) = live("code_without_rules_nor_a_main_thread") else { return };
    without_its_main_thread(&["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"], 99);
}

/// A recording that starts when the main thread has ended has the other's stacks: so many percent are whole.
fn without_its_main_thread(options: &[&str], percent: u64) {
    let folder = folder();
    let mut leaderless = waiting(folder.path(), "leaderless", "leaderless.c", options);
    let pid = leaderless.id().to_string();
    let folded = files(folder.path()).0;
    let mut recorder = collector();
    recorder
        .args(["run", "-F", FREQUENCY, "-p", &pid, "-o"])
        .arg(&folded)
        .arg("--stats")
        .arg(files(folder.path()).1);
    let recorder = recorder.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_watches(recorder.id());
    drop(leaderless.stdin.take());
    assert!(leaderless.wait().unwrap().success());
    let stderr = String::from_utf8(recorder.wait_with_output().unwrap().stderr).unwrap();
    let recorded = read(folder.path(), stderr);
    let whole = |stack: &&Stack| !stack.is_cut() && stack.frames.iter().any(|frame| frame == "work_alone");
    let count = |stacks: &mut dyn Iterator<Item = &Stack>| stacks.map(|stack| stack.count).sum::<u64>();
    // When it exits, its memory goes before it does: then there is no user stack, and nothing to be cut.
    let has_worked =
        |stack: &&Stack| stack.is_cut() || stack.frames.iter().any(|frame| frame == "work_alone");
    let seen = count(&mut recorded.stacks.iter().filter(has_worked));
    let whole = count(&mut recorded.stacks.iter().filter(whole));
    // How much of its work is before the sampling clocks start depends on how busy the machine is.
    assert!(seen > 100 && whole * 100 >= seen * percent, "{whole} of {seen}, {:?}", recorded.stacks);
}

/// Returns when a recording watches the process of its `-p`.
fn until_it_watches(recorder: u32) {
    let descriptors = format!("/proc/{recorder}/fd");
    while !fs::read_dir(&descriptors).is_ok_and(|fds| {
        fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .any(|link| link.as_os_str() == "anon_inode:[pidfd]")
    }) {
        std::thread::yield_now();
    }
}

#[test]
fn a_child_that_runs_already() {
    let Some(_live) = live("a_child_that_runs_already") else { return };
    let script = "(while :; do :; done) & echo ready; read line; kill $!; wait";
    let mut parent =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let settings = SessionSettings { duration: Some(Duration::from_millis(500)), ..settings(parent.id()) };
    let mut session = Session::start(settings, None).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    assert_eq!(session.run(stop.as_fd(), |_| {}).unwrap(), Ended::Duration);
    let recording = session.finish().unwrap();
    drop(parent.stdin.take());
    assert!(parent.wait().is_ok());
    // How much of the time it runs depends on how busy the machine is.
    assert!(recording.ledger.delivered() > 100, "{:?}", recording.ledger);
}

#[test]
fn a_process_that_ends() {
    let Some(_live) = live("a_process_that_ends") else { return };
    let folder = folder();
    let script = "read line; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let mut target = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    let (folded, stats) = files(folder.path());
    let mut recorder = collector();
    recorder.args(["run", "-F", FREQUENCY, "-p", &target.id().to_string(), "-o"]).arg(folded);
    let recorder =
        recorder.arg("--stats").arg(stats).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It goes on when the recording is over at the latest: what is asked is whether that ends by itself.
    until_it_watches(recorder.id());
    drop(target.stdin.take());
    assert!(target.wait().unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("the recorded processes have ended"), "{stderr}");
    read(folder.path(), stderr);
}

#[test]
fn under_sudo_the_command_is_the_callers() {
    let Some(_live) = live("under_sudo_the_command_is_the_callers") else { return };
    let folder = folder();
    let output = collector()
        .args(["run", "-o"])
        .arg(folder.path().join("x.folded"))
        .args(["--", "sh", "-c", "id -u; id -g; id -G; cat /proc/self/status; env"])
        .envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("SUDO_USER", "nobody")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("65534\n65534\n65534\n"), "{stdout}");
    let line =
        |name: &str| stdout.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(line("Uid:"), "65534\t65534\t65534\t65534", "saved and file system ids, too");
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let entry: Vec<&str> =
        passwd.lines().find(|line| line.starts_with("nobody:")).unwrap().split(':').collect();
    assert_eq!([line("USER="), line("HOME=")], [entry[0], entry[5]]);
    assert_eq!([line("CapEff:"), line("CapPrm:")], ["0000000000000000", "0000000000000000"]);
}

#[test]
fn a_caller_who_is_not_known_gets_no_command_as_root() {
    let Some(_live) = live("a_caller_who_is_not_known_gets_no_command_as_root") else { return };
    let folder = folder();
    let marker = folder.path().join("marker");
    let output = collector()
        .args(["run", "-o"])
        .arg(folder.path().join("x.folded"))
        .args(["--", "touch"])
        .arg(&marker)
        .env("SUDO_UID", "65534")
        .env_remove("SUDO_GID")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("do not name a user; set all three"), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_thread_is_not_a_process() {
    let Some(_live) = live("a_thread_is_not_a_process") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let thread = std::thread::spawn(move || {
        let tid = rustix::thread::gettid().as_raw_nonzero().to_string();
        (run([OsStr::new("-p"), tid.as_ref(), "-o".as_ref(), file.as_os_str()]), tid)
    });
    let (output, tid) = thread.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let process = std::process::id();
    let expected = format!("{tid} is a thread, not a process: record its process with `-p {process}`");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&expected), "{output:?}");
}

#[test]
fn command_lines_of_others_are_not_told() {
    let Some(_live) = live("command_lines_of_others_are_not_told") else { return };
    let folder = folder();
    let other = Running::of(Command::new("sh").args(["-c", ": of-another; read line"]).stdin(Stdio::piped()));
    for backend in ["ebpf", "perf"] {
        let file = |ending: &str| folder.path().join(format!("{backend}.{ending}"));
        let files = ["jfr", "pftrace", "jsonl", "nettrace", "otlp"].map(file);
        let outputs = files.iter().flat_map(|file| [OsStr::new("-o"), file.as_os_str()]);
        let args = ["--backend", backend].map(OsStr::new).into_iter().chain(outputs);
        let output = run(args.chain(["--", "sh", "-c", ": of-its-own; ls / >/dev/null; :"].map(OsStr::new)));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        for file in &files {
            let bytes = fs::read(file).unwrap();
            let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!has("of-another"), "{}", file.display());
            assert!(has("of-its-own"), "{}", file.display());
        }
    }
    drop(other);
}

#[test]
fn a_process_that_is_not_there() {
    let Some(_live) = live("a_process_that_is_not_there") else { return };
    // Above the largest pid that Linux gives: `PID_MAX_LIMIT` is 2^22.
    let pid = (1 << 22) + 1;
    assert!(
        matches!(Session::start(settings(pid), None), Err(SessionError::NoProcess(named)) if named == pid)
    );
    let folder = folder();
    let output =
        run(["-p".as_ref(), "4194305".as_ref(), "-o".as_ref(), folder.path().join("x.folded").as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.lines().count() == 1 && stderr.contains("4194305"), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn threads_by_name() {
    let Some(_live) = live("threads_by_name") else { return };
    let folder = folder();
    let wanted = compile(folder.path(), "wanted", "recursion.c", &[]);
    let unwanted = compile(folder.path(), "unwanted", "recursion.c", &[]);
    let script = r#""$1" & "$2"; wait"#;
    let shell = ["--comm", "wanted", "--", "sh", "-euc", script, "sh"].map(OsStr::new);
    let recorded =
        record(folder.path(), shell.iter().copied().chain([wanted.as_os_str(), unwanted.as_os_str()]));
    assert!(recorded.samples_of("wanted") > 500, "{}", recorded.stderr);
    assert!(recorded.stacks.iter().all(|stack| stack.comm == "wanted"), "{:?}", recorded.stacks);
}

#[test]
fn chosen_cpus() {
    let Some(_live) = live("chosen_cpus") else { return };
    let online = online_cpus().unwrap();
    let (Some(&first), Some(&last)) = (online.first(), online.last()) else { panic!("{online:?}") };
    if first == last {
        return skip("chosen_cpus", "there is one CPU only");
    }
    let folder = folder();
    let program = compile(folder.path(), "pinned", "recursion.c", &[]);
    for backend in [Backend::Ebpf, Backend::Perf] {
        let pin =
            |cpu: u32| Command::new("taskset").args(["-c", &cpu.to_string()]).arg(&program).spawn().unwrap();
        let mut burners = [first, last].map(pin);
        let targets = Targets { cpus: [last].into(), ..Targets::default() };
        let sampling = Settings { targets, ..Settings::default() };
        let settings = SessionSettings { sampling, backend, ..SessionSettings::default() };
        let mut session = Session::start(settings, None).unwrap();
        assert_eq!(session.parse_for(Duration::from_millis(500)).unwrap(), None);
        assert_eq!(session.parse_until(|progress| progress.samples > 100).unwrap(), None);
        let machine = session.finish().unwrap().machine;
        for burner in &mut burners {
            assert!(burner.wait().unwrap().success());
        }
        assert!(machine.samples().len() > 100);
        assert!(machine.samples().iter().all(|sample| u32::from(sample.cpu) == last), "{backend:?}");
    }
    let targets = Targets { cpus: [60_000].into(), ..Targets::default() };
    let sampling = Settings { targets, ..Settings::default() };
    let error =
        Session::start(SessionSettings { sampling, ..SessionSettings::default() }, None).err().unwrap();
    assert!(error.to_string().contains("none of the CPUs [60000] is online"), "{error}");
}

/// Settings of a recording of one CPU, with one scenario.
fn of_cpu(cpu: u32, scenario: &Scenario, backend: Backend) -> SessionSettings {
    let targets = Targets { cpus: [cpu].into(), ..Targets::default() };
    let sampling = Settings { clock: false, targets, ..Settings::default() };
    let mut settings = SessionSettings { sampling, backend, ..SessionSettings::default() };
    scenario.register(&mut settings);
    settings
}

/// Two programs do the same, each on a CPU of its own: the one of the CPU that is named is recorded, and nothing of the other one. What
/// programs in the kernel alone can record is of all CPUs, which is said.
#[test]
fn scenarios_of_a_chosen_cpu() {
    let test = "scenarios_of_a_chosen_cpu";
    let Some(_live) = live_with(test, &["taskset"]) else { return };
    let online = online_cpus().unwrap();
    let [first, .., last] = online[..] else { return skip(test, "there is one CPU only") };
    let folder = folder();
    let [here, elsewhere] =
        ["here", "elsewhere"].map(|name| compile(folder.path(), name, "touches.c", &[]).into());
    // Each for some tenths of a second.
    let script = r#"for i in $(seq 50); do taskset -c "$1" "$2"; taskset -c "$3" "$4"; done"#;
    let shell = ["sh", "-euc", script, "sh"].map(OsString::from);
    let pinned = [last.to_string().into(), here, first.to_string().into(), elsewhere];
    let command = [shell, pinned].concat();
    for (scenario, backend) in SCENARIOS.iter().flat_map(|one| [(one, Backend::Ebpf), (one, Backend::Perf)]) {
        let what = format!("{}, {backend:?}", scenario.name);
        let settings = of_cpu(last, scenario, backend);
        if !["cpu_profiling", "page_faults"].contains(&scenario.name) {
            let error = Session::start(settings, None).err().unwrap_or_else(|| panic!("{what} is recorded"));
            let says = match backend {
                Backend::Ebpf => "is of all CPUs: ",
                _ => "is measured by programs in the kernel, and ",
            };
            assert!(error.to_string().starts_with(&format!("{} {says}", scenario.name)), "{what}: {error}");
            continue;
        }
        let machine = record_machine(settings, &command).machine;
        assert!(machine.samples().iter().all(|sample| u32::from(sample.cpu) == last), "{what}");
        let [of_here, of_elsewhere] = ["here", "elsewhere"].map(|name| told_of(&machine, name));
        assert!(of_here >= 10 && of_elsewhere == 0, "{what}: {of_here}, {of_elsewhere}");
    }
}

/// Samples of a program, and what is counted of it.
fn told_of(machine: &ExportMachine, name: &str) -> u64 {
    let is_its = |sample: &Sample| machine.string(machine.thread(sample.thread).name) == name;
    let rows = machine.tables().iter().flat_map(|table| &table.rows);
    let counted: u64 = rows.filter(|(label, _)| label == name).flat_map(|(_, counts)| counts).sum();
    machine.samples().iter().filter(is_its).count() as u64 + counted
}

/// A cgroup of the test's, removed when it is dropped.
pub(crate) struct Cgroup(pub(crate) PathBuf);

impl Cgroup {
    /// Below the v2 hierarchy, wherever it is mounted; `None` where it is not.
    pub(crate) fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = fields.into_iter().find(|fields| fields[2] == "cgroup2")?[1].to_owned();
        let folder = PathBuf::from(mount).join(format!("collector-test-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Some(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It is empty when its processes were waited for; a test that fails earlier leaves it.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn processes_of_a_cgroup() {
    let Some(_live) = live("processes_of_a_cgroup") else { return };
    let Some(cgroup) = Cgroup::new() else {
        return skip("processes_of_a_cgroup", "no cgroup v2 hierarchy is mounted");
    };
    let folder = folder();
    let inside = compile(folder.path(), "inside", "recursion.c", &[]);
    let outside = compile(folder.path(), "outside", "recursion.c", &[]);
    let script = r#""$2"; echo $$ > "$3/cgroup.procs"; exec "$1""#;
    let shell = ["--", "sh", "-euc", script, "sh"].map(OsStr::new);
    let filter = [OsStr::new("--cgroup"), cgroup.0.as_os_str()];
    let args = [inside.as_os_str(), outside.as_os_str(), cgroup.0.as_os_str()];
    let recorded = record(folder.path(), filter.into_iter().chain(shell).chain(args));
    assert!(recorded.samples_of("inside") > 500, "{}", recorded.stderr);
    assert_eq!(recorded.samples_of("outside"), 0);
}

#[test]
fn a_cgroup_that_is_not_there() {
    let Some(_live) = live("a_cgroup_that_is_not_there") else { return };
    let folder = folder();
    let missing = folder.path().join("no-cgroup");
    let output = run([
        "--cgroup".as_ref(),
        missing.as_os_str(),
        "-o".as_ref(),
        folder.path().join("x.folded").as_os_str(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.lines().count() == 1 && stderr.contains("no-cgroup"), "{stderr}");
}
