//! The programs in `examples/`, each run as its first lines say.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use collector_common::record::Sample;
use collector_user::universal::RECORDER;
use serde_json::Value;

use crate::prerequisites::{find, live, live_with};
use crate::programs::{compile, folder};
use crate::recording::collector;
use crate::scenarios;

/// The program of an example.
fn example(name: &str) -> PathBuf {
    let binaries = Path::new(env!("CARGO_BIN_EXE_collector")).parent().unwrap();
    let program = binaries.join("examples").join(name);
    assert!(program.is_file(), "{name} is not built: `cargo build --examples` makes it");
    program
}

/// What an example prints.
fn output<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> String {
    let output = Command::new(example(name)).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn cpu_profile() {
    let Some(_live) = live_with("cpu_profile", &["go"]) else { return };
    let folder = folder();
    let file = folder.path().join("x.pb.gz");
    let mut busy = Command::new(compile(folder.path(), "recursion", "recursion.c", &[])).spawn().unwrap();
    let text = output("cpu_profile", [&file]);
    assert!(busy.wait().unwrap().success());
    assert!(text.contains(" samples, "), "{text}");
    let top = Command::new("go").args(["tool", "pprof", "-top"]).arg(&file).output().unwrap();
    let top = String::from_utf8(top.stdout).unwrap();
    assert!(top.contains("burn_rounds") || top.contains("recurse"), "{top}");
}

/// For how many milliseconds `long_waits` says that threads of a name waited.
fn waited(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.map(|rest| rest.strip_suffix(" ms").and_then(|number| number.parse().ok()).unwrap())
}

#[test]
fn long_waits() {
    let Some(_live) = live("long_waits") else { return };
    let text = output("long_waits", ["sh", "-c", "sleep 0.3; sleep 0.005"]);
    // The shell waits from when it asks for its child's end, which may sleep for a while by then.
    let [sleep, shell] = ["sleep", "sh"].map(|name| waited(&text, name));
    assert!(sleep.is_some_and(|ms| ms >= 300) && shell.is_some_and(|ms| ms >= 150), "{text}");
}

/// Beside 30 waits of 30 milliseconds are 60,000 shorter ones, of as long again in all: not one of them is let through.
#[test]
fn long_waits_are_not_many_short_ones() {
    let Some(_live) = live("long_waits_are_not_many_short_ones") else { return };
    let folder = folder();
    let program = compile(folder.path(), "brief_waits", "brief_waits.c", &[]);
    let told = folder.path().join("told");
    let text = output("long_waits", [program.as_os_str(), told.as_os_str()]);
    let really: u64 = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    let listed = waited(&text, "brief_waits").unwrap();
    // The program's clock is read before it waits and after it. On a busy machine records of some waits are lost.
    assert!(really >= 900 && (450..=really).contains(&listed), "{really} ms: {text}");
}

/// A process that sleeps on when the command ends has waited for long, and is left out, for nobody woke it.
#[test]
fn long_waits_are_those_that_somebody_ended() {
    let Some(_live) = live("long_waits_are_those_that_somebody_ended") else { return };
    let folder = folder();
    let outlasting = folder.path().join("outlasting");
    std::os::unix::fs::symlink(find("sleep").unwrap(), &outlasting).unwrap();
    let script = r#""$1" 5 >/dev/null 2>&1 & sleep 0.6"#;
    let command = ["sh", "-c", script, "sh"].map(OsString::from).into_iter().chain([outlasting.into()]);
    let command: Vec<OsString> = command.collect();
    let recording = scenarios::record(scenarios::settings(&["off_cpu"]), &command);
    let machine = &recording.machine;
    let is_its = |sample: &Sample| machine.string(machine.thread(sample.thread).name) == "outlasting";
    let longest = machine.samples().iter().filter(is_its).max_by_key(|sample| sample.value).unwrap();
    assert!(longest.value >= 10_000_000, "{longest:?}: what is to be left out is there");
    assert_eq!(scenarios::attribute(machine, &longest, "waker"), "");

    let text = output("long_waits", &command);
    assert!(waited(&text, "sleep").is_some_and(|ms| ms >= 600), "{text}");
    assert_eq!(waited(&text, "outlasting"), None, "{text}");
}

#[test]
fn executed_programs() {
    let Some(_live) = live("executed_programs") else { return };
    let text = output("executed_programs", ["sh", "-c", "ls /dev/null; env true"]);
    let names: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(' ')?.1.rsplit('/').next()).collect();
    assert!(["sh", "ls", "env", "true"].iter().all(|name| names.contains(name)), "{text}");
}

#[test]
fn custom_source() {
    let Some(_live) = live("custom_source") else { return };
    let text = output("custom_source", [""; 0]);
    let loads = text
        .lines()
        .filter(|line| line.strip_prefix("load ").is_some_and(|load| load.parse::<f64>().is_ok()));
    let loads = loads.count();
    assert!((5..=12).contains(&loads) && text.ends_with(&format!("{loads} times\n")), "{text}");
}

#[test]
fn custom_exporter() {
    let Some(_live) = live("custom_exporter") else { return };
    let folder = folder();
    let program = compile(folder.path(), "family", "family.c", &["-pthread"]);
    let text = output("custom_exporter", [folder.path(), &program]);
    // The child is called as its parent until it names itself, and is in the file of its last name.
    let files: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(".csv:")).collect();
    let expected = ["family", "family-child"];
    let expected = expected.map(|name| folder.path().join(format!("threads.{name}")));
    assert!(files.iter().map(Path::new).eq(expected.iter().map(|path| &**path)), "{text}");
    assert_eq!(text.matches("process,thread,samples\n").count(), 2, "{text}");
    let samples = |thread: &str| {
        let lines = text.lines().filter(|line| line.split(',').nth(1) == Some(thread));
        lines.filter_map(|line| line.rsplit(',').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    for thread in ["family", "family-thread", "family-child"] {
        assert!((200..600).contains(&samples(thread)), "{text}");
    }
    let programs = text.lines().find_map(|line| line.strip_prefix("programs: ")).unwrap();
    assert!(programs.parse::<u64>().unwrap() > 1, "{text}");
}

/// What the example leaves out is there: a recording of it by another recorder has it.
#[test]
fn own_work() {
    let Some(_live) = live_with("own_work", &["go"]) else { return };
    let folder = folder();
    let [file, all] = ["x.pb.gz", "all.jsonl"].map(|name| folder.path().join(name));
    let example = example("own_work");
    let recorder = ["run", "-o"].map(OsStr::new).into_iter().chain([all.as_os_str(), OsStr::new("--")]);
    let recorder = collector().args(recorder).args([&example, &file]).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&recorder.stderr);
    assert!(recorder.status.success(), "{stderr}");
    let text = String::from_utf8(recorder.stdout).unwrap();
    let counts = text.lines().find_map(|line| line.strip_suffix(" lost")?.split_once(" samples, "));
    let (samples, lost): (u64, u64) =
        counts.map(|(samples, lost)| (samples.parse().unwrap(), lost.parse().unwrap())).unwrap();
    let outside = samples_by_thread(&all);
    let of = |thread: &str| outside.get(thread).copied().unwrap_or(0);
    assert!(of(RECORDER) > 0, "{outside:?}");
    // The main thread computes from the start of the recording nearly to the end of the process.
    let main = of("own_work");
    assert!(samples > 50 && samples <= main + main / 10 && samples + lost >= main * 4 / 5, "{main}: {text}");
    let deepest = text.lines().find_map(|line| line.strip_prefix("the deepest stack has "));
    let deepest = deepest.and_then(|line| line.strip_suffix(" functions")?.parse::<usize>().ok());
    // Below `main` are its callers in the standard library.
    assert!(deepest.is_some_and(|deepest| deepest > 3), "{text}");
    let go = |mode: &str| {
        let top =
            Command::new("go").args(["tool", "pprof", mode, "-nodecount=1000"]).arg(&file).output().unwrap();
        String::from_utf8(top.stdout).unwrap()
    };
    let top = go("-top");
    assert!(top.contains("sum_of_primes") && top.contains("is_prime"), "{top}");
    // Each label and each of its values have a line.
    let labels = go("-tags");
    let mut threads = labels.lines().skip_while(|line| !line.trim_start().starts_with("comm:")).skip(1);
    let threads: Vec<&str> = threads.by_ref().take_while(|line| !line.trim().is_empty()).collect();
    let is_main = |line: &&str| line.trim_end().ends_with("): own_work");
    assert!(threads.len() == 1 && threads.iter().all(is_main), "{labels}");
    // The sum of the primes below two million.
    let comments = go("-comments");
    assert!(comments.contains("sum of primes: 142913828922"), "{comments}");
}

/// How many samples JSON lines have of threads of each name.
fn samples_by_thread(file: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(file).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "sample" {
            *counts.entry(line["comm"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    counts
}
