//! Exit statuses, signals, and what is left of files.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use collector_user::tracefs::Tracefs;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::languages::recursion;
use crate::prerequisites::{live, live_with, not_on_this_kernel, skip};
use crate::programs::{compile, folder};
use crate::recording::{Recorded, assert_balanced, collector, files, read, record, run};
use crate::targets::Cgroup;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The run failed with this status and one line that names `what`.
fn assert_one_line(output: &Output, status: i32, what: &str) {
    let stderr = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    let one_line = stderr.lines().count() == 1 && stderr.starts_with("collector: ");
    assert!(one_line && stderr.contains(what), "{stderr}");
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_status_of_the_command_is_told_not_returned() {
    let Some(_live) = live("the_status_of_the_command_is_told_not_returned") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let output = run(["-o".as_ref(), file.as_os_str(), "--".as_ref(), "false".as_ref()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("the command exited with status 1"), "{}", stderr(&output));
    let killed = run([
        OsStr::new("-o"),
        file.as_os_str(),
        "--".as_ref(),
        "sh".as_ref(),
        "-c".as_ref(),
        "kill -9 $$".as_ref(),
    ]);
    assert_eq!(killed.status.code(), Some(0), "{}", stderr(&killed));
    assert!(stderr(&killed).contains("the command was ended by signal 9"), "{}", stderr(&killed));
    assert_eq!(entries(folder.path()), ["x.folded"]);
    // Nothing that was not asked for goes to stdout.
    assert!(output.stdout.is_empty() && killed.stdout.is_empty());
}

#[test]
fn a_program_that_cannot_be_executed() {
    let Some(_live) = live("a_program_that_cannot_be_executed") else { return };
    let (folder, programs) = (folder(), folder());
    let (text, script) = (programs.path().join("no-program"), programs.path().join("script"));
    fs::write(&text, "not for execution\n").unwrap();
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, remedy) in [
        (Path::new("/no/such/program"), "; name a program that is on PATH"),
        (Path::new("no-such-program"), "; name a program that is on PATH"),
        (&text, "; make it executable, with `chmod +x`"),
        (&script, "; install the interpreter"),
        (programs.path(), "; it is a folder"),
    ] {
        let file = folder.path().join("x.folded");
        let output = run(["-o".as_ref(), file.as_os_str(), "--".as_ref(), program.as_os_str()]);
        assert_one_line(&output, 1, &format!("\"{}\" can't be executed", program.display()));
        assert!(stderr(&output).contains(remedy), "{}", stderr(&output));
        assert_eq!(entries(folder.path()), [""; 0], "no file is left");
    }
}

#[test]
fn a_command_goes_on_when_the_time_is_over() {
    let Some(_live) = live("a_command_goes_on_when_the_time_is_over") else { return };
    let folder = folder();
    let (folded, stats) = files(folder.path());
    let mut recorder = collector();
    recorder.args(["run", "-d", "200ms", "-o"]).arg(folded).arg("--stats").arg(stats);
    recorder.args(["--", "sh", "-c", "read -r line; echo \"$line\""]);
    recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    // `wait` would close what the command reads.
    let stdin = recorder.stdin.take();
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    stdin.unwrap().write_all(b"still here\n").unwrap();
    let mut line = String::new();
    recorder.stdout.take().unwrap().read_to_string(&mut line).unwrap();
    assert_eq!(line, "still here\n");
    let mut stderr = String::new();
    recorder.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("goes on"), "{stderr}");
    read(folder.path(), stderr);
}

#[test]
fn a_folder_that_is_not_there_is_told_before_recording() {
    let Some(_live) = live("a_folder_that_is_not_there_is_told_before_recording") else { return };
    let folder = folder();
    let (file, marker) = (folder.path().join("missing/x.folded"), folder.path().join("marker"));
    let command = [OsStr::new("--"), "touch".as_ref(), marker.as_os_str()];
    let output = run([OsStr::new("-o"), file.as_os_str()].into_iter().chain(command));
    assert_one_line(&output, 1, "missing/x.folded");
    assert!(!marker.exists(), "the command was not run");
    let fine = folder.path().join("x.folded");
    let missing = folder.path().join("missing/x.json");
    let options = [OsStr::new("-o"), fine.as_os_str(), "--stats".as_ref(), missing.as_os_str()];
    let output = run(options.into_iter().chain(command));
    assert_one_line(&output, 1, "missing/x.json");
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn a_command_does_not_run_when_the_recording_fails() {
    let Some(_live) = live("a_command_does_not_run_when_the_recording_fails") else { return };
    let folder = folder();
    let (file, marker) = (folder.path().join("x.folded"), folder.path().join("marker"));
    let output = run([
        OsStr::new("--cgroup"),
        "/no/such/cgroup".as_ref(),
        "-o".as_ref(),
        file.as_os_str(),
        "--".as_ref(),
        "touch".as_ref(),
        marker.as_os_str(),
    ]);
    assert_one_line(&output, 1, "/no/such/cgroup");
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn a_stderr_that_is_full_does_not_end_a_recording() {
    let Some(_live) = live("a_stderr_that_is_full_does_not_end_a_recording") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = collector()
        .args(["run".as_ref(), "-d".as_ref(), "200ms".as_ref(), "-o".as_ref(), file.as_os_str()])
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(entries(folder.path()), ["x.folded"]);
}

#[test]
fn figures_have_the_keys_that_scripts_depend_on() {
    let Some(_live) = live("figures_have_the_keys_that_scripts_depend_on") else { return };
    let folder = folder();
    let (folded, stats) = files(folder.path());
    let output = run([
        "-d".as_ref(),
        "200ms".as_ref(),
        "-o".as_ref(),
        folded.as_os_str(),
        "--stats".as_ref(),
        stats.as_os_str(),
    ]);
    let recorded = read(folder.path(), stderr(&output));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expected = [
        "backend",
        "bpf",
        "bytes_copied",
        "cpu",
        "duration_ns",
        "frames",
        "frequency_hz",
        "kernel",
        "lost",
        "peak_rss_bytes",
        "samples",
        "stacks",
        "start_to_first_sample_ns",
    ];
    assert_eq!(keys(&recorded.stats), expected);
    assert_eq!(keys(&recorded.stats["samples"]), ["delivered", "produced"]);
    assert_eq!(keys(&recorded.stats["cpu"]), ["system_ns", "user_ns"]);
    assert_eq!(keys(&recorded.stats["bpf"]), ["run_count", "run_ns"]);
    assert!(recorded.stats["stacks"]["complete"].is_u64() && recorded.stats["stacks"]["truncated"].is_u64());
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    for name in keys(&recorded.stats["lost"]).iter().chain(&keys(&recorded.stats["stacks"])) {
        assert!(readme.contains(&format!("`{name}`")), "the README does not tell what {name} means");
    }
}

/// `getrusage` tells a program no less than what the process had that executed it.
#[test]
fn memory_of_who_starts_the_collector_is_not_its_own() {
    const BYTES: usize = 400 << 20;
    let Some(_live) = live("memory_of_who_starts_the_collector_is_not_its_own") else { return };
    let folder = folder();
    let held = std::hint::black_box(vec![1_u8; BYTES]);
    let recorded = record(folder.path(), ["-d", "200ms"]);
    drop(held);
    let peak = recorded.figure("/peak_rss_bytes");
    assert!((1 << 20..BYTES as u64).contains(&peak), "{peak}");
}

#[test]
fn what_this_version_does_not_have_is_told() {
    let Some(_live) = live("what_this_version_does_not_have_is_told") else { return };
    assert_one_line(&run(["--backend", "etw"]), 2, "Windows");
    let list = |what| collector().args(["list", what]).output().unwrap();
    assert_one_line(&list("providers"), 1, "Event Tracing for Windows");
    for (what, entry) in [("scenarios", "cpu_profiling"), ("events", "page-faults"), ("formats", ".pb.gz")] {
        let output = list(what);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains(entry), "{what}");
    }
}

#[test]
fn an_event_that_takes_the_place_of_a_scenario_is_warned_of() {
    let Some(_live) = live("an_event_that_takes_the_place_of_a_scenario_is_warned_of") else { return };
    let output =
        run(["-s", "page_faults", "-e", "minor-faults", "-o", "-", "--format", "folded", "--", "true"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let expected = "-e minor-faults records each of them by plain perf events; page_faults has no samples";
    assert!(stderr.contains(expected) && !stderr.contains("-e major-faults"), "{stderr}");
    let output =
        run(["-s", "page_faults", "-s", "memory_growth", "-o", "-", "--format", "folded", "--", "true"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !stderr.contains("has no samples") && !stderr.contains("-e "),
        "{stderr}"
    );
    let twice = ["-s", "off_cpu:min=1ms", "-s", "offcpu:min=2ms", "-o", "-", "--format", "folded"];
    assert_one_line(&run(twice), 2, "its option is named twice");
}

#[test]
fn a_scenario_may_be_named_twice_and_nothing_recorded_is_told() {
    let Some(_live) = live("a_scenario_may_be_named_twice_and_nothing_recorded_is_told") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let scenarios =
        ["-s", "cpu_profiling", "-s", "cpu_profiling", "--comm", "nobody-has-this", "-d", "200ms", "-o"];
    let output = run(scenarios.iter().map(OsStr::new).chain([file.as_os_str()]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let hint = "warning: no samples: what was to be recorded was idle, or -p, --cgroup and --comm name other";
    assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    assert_eq!(fs::read(file).unwrap(), b"", "an output of nothing is a whole one");
}

#[test]
fn no_event_is_told_as_such() {
    let Some(_live) = live("no_event_is_told_as_such") else { return };
    let event = ["-e", "sched:sched_process_exec/filename == '/no/such/program'/", "-d", "200ms"];
    let output = run(event.into_iter().chain(["-o", "-", "--format", "folded"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let hint = "warning: no samples: nothing of what was asked for happened";
    assert!(stderr(&output).contains(hint) && !stderr(&output).contains("idle"), "{}", stderr(&output));
}

#[test]
fn options_of_scenarios() {
    for (wrong, told) in [
        ("off_cpu:max=1s", "`max=1s` is no option of off_cpu, which has min=10ms"),
        ("off_cpu:", "nothing is behind the colon: leave it out, or write off_cpu:min=10ms"),
        ("off_cpu:min=10", "`min=10` has no unit: write us, ms, s, m or h behind it, as min=10ms"),
        ("cpu:min=1s", "cpu_profiling has no options; there are off_cpu:min=10ms, wall_clock:min=10ms"),
        ("wall:min=soon", "it must start with a number"),
        ("of_cpu", "did you mean off_cpu or offcpu?"),
        ("cpu,off_cpu", "each has a `-s` of its own"),
    ] {
        assert_one_line(&run(["-s", wrong, "-o", "-", "--format", "folded"]), 2, told);
    }
}

#[test]
fn the_clock_by_the_names_that_perf_has_for_it() {
    let Some(_live) = live("the_clock_by_the_names_that_perf_has_for_it") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    for name in ["cpu-clock", "task-clock"] {
        let args = ["-e", name, "--"].map(OsStr::new);
        let recorded = record(folder.path(), args.into_iter().chain([program.as_os_str()]));
        recursion("recursion").check(&recorded);
    }
    let output = run(["-e", "cpu-clock/pid == 1/", "-d", "1s", "-o", "-", "--format", "folded"]);
    assert_one_line(&output, 2, "no fields to filter by");
}

#[test]
fn a_cgroup_with_a_process_and_an_event() {
    let Some(_live) = live("a_cgroup_with_a_process_and_an_event") else { return };
    let Some(cgroup) = Cgroup::new() else {
        return skip("a_cgroup_with_a_process_and_an_event", "no cgroup v2 hierarchy is mounted");
    };
    for clock in [&[][..], &["-s", "cpu_profiling"]] {
        let mut recorder = collector();
        recorder.args(["run", "-e", "page-faults", "-o", "-", "--format", "folded", "--cgroup"]);
        let output = recorder.arg(&cgroup.0).args(clock).args(["--", "true"]).output().unwrap();
        assert_one_line(&output, 1, "leave one out, or use --backend ebpf without -e");
    }
}

#[test]
fn listed_counters_are_there() {
    let Some(_live) = live("listed_counters_are_there") else { return };
    let output = collector().args(["list", "events"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let is_listed = |name: &str| listed.lines().any(|line| line.split_whitespace().next() == Some(name));
    for name in ["cpu-clock", "task-clock", "page-faults", "context-switches"] {
        assert!(is_listed(name), "{name}: {listed}");
    }
    for name in ["cycles", "stalled-cycles-backend"] {
        let output = run(["-e", name, "-o", "-", "--format", "folded", "--", "true"]);
        let is_there = !stderr(&output).contains("is not counted here");
        assert_eq!(is_listed(name), is_there, "{name}: {}", stderr(&output));
    }
}

#[test]
fn an_event_that_the_kernel_refuses_is_named() {
    let test = "an_event_that_the_kernel_refuses_is_named";
    let Some(_live) = live(test) else { return };
    // It has a format, and no samples may be taken of it.
    let refused = "ftrace:function";
    if Tracefs::open().unwrap().event(refused).is_err() {
        return not_on_this_kernel(test, "it was built without CONFIG_FUNCTION_TRACER");
    }
    let folder = folder();
    for target in [&["-d", "100ms"][..], &["--", "true"]] {
        let mut collector = collector();
        let output = files(folder.path()).0;
        collector.args(["run", "-e", "sched:sched_switch", "-e", refused, "-o"]).arg(output);
        assert_one_line(&collector.args(target).output().unwrap(), 1, "ftrace:function can't be recorded");
    }
}

#[test]
fn a_file_that_is_no_profile() {
    let Some(_live) = live("a_file_that_is_no_profile") else { return };
    let folder = folder();
    let file = folder.path().join("noise.pb.gz");
    let report = || collector().arg("report").arg(&file).output().unwrap();
    assert_one_line(
        &report(),
        1,
        "noise.pb.gz can't be read: No such file or directory (os error 2); name a",
    );
    fs::write(&file, "no profile").unwrap();
    assert_one_line(
        &report(),
        1,
        "noise.pb.gz can't be reported: its ending is that of pprof, as which it can't be read: ",
    );
}

#[test]
fn a_folder_that_is_no_cgroup() {
    let Some(_live) = live("a_folder_that_is_no_cgroup") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let output = run(["--cgroup", "/etc", "-d", "1s", "-o"].iter().map(OsStr::new).chain([file.as_os_str()]));
    assert_one_line(&output, 1, "/etc is no cgroup to record");
}

#[test]
fn an_unknown_ending_is_wrong_usage() {
    let Some(_live) = live("an_unknown_ending_is_wrong_usage") else { return };
    let folder = folder();
    let file = folder.path().join("x.unknown");
    let output = run(["-o".as_ref(), file.as_os_str(), "--".as_ref(), "true".as_ref()]);
    assert_one_line(&output, 2, "x.unknown");
    assert_eq!(run(["--no-such-option"]).status.code(), Some(2));
    assert_eq!(run(["-F", "0"]).status.code(), Some(2));
    assert_one_line(&run(["--format", "folded"]), 2, "--format needs -o");
    assert_one_line(&run(["-o", "-", "--stats", "-", "--format", "folded"]), 2, "- is named twice");
    assert_one_line(&run(["-o", "x.folded", "--"]), 2, "no command follows `--`");
    let records = ["--no-inline", "-o", "x.perf.data"];
    assert_one_line(&run(records), 2, "give it to `collector convert`");
    assert_one_line(&run(["-s", "off_cpu", "-o", "x.perf.data", "--", "true"]), 2, "nothing would be in it");
    let convert = collector().args(["convert", "y.perf.data"]).args(records).output().unwrap();
    assert_one_line(&convert, 2, "give it to `collector convert`");
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn inlined_functions_can_be_left_out() {
    let Some(_live) = live("inlined_functions_can_be_left_out") else { return };
    let folder = folder();
    // Its lambdas are inlined.
    let program = compile(folder.path(), "dispatch", "dispatch.cpp", &["-g"]);
    let recorded = |options: &[&str]| {
        let options = options.iter().map(OsStr::new);
        record(folder.path(), options.chain(["--".as_ref(), program.as_os_str()]))
    };
    let inlined = |recorded: &Recorded| {
        let own = recorded.stacks.iter().filter(|stack| stack.comm == "dispatch");
        let frames = own.flat_map(|stack| stack.frames.iter().filter(|frame| frame.ends_with("_[i]")));
        frames.count()
    };
    assert!(inlined(&recorded(&[])) > 0);
    let kept = folder.path().join("x.perf.data");
    // What is beside records alone has names.
    let named = recorded(&["--no-inline", "-o", kept.to_str().unwrap()]);
    assert!(named.samples_of("dispatch") > 500);
    assert_eq!(inlined(&named), 0);
    for (options, has) in [(&[][..], true), (&["--no-inline"], false)] {
        let (folded, _) = files(folder.path());
        let output =
            collector().arg("convert").arg(&kept).arg("-o").arg(folded).args(options).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(inlined(&read(folder.path(), stderr(&output))) > 0, has);
    }
}

#[test]
fn names_can_be_left_for_later() {
    let Some(_live) = live("names_can_be_left_for_later") else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let [kept, profile] = ["x.perf.data", "x.pb.gz"].map(|name| folder.path().join(name));
    let options =
        ["--no-symbols".as_ref(), "-o".as_ref(), kept.as_os_str(), "-o".as_ref(), profile.as_os_str()];
    let recorded = record(folder.path(), options.into_iter().chain(["--".as_ref(), program.as_os_str()]));
    let frames: Vec<&str> =
        recorded.stacks.iter().flat_map(|stack| stack.frames.iter().map(String::as_str)).collect();
    let is_address = |name: &str| name.starts_with("recursion+0x");
    assert!(frames.iter().any(|name| is_address(name)) && !frames.contains(&"recurse"), "{frames:?}");
    for kept in [kept, profile] {
        let (folded, _) = files(folder.path());
        let output = collector().arg("convert").arg(&kept).arg("-o").arg(folded).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        recursion("recursion").check(&read(folder.path(), stderr(&output)));
    }
}

/// A recording of a shell that has burnt some time, said so and waits. It waits for as long as its standard input,
/// which is the second value, is open.
fn started(mut collector: Command, folder: &TempDir) -> (Child, std::process::ChildStdin) {
    let (folded, stats) = files(folder.path());
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo ready; read -r line || true";
    let mut child = collector
        .args(["run", "-o"])
        .arg(folded)
        .arg("--stats")
        .arg(stats)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, stdin)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ctrl_c_and_sigterm_finish_cleanly() {
    let Some(_live) = live("ctrl_c_and_sigterm_finish_cleanly") else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let folder = folder();
        let (mut child, stdin) = started(collector(), &folder);
        send(&child, signal);
        let status = child.wait().unwrap();
        drop(stdin);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(status.code(), Some(0), "{stderr}");
        let recorded = read(folder.path(), stderr);
        assert!(recorded.samples_of("sh") > 0, "{}", recorded.stderr);
        assert_eq!(entries(folder.path()).len(), 2, "the two files and nothing else");
    }
}

#[test]
fn a_recording_under_nohup_outlives_its_terminal() {
    let Some(_live) = live_with("a_recording_under_nohup_outlives_its_terminal", &["nohup"]) else { return };
    let folder = folder();
    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_collector"));
    let (mut child, stdin) = started(nohup, &folder);
    send(&child, Signal::HUP);
    drop(stdin);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert!(stderr.contains("the command exited with status 0"), "it was recorded to its end: {stderr}");
}

#[test]
fn a_pipe_that_nobody_reads_can_be_abandoned() {
    let Some(_live) = live("a_pipe_that_nobody_reads_can_be_abandoned") else { return };
    let folder = folder();
    let [pipe, later, stats] = ["x.folded", "y.folded", "z.json"].map(|name| folder.path().join(name));
    mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut recorder = collector();
    recorder.args(["run", "-d", "100ms", "-o"]).arg(&pipe).arg("-o").arg(&later).arg("--stats").arg(&stats);
    recorder.stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines().map(Result::unwrap);
    // Said when the recording is over, however idle the machine was. Files are written before the pipe is opened.
    assert!(lines.any(|line| line.contains(" samples in ")));
    assert!(lines.any(|line| line.starts_with("wrote ") && line.ends_with("z.json")));
    let mut signal_until = |said: &str| {
        send(&recorder, Signal::INT);
        assert!(lines.any(|line| line.contains(said)), "{said}");
    };
    signal_until("a second signal abandons it");
    signal_until("abandoned");
    assert_eq!(recorder.wait().unwrap().code(), Some(1));
    assert!(later.is_file() && fs::symlink_metadata(pipe).unwrap().file_type().is_fifo());
    assert_balanced(&serde_json::from_slice(&fs::read(stats).unwrap()).unwrap());
}

#[test]
fn a_reader_that_has_seen_enough() {
    let Some(_live) = live("a_reader_that_has_seen_enough") else { return };
    for out in ["-", "/dev/stdout"] {
        let mut recorder = collector();
        recorder.args(["run", "-d", "100ms", "--format", "html", "-o", out]);
        let mut recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(recorder.stdout.take());
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{out}: {}", stderr(&output));
    }
}

#[test]
fn two_recordings_of_a_second_keep_their_files() {
    let Some(_live) = live("two_recordings_of_a_second_keep_their_files") else { return };
    let folder = folder();
    let start = || {
        let mut recorder = collector();
        recorder.args(["run", "-d", "100ms"]).current_dir(folder.path());
        recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for recorder in [start(), start()] {
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let wrote = stderr(&output);
        for file in wrote.lines().filter_map(|line| line.strip_prefix("wrote ")) {
            assert!(Path::new(file).is_file(), "{wrote}");
        }
        assert!(String::from_utf8(output.stdout).unwrap().contains("function, of "));
    }
    assert_eq!(entries(folder.path()).len(), 4);
}

#[test]
fn figures_on_stdout() {
    let Some(_live) = live("figures_on_stdout") else { return };
    let folder = folder();
    let file = folder.path().join("x.folded");
    let output =
        run(["-d", "100ms", "--stats", "-", "-o"].map(OsStr::new).into_iter().chain([file.as_os_str()]));
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_balanced(&stats);
}

#[test]
fn a_killed_run_leaves_no_half_file() {
    let Some(_live) = live("a_killed_run_leaves_no_half_file") else { return };
    let folder = folder();
    let (mut child, stdin) = started(collector(), &folder);
    let (folded, stats) = files(folder.path());
    fs::write(&folded, "from an earlier run").unwrap();
    send(&child, Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), None);
    drop(stdin);
    assert_eq!(fs::read_to_string(folded).unwrap(), "from an earlier run");
    assert!(!stats.exists());
    assert_eq!(entries(folder.path()).len(), 1, "nor one under another name");
}
