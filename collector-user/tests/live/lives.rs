//! Stacks by how a program lives: below another root, without its file, or for five milliseconds only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use collector_user::session::{self, Session, SessionSettings};

use crate::chains::{MAY_BE_CUT_IN_HASTE, Program};
use crate::languages::{recursion, sorted};
use crate::prerequisites::{live, live_with};
use crate::programs::{compile, folder};
use crate::recording::{Recorded, Stack, record};

/// Records a shell's work.
pub(crate) fn record_script(folder: &Path, script: &str, args: &[&OsStr]) -> Recorded {
    let shell = ["--", "sh", "-euc", script, "sh"].map(OsStr::new);
    record(folder, shell.iter().chain(args))
}

/// What tells files apart is their inode then.
const NO_BUILD_ID: &str = "-Wl,--build-id=none";

/// In a mount namespace of its own, a file system that nobody else sees becomes the root of `$2`, with the files in
/// `$1` on it.
const HIDDEN_ROOT: &str = r#"
    exec unshare --mount sh -euc '
        mount -t tmpfs none "$2"
        cp -a "$1"/. "$2"
        exec chroot "$2" "$3"
    ' sh "$@"
"#;

#[test]
fn another_root_static() {
    let Some(_live) = live_with("another_root_static", &["unshare", "mount"]) else { return };
    let (folder, outside, root) = (folder(), folder(), folder());
    compile(outside.path(), "hidden-static", "recursion.c", &["-static"]);
    let args = [outside.path().as_os_str(), root.path().as_os_str(), OsStr::new("/hidden-static")];
    let recorded = record_script(folder.path(), HIDDEN_ROOT, &args);
    assert!(!root.path().join("hidden-static").exists(), "the path is of that name space alone");
    recursion("hidden-static").check(&recorded);
}

#[test]
fn another_root_dynamic() {
    let Some(_live) = live_with("another_root_dynamic", &["unshare", "mount", "ldd"]) else { return };
    let (folder, outside, root) = (folder(), folder(), folder());
    let program = compile(outside.path(), "hidden-dynamic", "sorted.c", &[]);
    for library in libraries(&program) {
        let copy = outside.path().join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
    let args = [outside.path().as_os_str(), root.path().as_os_str(), OsStr::new("/hidden-dynamic")];
    let recorded = record_script(folder.path(), HIDDEN_ROOT, &args);
    sorted("hidden-dynamic").check(&recorded);
}

/// Takes what names a program's functions out of it, and gives it back as a file of its own.
fn taken_apart(folder: &Path, program: &Path) -> PathBuf {
    let debug = folder.join("taken.debug");
    let objcopy = |options: &[&OsStr]| {
        assert!(Command::new("objcopy").args(options).status().unwrap().success(), "{options:?}");
    };
    objcopy(&["--only-keep-debug".as_ref(), program.as_os_str(), debug.as_os_str()]);
    objcopy(&["--strip-all".as_ref(), program.as_os_str()]);
    debug
}

/// Debug files that are in the container alone, which is gone when they are looked for.
#[test]
fn debug_files_in_another_root() {
    let Some(_live) = live_with("debug_files_in_another_root", &["unshare", "mount", "objcopy"]) else {
        return;
    };
    let (folder, root, by_id, by_link) = (folder(), folder(), folder(), folder());
    let run = |outside: &Path, name: &str| {
        let program = format!("/{name}");
        let args = [outside.as_os_str(), root.path().as_os_str(), OsStr::new(&program)];
        let recorded = record_script(folder.path(), HIDDEN_ROOT, &args);
        assert!(!root.path().join("usr").exists(), "they are of that name space alone");
        recorded
    };
    // By build id, behind a link that leads elsewhere from here.
    let outside = by_id;
    let id = "-Wl,--build-id=0x0f0e0d0c0b0a09080706050403020100ffeeddcc";
    let program = compile(outside.path(), "hidden-by-id", "recursion.c", &["-static", id]);
    let debug = taken_apart(outside.path(), &program);
    let ids = outside.path().join("usr/lib/debug/.build-id/0f");
    fs::create_dir_all(&ids).unwrap();
    symlink("/taken.debug", ids.join("0e0d0c0b0a09080706050403020100ffeeddcc.debug")).unwrap();
    recursion("hidden-by-id").check(&run(outside.path(), "hidden-by-id"));
    // Without it, nothing is named.
    fs::remove_file(&debug).unwrap();
    let unnamed = run(outside.path(), "hidden-by-id");
    let own = || unnamed.stacks.iter().filter(|stack| stack.comm == "hidden-by-id");
    assert!(own().count() > 0 && own().all(|stack| stack.frames.iter().all(|frame| frame != "main")));

    // By a link with a checksum.
    let outside = by_link;
    let program = compile(outside.path(), "hidden-by-link", "recursion.c", &["-static", NO_BUILD_ID]);
    let debug = taken_apart(outside.path(), &program);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    assert!(Command::new("objcopy").arg(link).arg(&program).status().unwrap().success());
    fs::create_dir_all(outside.path().join("usr/lib/debug")).unwrap();
    fs::rename(&debug, outside.path().join("usr/lib/debug/taken.debug")).unwrap();
    recursion("hidden-by-link").check(&run(outside.path(), "hidden-by-link"));
}

/// The files that a program loads, as `ldd` lists them.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

#[test]
fn a_program_that_deletes_itself() {
    let Some(_live) = live("a_program_that_deletes_itself") else { return };
    let folder = folder();
    let file = compile(folder.path(), "rec-deleted", "recursion.c", &["-DUNLINK_SELF"]);
    let recorded = record(folder.path(), ["--".as_ref(), file.as_os_str()]);
    assert!(!file.exists());
    recursion("rec-deleted").check(&recorded);
}

#[test]
fn programs_of_five_milliseconds() {
    let Some(_live) = live("programs_of_five_milliseconds") else { return };
    let folder = folder();
    let file = compile(folder.path(), "brief", "brief.c", &[]);
    let script = r#"i=0; while [ "$i" -lt 200 ]; do "$1"; i=$((i + 1)); done"#;
    let recorded = record_script(folder.path(), script, &[file.as_os_str()]);
    Program { comm: "brief", chains: vec![vec!["main", "work", "burn_rounds"]], throws: false }
        .check(&recorded);
}

#[test]
fn different_programs_of_five_milliseconds() {
    let Some(_live) = live("different_programs_of_five_milliseconds") else { return };
    let folder = folder();
    // Each a file of its own, which without a build id nobody can take for another, deleted as soon as it has ended.
    let file = compile(folder.path(), "original", "brief.c", &[NO_BUILD_ID]);
    let script = r#"
        i=0
        while [ "$i" -lt 200 ]; do
            mkdir "$2/$i"; cp "$1" "$2/$i/brief-copy"; "$2/$i/brief-copy"; rm -r "${2:?}/$i"; i=$((i + 1))
        done"#;
    let recorded = record_script(folder.path(), script, &[file.as_os_str(), folder.path().as_os_str()]);
    Program { comm: "brief-copy", chains: vec![vec!["main", "work", "burn_rounds"]], throws: false }
        .check_but(MAY_BE_CUT_IN_HASTE, &recorded);
}

#[test]
fn another_file_in_the_place_of_a_deleted_one() {
    let Some(_live) = live("another_file_in_the_place_of_a_deleted_one") else { return };
    let folder = folder();
    let first = compile(folder.path(), "first", "recursion.c", &[NO_BUILD_ID]);
    let second = compile(folder.path(), "second", "sorted.c", &[NO_BUILD_ID]);
    // Many file systems give the inode of a deleted file to the next new one.
    let script = r#"cp "$1" "$3"; "$3"; rm "$3"; cp "$2" "$3"; "$3"; rm "$3""#;
    let place = folder.path().join("reused");
    let recorded =
        record_script(folder.path(), script, &[first.as_os_str(), second.as_os_str(), place.as_os_str()]);
    let chains = [recursion("reused").chains, sorted("reused").chains].concat();
    Program { comm: "reused", chains, throws: false }.check(&recorded);
    for leaf in ["leaf", "weigh"] {
        assert!(samples_with(&recorded, leaf) > 500, "{leaf}: {}", recorded.stderr);
    }
}

fn samples_with(recorded: &Recorded, function: &str) -> u64 {
    let seen = recorded.stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame == function));
    seen.map(|stack| stack.count).sum()
}

#[test]
fn a_file_that_is_written_anew() {
    let Some(_live) = live("a_file_that_is_written_anew") else { return };
    let folder = folder();
    let first = compile(folder.path(), "first", "recursion.c", &[NO_BUILD_ID]);
    let second = compile(folder.path(), "second", "sorted.c", &[NO_BUILD_ID]);
    let script = r#"cat "$1" >"$3"; chmod +x "$3"; "$3"; cat "$2" >"$3"; "$3""#;
    let place = folder.path().join("anew");
    let recorded =
        record_script(folder.path(), script, &[first.as_os_str(), second.as_os_str(), place.as_os_str()]);
    assert!(samples_with(&recorded, "weigh") > 500, "what is there now: {}", recorded.stderr);
    // What was there is gone; it has no names rather than those of the other program.
    let chains = sorted("anew").chains;
    let own: BTreeSet<&str> = chains.iter().flatten().copied().collect();
    for stack in recorded.stacks.iter().filter(|stack| stack.comm == "anew" && !stack.is_cut()) {
        let chain: Vec<&str> = stack.user_frames().filter(|name| own.contains(name)).collect();
        assert!(chain.is_empty() || chains.iter().any(|known| known.starts_with(&chain)), "{stack:?}");
    }
}

#[test]
fn a_child_of_a_thread_with_a_name() {
    let Some(_live) = live("a_child_of_a_thread_with_a_name") else { return };
    let folder = folder();
    let program = compile(folder.path(), "worker", "worker.c", &["-pthread"]);
    let command = session::Command::start(&[program.into()]).unwrap();
    let mut session = Session::start(SessionSettings::default(), Some(command)).unwrap();
    let (stop, _never) = UnixStream::pair().unwrap();
    session.run(stop.as_fd(), |_| {}).unwrap();
    let machine = session.finish().unwrap().machine;
    let mut processes: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for sample in machine.samples().iter() {
        let process = machine.process(machine.thread(sample.thread).process);
        let is_child =
            process.parent.is_some_and(|parent| machine.string(machine.process(parent).name) == "worker");
        *processes.entry((machine.string(process.name), is_child)).or_default() += 1;
    }
    assert!(processes.get(&("worker-thread", true)).is_some_and(|count| *count > 100), "{processes:?}");
    assert!(!processes.contains_key(&("worker", true)), "{processes:?}");
}

/// The program's stacks of threads that run for the first time are whole.
fn births_are_whole(test: &str, program: &str, options: &[&str]) {
    let Some(_live) = live(test) else { return };
    let folder = folder();
    let program = compile(folder.path(), program, &format!("{program}.c"), options);
    let recorded = record(folder.path(), ["--".as_ref(), program.as_os_str()]);
    let of_new = |stack: &&Stack| stack.frames.iter().any(|frame| frame.starts_with("ret_from_fork"));
    let new: Vec<&Stack> = recorded.stacks.iter().filter(of_new).collect();
    assert!(new.iter().map(|stack| stack.count).sum::<u64>() > 10, "{}", recorded.stderr);
    let cut: Vec<_> = new.iter().filter(|stack| stack.is_cut()).collect();
    assert!(cut.is_empty(), "{cut:?}");
}

#[test]
fn threads_that_have_just_been_made() {
    births_are_whole("threads_that_have_just_been_made", "births", &["-pthread"]);
}

#[test]
fn processes_whose_stack_is_absent() {
    births_are_whole("processes_whose_stack_is_absent", "untouched", &[]);
}
