//! What a file with the records themselves has of a recording, beside what a replay finds in it, and `perf script`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use collector_user::replay::Replay;
use collector_user::session::{Recording, SessionSettings};
use collector_user::source::Named;
use export::format::{Contents, Held, Part, Profile};
use serde_json::Value;

use crate::prerequisites::{live, live_with};
use crate::programs::{compile, folder};
use crate::recording::collector;
use crate::scenarios::{record, settings};

fn contents(recording: &Recording) -> Contents {
    let symbols = recording.symbolize();
    Contents::of(Profile { machine: &recording.machine, symbols: &symbols })
}

/// All of it on one CPU, and not the first where there is another: samples of the first alone have no CPUs to tell.
const SCRIPT: &str = "taskset -pc $(($(nproc) - 1)) $$ >/dev/null
    for i in 1 2 3; do ls / >/dev/null; done; sleep 0.1; exec env true";

#[test]
fn a_file_of_records_has_the_parts_that_are_told() {
    let Some(_live) = live("a_file_of_records_has_the_parts_that_are_told") else { return };
    let folder = folder();
    for scenarios in [&["off_cpu", "scheduling"][..], &[]] {
        let path = folder.path().join(format!("{}.perf.data", scenarios.len()));
        let words = ["sh", "-c", SCRIPT];
        let Named { hooks: events, .. } =
            Named::parse(&["sched:sched_process_exec".to_owned()], false).unwrap();
        let capture = Some(File::create_new(&path).unwrap());
        let mut settings = SessionSettings { capture, ..settings(scenarios) };
        settings.events.extend(events);
        settings.sampling.clock = true;
        let recorded = record(settings, &words.map(Into::into));
        let replayed = contents(&Replay::open_path(&path).unwrap().run());
        let captured = recorded.captured();
        let there = contents(&recorded);
        // Whether a replay guesses any frame is the stacks' business. Under load many are read after the sample, and none is in the file.
        let compared = Part::ALL.into_iter().filter(|&part| there.has(part) && part != Part::Guesses);
        for part in compared {
            let is_held = captured.held(part) != Held::Not;
            assert_eq!(replayed.has(part), is_held, "{part:?} with {scenarios:?}");
        }
        let of_scenarios = [there.has(Part::Tables), there.has(Part::Attributes), recorded.not_captured > 0];
        assert_eq!(of_scenarios, [!scenarios.is_empty(); 3]);
        assert!(there.has(Part::Owners) && there.has(Part::Events) && there.has(Part::System));
        let line = there.left_out_by("perf.data", captured).unwrap();
        let says_late = line.contains("frames that were read after their samples");
        assert_eq!(says_late, there.has(Part::Guesses), "{line}");
        assert_eq!(line.contains("some other kinds of samples, "), !scenarios.is_empty(), "{line}");
    }
}

/// Functions of the recorded program, and no others.
const KNOWN: [&str; 4] = ["main", "recurse", "leaf", "burn_rounds"];

/// A sample, as `perf script` and JSON lines tell it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    nanoseconds: u64,
    /// A tracepoint's, or none of the clock.
    event: Option<String>,
    pid: u64,
    tid: u64,
    comm: String,
    cpu: u64,
    /// The function that was running, where it is a known one.
    function: Option<String>,
}

fn known(name: &str) -> Option<String> {
    KNOWN.contains(&name).then(|| name.to_owned())
}

/// Samples are paragraphs: `sh  301/302  [001]  12.000000345:  sched:sched_switch:`, and a line for each frame: address, name.
fn told_by_perf(data: &Path) -> BTreeSet<Told> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--ns", "--no-inline", "-F", "comm,pid,tid,cpu,time,event,ip,sym", "-i"]).arg(data);
    let output = perf.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let sample = |paragraph: &str| {
        let mut lines = paragraph.trim_matches('\n').lines();
        let (thread, rest) = lines.next().unwrap().split_once(" [").unwrap();
        let (cpu, rest) = rest.split_once(']').unwrap();
        let (time, event) = rest.split_once(": ").unwrap();
        let (seconds, nanoseconds) = time.trim().split_once('.').unwrap();
        let (comm, ids) = thread.trim().rsplit_once(' ').unwrap();
        let (pid, tid) = ids.split_once('/').unwrap();
        let event = event.trim().trim_end_matches(':');
        Told {
            nanoseconds: seconds.parse::<u64>().unwrap() * 1_000_000_000
                + nanoseconds.parse::<u64>().unwrap(),
            event: event.contains(':').then(|| event.to_owned()),
            pid: pid.parse().unwrap(),
            tid: tid.parse().unwrap(),
            comm: comm.trim().to_owned(),
            cpu: cpu.parse().unwrap(),
            function: lines.next().and_then(|frame| known(frame.split_whitespace().nth(1)?)),
        }
    };
    text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()).map(sample).collect()
}

fn told_by_lines(lines: &Path) -> BTreeSet<Told> {
    let text = fs::read_to_string(lines).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sample = |line: Value| {
        let [nanoseconds, pid, tid, cpu] =
            ["time_ns", "pid", "tid", "cpu"].map(|name| line[name].as_u64().unwrap());
        let [event, comm] = ["event", "comm"].map(|name| line[name].as_str().unwrap().to_owned());
        let event = (event != "cpu").then_some(event);
        let function = line["stack"][0].as_str().and_then(known);
        Told { nanoseconds, event, pid, tid, comm, cpu, function }
    };
    lines.filter(|line| line.get("value").is_some()).map(sample).collect()
}

/// One recording to both: the same samples, threads, CPUs, times and functions, of the clock and of a tracepoint.
#[test]
fn perf_reads_what_the_other_output_has() {
    let Some(_live) = live_with("perf_reads_what_the_other_output_has", &["perf"]) else { return };
    let folder = folder();
    let program = compile(folder.path(), "recursion", "recursion.c", &[]);
    let [data, lines] = ["x.perf.data", "x.jsonl"].map(|name| folder.path().join(name));
    let mut run = collector();
    run.args(["run", "-F", "997", "-s", "cpu_profiling", "-e", "sched:sched_process_exec", "-o"]).arg(&data);
    run.arg("-o").arg(&lines).args(["--", "sh", "-euc", "ls / >/dev/null; \"$1\"; env true", "sh"]);
    let output = run.arg(&program).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (theirs, ours) = (told_by_perf(&data), told_by_lines(&lines));
    let programs = ours.iter().filter(|told| told.event.as_deref() == Some("sched:sched_process_exec"));
    assert_eq!(programs.count(), 5, "sh, ls, the program, env, true");
    let burning = ours.iter().filter(|told| told.function.as_deref() == Some("burn_rounds")).count();
    assert!(burning > 100, "{burning}");
    let differ: Vec<_> = ours.symmetric_difference(&theirs).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

/// What the programs copied of a large stack's outer frames is in the file: it is unwound as it was in the recording.
#[test]
fn outer_frames_of_large_stacks_are_in_a_file_of_records() {
    let Some(_live) = live("outer_frames_of_large_stacks_are_in_a_file_of_records") else { return };
    let folder = folder();
    let path = folder.path().join("turns.perf.data");
    let program = compile(folder.path(), "turns", "turns.c", &[]);
    let capture = Some(File::create_new(&path).unwrap());
    let mut settings = SessionSettings { capture, ..settings(&[]) };
    settings.sampling.clock = true;
    let recorded = record(settings, &[program.into()]);
    let replayed = Replay::open_path(&path).unwrap().run();
    let complete = |recording: &Recording| recording.stats.stacks.get("complete").copied().unwrap_or(0);
    let (there, again) = (complete(&recorded), complete(&replayed));
    assert!(there > 300 && again == there, "{:?} {:?}", recorded.stats.stacks, replayed.stats.stacks);
}
