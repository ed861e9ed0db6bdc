//! Processes: those that a script makes, with the arguments that it gives them, the time that it sees them take and the
//! codes that it asks for.

use std::ffi::OsString;
use std::fs;

use collector_common::record::{Exit, Process, ProcessLife};
use collector_user::session::Recording;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::collector;
use crate::scenarios::{record, settings};

/// Writes its pid, and nanoseconds from before to after a sleep, into `$1`.
const SCRIPT: &str = r#"
    before=$(date +%s%N)
    sleep 0.3
    echo $$ $(($(date +%s%N) - before)) >"$1"
    sh -c 'exit 7'
    sh -c 'kill -KILL $$'
    sh -c 'exec sleep 0.1'
    (exit 3)
    env printf '%s' 'two words' '' >/dev/null
    exit 5
"#;

/// What a recording tells of a process.
#[derive(Debug)]
struct Told<'a> {
    process: &'a Process,
    name: &'a str,
    parent: &'a Process,
    parent_name: &'a str,
    arguments: Vec<&'a str>,
    are_cut: bool,
    lived: u64,
}

/// The processes that a recording was asked for.
fn told(recording: &Recording) -> Vec<Told<'_>> {
    let machine = &recording.machine;
    let tell = |life: &ProcessLife| {
        let process = machine.process(life.process);
        let program = machine.programs_of(life.process).next().map(|id| machine.program(id));
        let parent = machine.process(process.parent.unwrap());
        Told {
            process,
            name: machine.string(process.name),
            parent,
            parent_name: machine.string(parent.name),
            arguments: program.map(|program| machine.arguments(program).collect()).unwrap_or_default(),
            are_cut: program.is_some_and(|program| program.are_cut),
            lived: process.end.unwrap().0 - life.made.0,
        }
    };
    machine.lives().iter().map(tell).collect()
}

/// The only process with these arguments.
fn one<'a>(told: &'a [Told<'a>], arguments: &[&str]) -> &'a Told<'a> {
    let mut found = told.iter().filter(|told| told.arguments == arguments);
    match (found.next(), found.next()) {
        (Some(one), None) => one,
        found => panic!("{found:?} of {arguments:?} in {told:#?}"),
    }
}

fn exit(told: &Told<'_>) -> Exit {
    told.process.exit.unwrap()
}

#[test]
fn processes_are_those_that_a_script_makes() {
    let Some(_live) = live("processes_are_those_that_a_script_makes") else { return };
    let folder = folder();
    let told = folder.path().join("told");
    let command = ["sh", "-c", SCRIPT, "sh"].map(OsString::from);
    let command: Vec<_> = command.into_iter().chain([told.clone().into()]).collect();
    let recording = record(settings(&["processes"]), &command);
    let lives = self::told(&recording);
    let text = fs::read_to_string(&told).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [script, slept] = numbers[..] else { panic!("{text}") };

    let shell = one(&lives, &["sh", "-c", SCRIPT, "sh", told.to_str().unwrap()]);
    assert_eq!((u64::from(shell.process.pid.0), exit(shell)), (script, Exit::Code(5)));
    let sleep = one(&lives, &["sleep", "0.3"]);
    assert_eq!((sleep.parent.pid, sleep.parent_name, exit(sleep)), (shell.process.pid, "sh", Exit::Code(0)));
    assert!((300_000_000..=slept).contains(&sleep.lived), "{} of {slept}", sleep.lived);
    assert_eq!(exit(one(&lives, &["sh", "-c", "exit 7"])), Exit::Code(7));
    assert_eq!(exit(one(&lives, &["sh", "-c", "kill -KILL $$"])), Exit::Signal(9));
    // One that executes twice is one process, with the arguments of the later program.
    let twice = one(&lives, &["sleep", "0.1"]);
    assert!(twice.parent.pid == shell.process.pid && twice.lived >= 100_000_000, "{twice:?}");
    assert_eq!(one(&lives, &["printf", "%s", "two words", ""]).name, "printf");
    let forked: Vec<_> = lives.iter().filter(|told| exit(told) == Exit::Code(3)).collect();
    assert!(forked.len() == 1 && forked[0].arguments.is_empty() && forked[0].name == "sh", "{lives:#?}");
    // Beside these, two of `date`, with a shell around the second one or not.
    let others = lives.len() - 7;
    assert!((2..=4).contains(&others), "{lives:#?}");
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let Some(_live) = live("a_process_ends_with_its_last_thread") else { return };
    let folder = folder();
    let leaderless = compile(folder.path(), "leaderless", "leaderless.c", &["-pthread"]);
    // It reads a line before it goes on alone.
    let shell = ["sh", "-c", "exec \"$0\" </dev/null"].map(OsString::from);
    let command: Vec<_> = shell.into_iter().chain([leaderless.into()]).collect();
    let recording = record(settings(&["processes"]), &command);
    let lives = told(&recording);
    let [life] = &lives[..] else { panic!("{lives:#?}") };
    assert_eq!((exit(life), life.name), (Exit::Code(0), "leaderless"));
    // That is what another thread burns when the main one has ended.
    assert!(life.lived >= 500_000_000, "{life:?}");
}

#[test]
fn more_arguments_than_there_is_room_for_are_cut() {
    let Some(_live) = live("more_arguments_than_there_is_room_for_are_cut") else { return };
    let long = "x".repeat(3000);
    let recording = record(settings(&["proc"]), &["true".into(), long.clone().into()]);
    let lives = told(&recording);
    let [life] = &lives[..] else { panic!("{lives:#?}") };
    assert!(life.are_cut && life.arguments.len() == 2 && long.starts_with(life.arguments[1]), "{life:?}");
    assert!(life.arguments[1].len() > 2000, "{life:?}");
}

#[test]
fn processes_are_printed() {
    let Some(_live) = live("processes_are_printed") else { return };
    let folder = folder();
    let mut command = collector();
    command.args(["run", "-s", "processes", "-o"]).arg(folder.path().join("x.folded"));
    let output = command.args(["--", "sh", "-c", "sleep 0.01; exit 4"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let shell = stderr.lines().find(|line| line.ends_with("sh -c \"sleep 0.01; exit 4\"")).unwrap();
    assert!(shell.contains("code 4"), "{stderr}");
    assert!(stderr.lines().any(|line| line.contains(" sh ") && line.ends_with("sleep 0.01")), "{stderr}");
    assert!(!stderr.contains("warning: no samples"), "{stderr}");
}
