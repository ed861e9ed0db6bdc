//! Processes that are recorded stay so whatever they execute and whichever pids they get.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::languages::recursion;
use crate::prerequisites::live;
use crate::programs::{compile, folder};
use crate::recording::{Stack, record, record_in};

/// A folder that every user can come to, unlike the build's.
fn open_folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// As `sudo` would when `nobody` calls it.
fn called_by_nobody(recorder: &mut Command) {
    recorder.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("SUDO_USER", "nobody")]);
}

/// Without `sudo`.
fn called_by_root(recorder: &mut Command) {
    recorder.env_remove("SUDO_UID");
}

#[test]
fn a_program_that_its_user_may_not_read() {
    let Some(_live) = live("a_program_that_its_user_may_not_read") else { return };
    let folder = open_folder();
    let closed = compile(folder.path(), "closed", "recursion.c", &[]);
    set_mode(&closed, 0o711);
    let recorded = record_in(folder.path(), ["--".as_ref(), closed.as_os_str()], called_by_nobody);
    recursion("closed").check(&recorded);
    // It burns a second, which is 4,999 periods.
    assert!(recorded.periods_of(&["closed"]) > 4000, "{}", recorded.stderr);
}

#[test]
fn what_a_setuid_program_runs() {
    let Some(_live) = live("what_a_setuid_program_runs") else { return };
    let folder = open_folder();
    let elevate = compile(folder.path(), "elevate", "setuid.c", &[]);
    set_mode(&elevate, 0o4755);
    let below = compile(folder.path(), "below", "recursion.c", &[]);
    let after = compile(folder.path(), "after", "recursion.c", &[]);
    let shell = ["--", "sh", "-euc", r#""$1" "$2"; "$3""#, "sh"].map(OsStr::new);
    let programs = [&elevate, &below, &after].map(|file| file.as_os_str());
    let recorded = record_in(folder.path(), shell.into_iter().chain(programs), called_by_nobody);
    let names = ["below", "after"];
    assert!(recorded.periods_of(&names) > 8000, "{}", recorded.stderr);
    assert!(names.iter().all(|name| recorded.samples_of(name) > 500), "{}", recorded.stderr);
}

#[test]
fn children_that_share_a_pid() {
    let Some(_live) = live("children_that_share_a_pid") else { return };
    let folder = folder();
    let reborn = compile(folder.path(), "reborn", "reborn.c", &[]);
    let recorded = record_in(folder.path(), ["--".as_ref(), reborn.as_os_str()], called_by_root);
    assert!(recorded.periods_of(&["reborn"]) > 4000, "{}", recorded.stderr);
}

#[test]
fn a_command_before_its_program() {
    let Some(_live) = live("a_command_before_its_program") else { return };
    let folder = folder();
    for _ in 0..20 {
        let recorded = record(folder.path(), ["--", "true"]);
        let comms: Vec<&str> = recorded.stacks.iter().map(|stack| stack.comm.as_str()).collect();
        assert!(comms.iter().all(|comm| *comm == "true"), "{comms:?}");
        let is_ours = |frame: &&str| frame.contains("collector") || frame.contains("pre_exec");
        let ours = recorded.stacks.iter().flat_map(Stack::user_frames).find(is_ours);
        assert_eq!(ours, None, "our own work until it executes");
    }
}
