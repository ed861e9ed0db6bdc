//! Exit statuses, signals, and what is left of files.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::prerequisites::live;
use crate::programs::folder;
use crate::recording::{collector, files, read, run};

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
    let text = programs.path().join("no-program");
    fs::write(&text, "not for execution\n").unwrap();
    for program in [Path::new("/no/such/program"), &text] {
        let file = folder.path().join("x.folded");
        let output = run(["-o".as_ref(), file.as_os_str(), "--".as_ref(), program.as_os_str()]);
        assert_one_line(&output, 1, &program.display().to_string());
        assert_eq!(entries(folder.path()), [""; 0], "no file is left");
    }
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
fn an_unknown_ending_is_wrong_usage() {
    let Some(_live) = live("an_unknown_ending_is_wrong_usage") else { return };
    let folder = folder();
    let file = folder.path().join("x.unknown");
    let output = run(["-o".as_ref(), file.as_os_str(), "--".as_ref(), "true".as_ref()]);
    assert_one_line(&output, 2, "x.unknown");
    assert_eq!(run(["--no-such-option"]).status.code(), Some(2));
    assert_eq!(run(["-F", "0"]).status.code(), Some(2));
    assert_eq!(entries(folder.path()), [""; 0]);
}

/// A recording of a shell that has burnt some time, said so and waits. It waits for as long as its standard input,
/// which is the second value, is open.
fn started(folder: &TempDir) -> (Child, std::process::ChildStdin) {
    let (folded, stats) = files(folder.path());
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo ready; read -r line || true";
    let mut child = collector()
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
        let (mut child, stdin) = started(&folder);
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
fn a_killed_run_leaves_no_half_file() {
    let Some(_live) = live("a_killed_run_leaves_no_half_file") else { return };
    let folder = folder();
    let (mut child, stdin) = started(&folder);
    let (folded, stats) = files(folder.path());
    fs::write(&folded, "from an earlier run").unwrap();
    send(&child, Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), None);
    drop(stdin);
    assert_eq!(fs::read_to_string(folded).unwrap(), "from an earlier run");
    assert!(!stats.exists());
}
