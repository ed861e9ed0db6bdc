//! System calls: as many, with as many errors and for as long as a program makes them on purpose.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use collector_common::record::{Histogram, Table};
use collector_common::sharing::Writable;
use collector_user::session::{Recording, SessionSettings};

use crate::prerequisites::{live, live_with};
use crate::programs::{COMPAT_COMPILER, compile, compile_compat, folder};
use crate::recording::collector;
use crate::scenarios::{attribute, record, settings};

fn record_calls(folder: &Path, settings: SessionSettings) -> (Recording, [u64; 2]) {
    let program = compile(folder, "calls", "calls.c", &[]);
    let told = folder.join("told");
    let recording = record(settings, &[program, told.clone()].map(OsString::from));
    let text = fs::read_to_string(&told).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    (recording, [numbers.next().unwrap(), numbers.next().unwrap()])
}

fn table(recording: &Recording) -> &Table {
    recording.machine.tables().iter().find(|table| table.name == "system calls").unwrap()
}

/// What the table has of a call, by the headings.
fn column(recording: &Recording, call: &str, heading: &str) -> u64 {
    let table = table(recording);
    let column = table.columns.iter().position(|column| column.name == heading).unwrap();
    table.rows.iter().find(|(label, _)| label == call).map_or(0, |(_, numbers)| numbers[column])
}

fn histogram<'a>(recording: &'a Recording, call: &str) -> &'a Histogram {
    recording.machine.histograms().iter().find(|histogram| histogram.label == call).unwrap()
}

#[test]
fn calls_are_counted_with_errors_and_times() {
    let Some(_live) = live("calls_are_counted_with_errors_and_times") else { return };
    let folder = folder();
    let (recording, [slept, longest]) = record_calls(folder.path(), settings(&["syscalls"]));
    assert_eq!([column(&recording, "getppid", "calls"), column(&recording, "getppid", "failed")], [5000, 0]);
    assert_eq!([column(&recording, "openat2", "calls"), column(&recording, "openat2", "failed")], [300, 300]);
    assert_eq!(column(&recording, "nanosleep", "calls"), 20);
    // It measures with the calls' entry and exit around them.
    let [sum, most] = ["in all", "at longest"].map(|heading| column(&recording, "nanosleep", heading));
    assert!((200_000_000..=slept).contains(&sum), "{sum} of {slept}");
    assert!((10_000_000..=longest).contains(&most), "{most} of {longest}");
    let sleeps = histogram(&recording, "nanosleep");
    assert_eq!((sleeps.count(), sleeps.sum), (20, sum));
    // 10 ms lie in the bucket from 128 ns * 2^16 on.
    let shorter = sleeps.filled().filter(|(_, end, _)| *end <= 10_000_000);
    assert_eq!(shorter.map(|(_, _, count)| count).sum::<u64>(), 0, "{sleeps:?}");
    let all = recording.machine.histograms().first().unwrap();
    let rows = &table(&recording).rows;
    assert_eq!(all.count(), rows.iter().map(|(_, numbers)| numbers[0]).sum::<u64>());
}

#[test]
fn the_slowest_calls_have_their_stacks() {
    let Some(_live) = live("the_slowest_calls_have_their_stacks") else { return };
    let folder = folder();
    let mut settings = settings(&["syscalls"]);
    let event = &mut settings.events[0].event;
    let duration = event.format().field_ref("duration_ns").unwrap();
    let durations = Writable::new(Vec::new());
    let told = durations.clone();
    event.add_closure(move |data| {
        let duration = data.try_get_u64(duration)?;
        Ok(told.write(|told| told.push(duration as i64))?)
    });
    let (recording, [_, longest]) = record_calls(folder.path(), settings);
    let machine = &recording.machine;
    let symbols = recording.symbolize();
    let sleeps: Vec<_> =
        machine.samples().iter().filter(|sample| attribute(machine, sample, "call") == "nanosleep").collect();
    // On each CPU the longest, at least, and no more than there were.
    assert!((1..=20).contains(&sleeps.len()), "{}", sleeps.len());
    let most = sleeps.iter().map(|sample| sample.value as u64).max().unwrap();
    assert_eq!(most, column(&recording, "nanosleep", "at longest"));
    assert!(most <= longest);
    for sample in &sleeps {
        let stack = machine.stacks().get(sample.stack);
        let functions: Vec<_> = stack.iter().map(|&frame| symbols.name(frame).function.to_string()).collect();
        assert!(functions.iter().any(|name| name == "sleep_often"), "{functions:?}");
        assert!(functions.iter().any(|name| name == "main"), "{functions:?}");
    }
    let failed = machine.samples().iter().find(|sample| attribute(machine, sample, "call") == "openat2");
    assert_eq!(attribute(machine, &failed.unwrap(), "error"), "ENOENT");
    // Of 5000 calls that take no time there are a few.
    let asked = machine.samples().iter().filter(|sample| attribute(machine, sample, "call") == "getppid");
    assert!((1..500).contains(&asked.count()));
    let kind = machine.kinds()[0];
    assert_eq!([machine.string(kind.name), kind.unit.name()], ["syscalls", "nanoseconds"]);
    let values: Vec<i64> = machine.samples().iter().map(|sample| sample.value).collect();
    assert_eq!(durations.into_inner().unwrap(), values);
}

#[test]
fn calls_of_32_bit_programs_have_their_own_names() {
    let Some(_live) = live_with("calls_of_32_bit_programs_have_their_own_names", &[COMPAT_COMPILER]) else {
        return;
    };
    let folder = folder();
    let program = compile_compat(folder.path(), "calls", "calls.c", &[]);
    let told = folder.path().join("told");
    let recording = record(settings(&["sys"]), &[program, told].map(OsString::from));
    assert_eq!(column(&recording, "getppid (32-bit)", "calls"), 5000);
    assert_eq!(column(&recording, "openat2 (32-bit)", "failed"), 300);
    assert_eq!(column(&recording, "getppid", "calls"), 0);
}

#[test]
fn a_fork_counts_once_and_a_thread_number_may_be_given_anew() {
    let Some(_live) = live("a_fork_counts_once_and_a_thread_number_may_be_given_anew") else { return };
    let folder = folder();
    // 20 children, one after the other, all of the same number.
    let program = compile(folder.path(), "reborn", "reborn.c", &[]);
    let recording = record(settings(&["syscalls"]), &[program.into()]);
    assert_eq!(recording.warnings, [""; 0]);
    let calls = ["clone3", "wait4", "exit_group", "exit"].map(|call| column(&recording, call, "calls"));
    assert_eq!(calls, [20, 20, 0, 0]);
    assert_eq!(column(&recording, "clone3", "failed"), 0);
}

#[test]
fn all_scenarios_of_programs_go_together() {
    let Some(_live) = live("all_scenarios_of_programs_go_together") else { return };
    let folder = folder();
    let names = ["cpu", "offcpu", "sched", "faults", "proc", "sys"];
    let (recording, [slept, _]) = record_calls(folder.path(), settings(&names));
    let machine = &recording.machine;
    assert_eq!(column(&recording, "getppid", "calls"), 5000);
    assert_eq!(machine.lives().len(), 1);
    assert!(machine.histograms().iter().any(|histogram| histogram.label == "calls"), "waits for a CPU");
    let of_kind = |name: &str| {
        let kind = machine.kinds().iter().position(|kind| machine.string(kind.name) == name).unwrap();
        let samples = machine.samples().iter().filter(move |sample| usize::from(sample.kind.0) == kind);
        samples.map(|sample| sample.value).sum::<i64>()
    };
    assert!(of_kind("minor-faults") > 0);
    let blocked = of_kind("off_cpu");
    // Where another thread has its CPU until a pause is over, it was not blocked.
    assert!(blocked >= 100_000_000 && blocked as u64 <= slept + 100_000_000, "{blocked} of {slept}");
}

#[test]
fn calls_that_probes_make_are_not_the_programs() {
    let Some(_live) = live("calls_that_probes_make_are_not_the_programs") else { return };
    let folder = folder();
    let blocks = compile(folder.path(), "blocks", "blocks.c", &["-fno-builtin"]);
    let arguments = [blocks, folder.path().join("told"), "10".into()];
    // Where the kernel traps a function's return, it puts a system call there.
    let recording = record(settings(&["sys", "memory"]), &arguments.map(OsString::from));
    let counted: Vec<&str> = table(&recording).rows.iter().map(|(label, _)| label.as_str()).collect();
    assert!(counted.contains(&"mmap"), "{counted:?}");
    assert!(counted.iter().all(|label| !label.contains("probe")), "{counted:?}");
    let blocks = recording.machine.tables().iter().find(|table| table.name == "native memory");
    assert!(blocks.is_some_and(|table| !table.rows.is_empty()));
}

#[test]
fn calls_are_printed() {
    let Some(_live) = live("calls_are_printed") else { return };
    let folder = folder();
    let program = compile(folder.path(), "calls", "calls.c", &[]);
    let mut command = collector();
    command.args(["run", "-s", "syscalls", "-s", "sched", "-o"]).arg(folder.path().join("x.folded"));
    let output = command.arg("--").arg(program).arg(folder.path().join("told")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let asked = stderr.lines().find(|line| line.trim_start().starts_with("getppid ")).unwrap_or_default();
    assert!(asked.contains(" 5000 calls") && asked.contains(" 0 failed"), "{stderr}");
    for heading in ["times of system calls of all calls:", "waits for a CPU of all threads:"] {
        assert!(stderr.lines().any(|line| line == heading), "{stderr}");
    }
}
