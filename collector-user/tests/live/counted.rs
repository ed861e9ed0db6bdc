//! What scenarios count in tables and histograms, and the processes that they tell of, as lines of JSON: as many as programs make on purpose.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::collector;

/// Records a program by scenarios into JSON lines. Out: the lines, and what was said.
fn recorded(folder: &Path, scenarios: &[&str], command: &[&str]) -> (Vec<Value>, String) {
    let path = folder.join("x.jsonl");
    let mut recorder = collector();
    recorder.arg("run").args(scenarios.iter().flat_map(|scenario| ["-s", scenario])).arg("-o").arg(&path);
    let Output { status, stderr, .. } = recorder.arg("--").args(command).output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{told}");
    let text = fs::read_to_string(path).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), told)
}

fn of_type<'a>(lines: &'a [Value], name: &str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["type"] == name)
}

/// A number of a table, by the label of its row and the name of its column, with its unit.
fn number(table: &Value, label: &str, column: &str) -> (u64, String) {
    let columns = table["columns"].as_array().unwrap();
    let at = columns.iter().position(|known| known["name"] == column).unwrap();
    let row = table["rows"].as_array().unwrap().iter().find(|row| row["label"] == label).unwrap();
    (row["numbers"][at].as_u64().unwrap(), columns[at]["unit"].as_str().unwrap().to_owned())
}

fn sum(buckets: &[Value]) -> u64 {
    buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum()
}

#[test]
fn calls_that_were_counted_are_lines_of_json() {
    let Some(_live) = live("calls_that_were_counted_are_lines_of_json") else { return };
    let folder = folder();
    let program = compile(folder.path(), "calls", "calls.c", &[]);
    let times = folder.path().join("told");
    let command = [&program, &times].map(|path| path.to_str().unwrap());
    let (lines, told) = recorded(folder.path(), &["syscalls", "scheduling"], &command);
    let text = fs::read_to_string(times).unwrap();
    let slept: u64 = text.split(' ').next().unwrap().parse().unwrap();

    let table = of_type(&lines, "table").find(|line| line["table"] == "system calls").unwrap();
    let count = |number: u64| (number, "count".to_owned());
    assert_eq!(number(table, "getppid", "calls"), count(5000));
    assert_eq!(number(table, "openat2", "failed"), count(300));
    let (in_all, unit) = number(table, "nanosleep", "in all");
    // It measures with the calls' entry and exit around them.
    assert!((200_000_000..=slept).contains(&in_all) && unit == "nanoseconds", "{in_all} {unit} of {slept}");

    let histograms: Vec<_> = of_type(&lines, "histogram").collect();
    let sleeps = histograms.iter().find(|line| line["label"] == "nanosleep").unwrap();
    assert_eq!((sleeps["count"].as_u64(), sleeps["sum"].as_u64()), (Some(20), Some(in_all)));
    assert_eq!(sleeps["unit"], "nanoseconds");
    for histogram in &histograms {
        let buckets = histogram["buckets"].as_array().unwrap();
        assert_eq!(Some(sum(buckets)), histogram["count"].as_u64(), "{histogram}");
        // Each begins where the one before ends, and is twice as large.
        for pair in buckets.windows(2) {
            assert_eq!(pair[0]["to"], pair[1]["from"], "{histogram}");
            let bounds = [&pair[1]["from"], &pair[1]["to"]].map(Value::as_u64);
            assert!(bounds[1].is_none_or(|to| Some(to / 2) == bounds[0]), "{histogram}");
        }
    }
    // None slept for less than it asked for, which is 10 ms.
    let shorter = sleeps["buckets"].as_array().unwrap().iter();
    let shorter: Vec<_> =
        shorter.filter(|of| of["to"].as_u64().is_some_and(|to| to <= 10_000_000)).cloned().collect();
    assert_eq!(sum(&shorter), 0, "{sleeps}");
    assert!(histograms.iter().any(|line| line["histogram"] == "waits for a CPU"), "{histograms:?}");

    // All of it stands before what is in the order of time, and nothing of it is left out.
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let first = types.iter().position(|of| ["sample", "event", "exit"].contains(of)).unwrap_or(types.len());
    assert!(types[first..].iter().all(|of| !["table", "histogram", "process"].contains(of)), "{types:?}");
    assert!(!told.contains("tables and histograms") && !told.contains("table or histogram"), "{told}");
}

#[test]
fn processes_that_were_asked_for_are_lines_of_json() {
    let Some(_live) = live("processes_that_were_asked_for_are_lines_of_json") else { return };
    let folder = folder();
    let script = "sleep 0.2; sh -c 'exit 7' 'two words'; sh -c 'kill -KILL $$'; sh -c 'exec sleep 0'; exit 5";
    let (lines, told) = recorded(folder.path(), &["processes"], &["sh", "-c", script]);
    let processes: Vec<_> = of_type(&lines, "process").collect();
    let last = |line: &Value| line["executed"].as_array().unwrap().last().map(|of| of["arguments"].clone());
    let one = |arguments: &[&str]| {
        let mut found = processes.iter().filter(|line| last(line) == Some(arguments.into()));
        match (found.next(), found.next()) {
            (Some(one), None) => *one,
            found => panic!("{found:?} of {arguments:?} in {processes:#?}"),
        }
    };
    let shell = one(&["sh", "-c", script]);
    assert_eq!((&shell["status"], &shell["process"]), (&5.into(), &"sh".into()));
    let sleep = one(&["sleep", "0.2"]);
    assert_eq!(
        [&sleep["parent_pid"], &sleep["parent"], &sleep["status"]],
        [&shell["pid"], &"sh".into(), &0.into()]
    );
    let lived = |line: &Value| line["duration_ns"].as_u64().unwrap();
    assert!(lived(sleep) >= 200_000_000 && lived(shell) > lived(sleep), "{sleep} {shell}");
    assert_eq!(one(&["sh", "-c", "exit 7", "two words"])["status"], 7);
    let killed = one(&["sh", "-c", "kill -KILL $$"]);
    assert!(killed["signal"] == 9 && killed.get("status").is_none(), "{killed}");
    // One that executes twice is one process.
    let twice = one(&["sleep", "0"]);
    let programs: Vec<_> = twice["executed"].as_array().unwrap().iter().map(|of| &of["program"]).collect();
    assert_eq!(programs, ["sh", "sleep"], "{twice}");
    let times = twice["executed"].as_array().unwrap().iter().map(|of| of["time_ns"].as_u64().unwrap());
    let times: Vec<u64> = [twice["time_ns"].as_u64().unwrap()].into_iter().chain(times).collect();
    assert!(times.is_sorted(), "{twice}");
    // An end is a line in the order of time, too.
    let ends = of_type(&lines, "exit").filter(|line| line["pid"] == killed["pid"] && line["signal"] == 9);
    assert_eq!(ends.count(), 1);
    assert!(!told.contains("table or histogram"), "{told}");
}
