//! What the machine must allow. In: this machine. Out: the right to record, for one test at a time.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Recordings of the same machine would see each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Compilers of the test programs.
const COMPILERS: [&str; 3] = ["gcc", "g++", "rustc"];

/// The right to record while it is held; `None` when the test has to be skipped, which has been said then.
pub(crate) fn live(test: &str) -> Option<MutexGuard<'static, ()>> {
    live_with(test, &[])
}

/// As [`live`], for a test that runs further programs.
pub(crate) fn live_with(test: &str, programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let missing = if !rustix::process::geteuid().is_root() {
        Some("it needs root".to_owned())
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        Some("the kernel has no BTF".to_owned())
    } else if !collector_user::source::ebpf::is_built_in() {
        Some("this build has no eBPF programs in it: run `cargo xtask build-ebpf`".to_owned())
    } else {
        let program = COMPILERS.iter().chain(programs).find(|program| find(program).is_none());
        program.map(|program| format!("{program} is not on PATH"))
    };
    match missing {
        None => Some(ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)),
        Some(reason) => {
            skip(test, &reason);
            None
        }
    }
}

/// Says that a test is skipped; fails it where all must run.
pub(crate) fn skip(test: &str, reason: &str) {
    let required = env::var("COLLECTOR_LIVE").is_ok_and(|value| value == "require")
        || env::var("CI").is_ok_and(|value| value == "true");
    assert!(!required, "{test} can't run: {reason}");
    tell(&format!("SKIPPED {test}: {reason}"));
}

/// Says that a test is not run for what the kernel was built without: no set-up could help, so that is no failure anywhere.
pub(crate) fn not_on_this_kernel(test: &str, reason: &str) {
    tell(&format!("NOT ON THIS KERNEL {test}: {reason}"));
}

/// Whether this is that version of the kernel, or a newer one.
pub(crate) fn kernel_is_since(version: u32, patch_level: u32) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(version), Some(patch_level))
}

/// Past the test runner, which keeps what a passing test prints to itself.
fn tell(line: &str) {
    io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A program on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
