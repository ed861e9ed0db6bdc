//! The programs in `examples/`, each run as its first lines say.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::prerequisites::{live, live_with};
use crate::programs::{compile, folder};

/// What an example prints.
fn output<S: AsRef<std::ffi::OsStr>>(example: &str, args: impl IntoIterator<Item = S>) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_collector")).parent().unwrap();
    let mut program = Command::new(binaries.join("examples").join(example));
    let output = program.args(args).stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{example}: {error}; `cargo build --examples` makes it"));
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
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

#[test]
fn long_waits() {
    let Some(_live) = live("long_waits") else { return };
    let text = output("long_waits", ["sh", "-c", "sleep 0.3; sleep 0.005"]);
    let waited = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|rest| rest.strip_suffix(" ms")?.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {text}"))
    };
    // The shell waits from when it asks for its child's end, which may sleep for a while by then.
    assert!(waited("sleep") >= 300 && waited("sh") >= 150, "{text}");
}

#[test]
fn long_waits_are_not_many_short_ones() {
    let Some(_live) = live("long_waits_are_not_many_short_ones") else { return };
    let folder = folder();
    let program = compile(folder.path(), "brief_waits", "brief_waits.c", &[]);
    let told = folder.path().join("told");
    let text = output("long_waits", [program.as_os_str(), told.as_os_str()]);
    // In a quiet machine none.
    let really: u64 = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    let listed = text.lines().find_map(|line| line.strip_prefix("brief_waits ")?.strip_suffix(" ms"));
    let listed: u64 = listed.map_or(0, |listed| listed.parse().unwrap());
    assert!(listed <= really && (really > 0 || !text.contains("brief_waits")), "{really} ms: {text}");
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

#[test]
fn own_work() {
    let Some(_live) = live_with("own_work", &["go"]) else { return };
    let folder = folder();
    let file = folder.path().join("x.pb.gz");
    let text = output("own_work", [&file]);
    let samples = text.lines().find_map(|line| line.split_once(" samples, "));
    let samples: u64 = samples.and_then(|(count, _)| count.parse().ok()).unwrap();
    assert!(samples > 50, "{text}");
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
    // The sum of the primes below two million.
    let comments = go("-comments");
    assert!(comments.contains("sum of primes: 142913828922"), "{comments}");
}
