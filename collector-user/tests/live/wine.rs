//! Programs for Windows under Wine: code of images that it maps, or copies into memory without a file, has its callers by the image's
//! own unwind codes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::prerequisites::live_with;
use crate::programs::{Running, folder, source};
use crate::recording::{FREQUENCY, Stack, collector, files, record, record_in};
use crate::windows::{COMPILER, Wine};

/// What burns time in `windows_chain.c`, root first.
const CHAINS: [&[&str]; 2] =
    [&["main", "first", "second", "third", "spin"], &["worker", "other", "third", "spin"]];

/// Where Windows has threads begin.
const ROOT: &str = "RtlUserThreadStart";

/// The largest share of stacks that may end early: while a thread starts, and where Wine changes stacks.
const MAY_BE_CUT: f64 = 0.01;

/// Compiles the program `name`.
fn compile(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let mut compiler = Command::new(COMPILER);
    compiler
        .args(["-O2", "-fomit-frame-pointer", "-o"])
        .arg(&program)
        .args(options)
        .arg(source("windows_chain.c"));
    assert!(compiler.status().unwrap().success());
    program
}

/// Stacks that are at the end of a chain have that chain without gaps, from where threads begin.
fn check(stacks: &[Stack], comm: &str) {
    let at_end = |stack: &&Stack| stack.comm == comm && stack.user_frames().last() == Some("spin");
    let stacks: Vec<&Stack> = stacks.iter().filter(at_end).collect();
    let total: u64 = stacks.iter().map(|stack| stack.count).sum();
    for chain in CHAINS {
        let is_of_chain = |stack: &&&Stack| stack.user_frames().any(|frame| frame == chain[0]);
        let count: u64 = stacks.iter().filter(is_of_chain).map(|stack| stack.count).sum();
        assert!(count >= 200, "{comm}: {count} of {total} stacks are of {chain:?}");
    }
    let is_whole = |stack: &&&Stack| {
        let frames: Vec<&str> = stack.user_frames().collect();
        !stack.is_cut() && frames.first() == Some(&ROOT) && CHAINS.iter().any(|chain| frames.ends_with(chain))
    };
    let whole: u64 = stacks.iter().filter(is_whole).map(|stack| stack.count).sum();
    let others: Vec<&&Stack> = stacks.iter().filter(|stack| !is_whole(stack)).collect();
    assert!((total - whole) as f64 <= MAY_BE_CUT * total as f64, "{comm}: {whole} of {total}: {others:#?}");
}

#[test]
fn programs_under_wine_have_the_chains_of_their_sources() {
    let test = "programs_under_wine_have_the_chains_of_their_sources";
    let Some(_live) = live_with(test, &[COMPILER]) else { return };
    let Some(wine) = Wine::find(test) else { return };
    let folder = folder();
    // Sections of the first are copied, those of the second are mapped.
    for (name, options) in [("copied.exe", &[][..]), ("mapped.exe", &["-Wl,--file-alignment,4096"])] {
        let program = compile(folder.path(), name, options);
        for backend in ["ebpf", "perf"] {
            let args = ["--backend", backend, "--"].map(AsRef::as_ref);
            let args = args.into_iter().chain([wine.program.as_os_str(), program.as_os_str()]);
            let recorded = record_in(folder.path(), args, |recorder| wine.around(recorder));
            check(&recorded.stacks, name);
        }
    }
}

#[test]
fn a_program_that_runs_already_has_its_chains() {
    let test = "a_program_that_runs_already_has_its_chains";
    let Some(_live) = live_with(test, &[COMPILER]) else { return };
    let Some(wine) = Wine::find(test) else { return };
    let folder = folder();
    let name = "runs.exe";
    let program = compile(folder.path(), name, &[]);
    let mut command = Command::new(&wine.program);
    wine.around(command.arg(&program).arg("60").stdin(Stdio::null()).stdout(Stdio::piped()));
    let mut running = Running::of(&mut command);
    let mut line = String::new();
    BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "begins");
    let pid = running.0.id().to_string();
    let recorded = record(folder.path(), ["-d", "2s", "-p", &pid]);
    check(&recorded.stacks, name);
}

#[test]
fn what_perf_recorded_under_wine_is_unwound() {
    let test = "what_perf_recorded_under_wine_is_unwound";
    let Some(_live) = live_with(test, &[COMPILER, "perf"]) else { return };
    let Some(wine) = Wine::find(test) else { return };
    let folder = folder();
    let data = folder.path().join("perf.data");
    for (name, options) in [("copied.exe", &[][..]), ("mapped.exe", &["-Wl,--file-alignment,4096"])] {
        let program = compile(folder.path(), name, options);
        let mut perf = Command::new("perf");
        perf.args([
            "record",
            "-q",
            "-N",
            "-F",
            FREQUENCY,
            "-e",
            "cpu-clock",
            "--call-graph",
            "dwarf,16384",
            "-o",
        ]);
        perf.arg(&data).arg("--").arg(&wine.program).arg(&program);
        wine.around(&mut perf);
        assert!(perf.stdin(Stdio::null()).status().unwrap().success());
        let (folded, _) = files(folder.path());
        let output = collector().arg("convert").arg(&data).arg("-o").arg(&folded).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        let stacks: Vec<Stack> = fs::read_to_string(folded).unwrap().lines().map(Stack::parse).collect();
        check(&stacks, name);
    }
}
