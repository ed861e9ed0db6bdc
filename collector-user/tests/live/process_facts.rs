//! What is told of processes beside their names: arguments, users, pids in namespaces, cgroups and containers, compared with what this
//! test reads of them in `/proc`.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{ExportMachine, Happened, ProcessId};
use collector_user::procfs::MOST_ARGUMENTS;
use collector_user::replay::Replay;
use collector_user::session::{Session, SessionSettings};

use crate::prerequisites::{live, live_with};
use crate::programs::folder;
use crate::scenarios::{record_machine, settings};

/// A container's id as docker makes them.
const CONTAINER: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

/// Longer than a process that executes nothing lives before it is looked at, and a round more.
const LIVED: Duration = Duration::from_millis(1500);

/// What a line of `/proc/PID/status` says.
fn status(pid: u32, field: &str) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// The arguments of a process once they are `name` and others, and the process sleeps or whatever it does.
fn arguments(pid: u32, name: &str) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        let arguments: Vec<String> =
            String::from_utf8(text).unwrap().split_terminator('\0').map(str::to_owned).collect();
        if arguments.first().is_some_and(|first| first == name) {
            return arguments;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{pid} never was {name}");
        thread::yield_now();
    }
}

/// The only child of a process.
fn child(pid: u32) -> u32 {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        if let Ok(child) = text.trim().parse() {
            return child;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{pid} has these children: {text}");
        thread::yield_now();
    }
}

/// The last process with a pid.
fn find(machine: &ExportMachine, pid: u32) -> ProcessId {
    let at = machine.processes().iter().rposition(|process| process.pid == Pid(pid));
    ProcessId(at.unwrap_or_else(|| panic!("no process {pid}")) as u32)
}

/// The arguments of the last program of a process.
fn recorded_arguments(machine: &ExportMachine, process: ProcessId) -> Vec<String> {
    let program = machine.programs_of(process).next().map(|id| machine.program(id));
    let arguments = program.map(|program| machine.arguments(program).map(str::to_owned).collect());
    arguments.unwrap_or_default()
}

/// Records the whole machine while `work` runs.
fn record_while<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> (ExportMachine, T) {
    let mut session = Session::start(SessionSettings::default(), None).unwrap();
    let (stop, ended) = UnixStream::pair().unwrap();
    let works = thread::spawn(move || {
        let brought = work();
        drop(ended);
        brought
    });
    session.run(stop.as_fd(), |_| {}).unwrap();
    (session.finish().unwrap().machine, works.join().unwrap())
}

/// A cgroup made by hand, gone with this.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Below a folder of the root, as docker makes it.
    fn new(id: &str) -> Self {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let root = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
            (kind == "cgroup2").then_some(place)
        });
        let folder = Path::new(root.expect("a mounted cgroup2")).join("docker").join(id);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in self.0.ancestors().take(2) {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn start(program: &str, args: &[&str]) -> Child {
    Command::new(program).args(args).spawn().unwrap()
}

#[test]
fn a_process_is_told_of_with_its_arguments() {
    let Some(_live) = live("a_process_is_told_of_with_its_arguments") else { return };
    let mut before = start("sleep", &["1000"]);
    let from_before = arguments(before.id(), "sleep");
    let (machine, ()) = record_while({
        let before = before.id();
        move || {
            assert_eq!(arguments(before, "sleep"), ["sleep", "1000"]);
            // One that is empty, and more of them than are kept.
            let long = "x".repeat(3000);
            start("sleep", &["1.31", "0"]).wait().unwrap();
            start("sh", &["-c", "sleep 1.05", "", &long]).wait().unwrap();
        }
    });
    let process = find(&machine, before.id());
    assert_eq!(recorded_arguments(&machine, process), from_before);
    assert_eq!(machine.process(process).start, Nanos(0));
    before.kill().unwrap();
    before.wait().unwrap();
    let own: Vec<_> = machine
        .programs()
        .iter()
        .filter(|program| program.since > Nanos(0))
        .map(|program| (machine.arguments(program).collect::<Vec<_>>(), program.are_cut))
        .collect();
    assert!(own.contains(&(vec!["sleep", "1.31", "0"], false)), "{own:?}");
    let kept = "x".repeat(MOST_ARGUMENTS - "sh\0-c\0sleep 1.05\0\0".len());
    assert!(own.contains(&(vec!["sh", "-c", "sleep 1.05", "", &kept], true)), "{own:?}");
}

#[test]
fn users_and_namespaces_and_cgroups_are_told() {
    let Some(_live) = live_with("users_and_namespaces_and_cgroups_are_told", &["unshare", "setpriv"]) else {
        return;
    };
    let folder = folder();
    let end = folder.path().join("end");
    let cgroup = Cgroup::new(CONTAINER);
    let (machine, told) = record_while({
        let (end, cgroup) = (end.clone(), cgroup.0.clone());
        move || {
            let mut nobody =
                start("setpriv", &["--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "2.9"]);
            let script = r#"echo $$ >"$0/cgroup.procs"; exec setpriv --reuid 65534 sleep 2.91"#;
            let mut contained = start("sh", &["-c", script, cgroup.to_str().unwrap()]);
            // The shell's child executes nothing.
            let script = r#"(while [ ! -e "$0" ]; do :; done) & wait"#;
            let mut outside =
                start("unshare", &["--pid", "--fork", "sh", "-c", script, end.to_str().unwrap()]);
            let shell = child(outside.id());
            let pids = [nobody.id(), contained.id(), shell, child(shell)];
            assert_eq!(arguments(nobody.id(), "sleep"), ["sleep", "2.9"]);
            assert_eq!(arguments(contained.id(), "sleep"), ["sleep", "2.91"]);
            let told = pids.map(|pid| {
                let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
                (pid, status(pid, "Uid"), status(pid, "NSpid"), cgroups)
            });
            thread::sleep(LIVED);
            fs::write(end, "").unwrap();
            for child in [&mut nobody, &mut contained, &mut outside] {
                child.wait().unwrap();
            }
            told
        }
    });
    for (pid, uids, pids, cgroups) in &told {
        let process = machine.process(find(&machine, *pid));
        assert_eq!(process.user.map(|user| user.0), uids.get(1).copied(), "{pid}");
        assert_eq!(process.namespace_pid.map(|pid| pid.0), pids.last().copied(), "{pid}");
        let cgroup = machine.string(process.cgroup);
        assert!(cgroups.lines().any(|line| line.ends_with(&format!(":{cgroup}"))), "{cgroup} of {cgroups}");
    }
    let [nobody, contained, shell, forked] = told.map(|(pid, ..)| machine.process(find(&machine, pid)));
    assert_eq!(machine.user_name(nobody), Some("nobody"));
    assert_eq!(machine.user_name(shell), Some("root"));
    assert_eq!((shell.namespace_pid, forked.namespace_pid), (Some(Pid(1)), Some(Pid(2))));
    assert_eq!(machine.string(contained.cgroup), format!("/docker/{CONTAINER}"));
    assert_eq!(machine.string(contained.container), CONTAINER);
    assert_eq!(machine.user_name(contained), None, "who that is in a container nobody says");
    assert!([nobody, shell, forked].iter().all(|process| machine.string(process.container).is_empty()));
}

#[test]
fn a_process_that_executes_has_had_several_programs() {
    let Some(_live) = live("a_process_that_executes_has_had_several_programs") else { return };
    let (machine, pid) = record_while(|| {
        let script = r#"i=0; while [ "$i" -lt 40000 ]; do i=$((i + 1)); done; exec env A=1 sh -c 'sleep 1.2; exec sleep 1.3'"#;
        let mut child = start("bash", &["-c", script]);
        assert!(child.wait().unwrap().success());
        child.id()
    });
    let process = find(&machine, pid);
    let programs: Vec<_> = machine.programs_of(process).map(|id| *machine.program(id)).collect();
    let names: Vec<_> = programs.iter().map(|program| machine.string(program.name)).collect();
    assert_eq!(names, ["sleep", "sh", "env", "bash"]);
    assert!(programs.is_sorted_by(|later, earlier| later.since > earlier.since), "{programs:?}");
    let arguments = |at: usize| machine.arguments(&programs[at]).collect::<Vec<_>>();
    assert_eq!(arguments(0), ["sleep", "1.3"]);
    assert_eq!(arguments(1), ["sh", "-c", "sleep 1.2; exec sleep 1.3"]);
    // Of what ran for less than a millisecond nobody may have read them, but never another program's.
    assert!(arguments(2).is_empty() || arguments(2)[..2] == ["env", "A=1"], "{:?}", arguments(2));
    assert_eq!(arguments(3)[..2], ["bash", "-c"]);
    // What happened in the order of time: each program before the samples of it.
    let mut running = "";
    for (_, happened) in machine.in_time_order() {
        match happened {
            Happened::Executed(id) if machine.program(id).process == process => {
                running = machine.string(machine.program(id).name);
            }
            Happened::Sampled(sample)
                if machine.thread(sample.thread).process == process && !running.is_empty() =>
            {
                assert_eq!(machine.string(machine.thread(sample.thread).name), running);
            }
            _ => {}
        }
    }
    assert_eq!(running, "sleep");
}

#[test]
fn a_command_has_no_program_before_its_own() {
    let Some(_live) = live("a_command_has_no_program_before_its_own") else { return };
    let command = ["sleep", "0.3"].map(OsString::from);
    let recording = record_machine(settings(&["cpu_profiling"]), &command);
    let machine = &recording.machine;
    let process = (0..).map(ProcessId).zip(machine.processes()).find(|(_, process)| {
        let parent = process.parent.map(|parent| machine.process(parent).pid);
        parent == Some(Pid(std::process::id())) && machine.string(process.name) == "sleep"
    });
    let (id, process) = process.unwrap();
    let programs: Vec<_> =
        machine.programs_of(id).map(|id| machine.string(machine.program(id).name)).collect();
    assert_eq!(programs, ["sleep"]);
    assert_eq!(recorded_arguments(machine, id), ["sleep", "0.3"]);
    assert_eq!(machine.user_name(process), Some("root"));
}

#[test]
fn arguments_are_of_the_program_and_no_other() {
    let Some(_live) = live("arguments_are_of_the_program_and_no_other") else { return };
    let script = r#"
        i=0
        while [ "$i" -lt 300 ]; do
            sh -c 'exec env "B=$0" printf "%s" "$0"' "$i" >/dev/null
            i=$((i + 1))
        done"#;
    let command = ["sh", "-c", script].map(OsString::from);
    let recording = record_machine(settings(&["cpu_profiling"]), &command);
    let machine = &recording.machine;
    let mut known = 0;
    for program in machine.programs().iter().filter(|program| program.since > Nanos(0)) {
        let arguments: Vec<&str> = machine.arguments(program).collect();
        let name = machine.string(program.name);
        let Some(first) = arguments.first().filter(|_| ["sh", "env", "printf"].contains(&name)) else {
            continue;
        };
        // Others' programs may be executed by their paths meanwhile.
        assert_eq!(first.rsplit('/').next(), Some(name), "{arguments:?}");
        known += 1;
    }
    assert!(known > 0);
    let told = recording.warnings.iter().any(|warning| warning.contains("command line"));
    assert!(!told, "{:?}", recording.warnings);
}

#[test]
fn a_file_of_perf_tells_cgroups_and_programs() {
    let Some(_live) = live_with("a_file_of_perf_tells_cgroups_and_programs", &["perf"]) else { return };
    let folder = folder();
    let cgroup = Cgroup::new(CONTAINER);
    let data = folder.path().join("perf.data");
    let script = r#"echo $$ >"$0/cgroup.procs"; echo $$ >"$1"
        exec bash -c 'i=0; while [ "$i" -lt 100000 ]; do i=$((i + 1)); done'"#;
    let told = folder.path().join("pid");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-N", "--all-cgroups", "-e", "cpu-clock", "-F", "999", "-o"]).arg(&data);
    perf.args(["--", "sh", "-c", script]).arg(&cgroup.0).arg(&told);
    assert!(perf.status().unwrap().success());
    let machine = Replay::open_path(&data).unwrap().run().machine;
    let id = find(&machine, fs::read_to_string(&told).unwrap().trim().parse().unwrap());
    let process = machine.process(id);
    assert_eq!(machine.string(process.cgroup), format!("/docker/{CONTAINER}"));
    assert_eq!(machine.string(process.container), CONTAINER);
    let programs: Vec<_> =
        machine.programs_of(id).map(|id| machine.string(machine.program(id).name)).collect();
    assert_eq!(programs[..2], ["bash", "sh"]);
    // Its records do not tell these, and what is in `/proc` now is of others.
    assert!(recorded_arguments(&machine, id).is_empty() && process.user.is_none());
}
