//! CPUs that go offline and come back, as all but one do where a machine is suspended.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::languages::recursion;
use crate::lives::record_script;
use crate::prerequisites::{live_with, skip};
use crate::programs::{compile, folder};

/// Puts a CPU back online, however the test ends.
struct BackOnline(PathBuf);

impl Drop for BackOnline {
    fn drop(&mut self) {
        fs::write(&self.0, "1").unwrap();
    }
}

#[test]
fn a_cpu_that_was_offline() {
    let Some(_live) = live_with("a_cpu_that_was_offline", &["taskset"]) else { return };
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    if !fs::read(switch).is_ok_and(|state| state == b"1\n") {
        return skip("a_cpu_that_was_offline", "CPU 1 can't be put offline");
    }
    let _back = BackOnline(switch.to_owned());
    let folder = folder();
    let program = compile(folder.path(), "on-cpu-1", "recursion.c", &[]);
    // The program is first executed on a CPU whose sideband nobody reads yet; a second later it is sampled.
    let script = r#"echo 0 >"$2"; echo 1 >"$2"; for i in 1 2 3; do taskset -c 1 "$1"; done"#;
    let recorded = record_script(folder.path(), script, &[program.as_os_str(), OsStr::new(switch)]);
    recursion("on-cpu-1").check(&recorded);
    assert!(recorded.stderr.contains("warning: 1 CPU(s) came online"), "{}", recorded.stderr);
}
