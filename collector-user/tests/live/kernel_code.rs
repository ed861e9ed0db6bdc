//! Code that the kernel held for a part of the recording only.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::{Stack, record};

#[test]
fn bpf_programs_that_are_gone_when_names_are_looked_up() {
    let Some(_live) = live("bpf_programs_that_are_gone_when_names_are_looked_up") else { return };
    let folder = folder();
    let loader = compile(folder.path(), "kernel-code", "kernel_code.c", &[]);
    let recorded = record(folder.path(), ["--".as_ref(), loader.as_os_str()]);
    assert!(recorded.stderr.contains("the command exited with status 0"), "{}", recorded.stderr);
    let listed = fs::read_to_string("/proc/kallsyms").unwrap();
    for name in ["_burn_first", "_burn_second"] {
        assert!(!listed.contains(name), "{name} is gone");
        let is_it =
            |frame: &String| frame.starts_with("bpf_prog_") && frame.ends_with(&format!("{name}_[k]"));
        let seen = recorded.stacks.iter().filter(|stack| stack.frames.iter().any(is_it));
        let samples: u64 = seen.map(|stack| stack.count).sum();
        assert!(samples > 200, "{name}: {samples} samples\n{}", recorded.stderr);
    }
}

/// Records `kernel_code.c` with programs that are there for milliseconds, started by what is in `before`.
fn check_brief(folder: &Path, before: &[&OsStr]) {
    let loader = compile(folder, "brief-code", "kernel_code.c", &["-DBRIEF"]);
    let command = before.iter().copied().chain([loader.as_os_str()]);
    let recorded = record(folder, [OsStr::new("--")].into_iter().chain(command));
    assert!(recorded.stderr.contains("the command exited with status 0"), "{}", recorded.stderr);
    let samples_of = |part: &str| -> u64 {
        let has_it = |stack: &&Stack| stack.frames.iter().any(|frame| frame.contains(part));
        recorded.stacks.iter().filter(has_it).map(|stack| stack.count).sum()
    };
    // They take the same time each, and another one has their place a moment later.
    let of_each = ["_brief_first", "_brief_second", "_brief_third"].map(samples_of);
    let all: u64 = of_each.iter().sum();
    assert!(all > 400, "{of_each:?}\n{}", recorded.stderr);
    assert!(of_each.iter().all(|count| (all / 4..all / 2).contains(count)), "{of_each:?}");
    let [held, unnamed] = ["_brief_held", "[kernel]+0x"].map(samples_of);
    assert!(held == 0 && unnamed * 100 <= all, "{held} of one that does not run, {unnamed} unnamed of {all}");
}

#[test]
fn bpf_programs_that_are_there_for_milliseconds() {
    let Some(_live) = live("bpf_programs_that_are_there_for_milliseconds") else { return };
    check_brief(folder().path(), &[]);
}

#[test]
fn bpf_programs_that_another_recorder_is_told_of() {
    let Some(_live) = live("bpf_programs_that_another_recorder_is_told_of") else { return };
    let folder = folder();
    let other = folder.path().join("other.folded");
    let recorder = [env!("CARGO_BIN_EXE_collector"), "run", "-o"].map(OsStr::new);
    check_brief(folder.path(), &[recorder.as_slice(), &[other.as_os_str(), OsStr::new("--")]].concat());
}
