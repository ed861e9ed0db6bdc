//! What the library and the binary are made of on Windows.
//!
//! In: cargo's dependency tree of `collector-user` for Windows. Out: a finding for each crate in it that is of Linux alone. Most of these compile
//! for Windows, to nothing, so that no compiler finds them.

use anyhow::Result;

use super::Finding;
use crate::command;
use crate::toolchain::{self, CrossTarget};
use crate::workspace::Workspace;

const MANIFEST: &str = "collector-user/Cargo.toml";

/// Crates of system calls that are not Windows', besides aya's. `libc` and `errno` are of Windows, too.
const OF_LINUX: [&str; 10] = [
    "aya",
    "inotify",
    "linux-raw-sys",
    "nix",
    "perf-event-open-sys",
    "procfs",
    "rustix",
    "signal-hook",
    "signal-hook-registry",
    "syscalls",
];

/// Asks cargo for the tree, without build scripts and derive macros, which run on this machine.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut cargo = toolchain::own_cargo(workspace);
    cargo.args(["tree", "--manifest-path", MANIFEST, "--target", CrossTarget::WINDOWS.triple]);
    cargo.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    Ok(findings(&command::output(&mut cargo)?))
}

/// Findings in lines `name version (place)`.
fn findings(tree: &str) -> Vec<Finding> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let mut found: Vec<&str> =
        names.filter(|name| OF_LINUX.contains(name) || name.starts_with("aya-")).collect();
    found.sort_unstable();
    found.dedup();
    let rule = |name| {
        format!("{name} is of Linux alone; take it under [target.'cfg(target_os = \"linux\")'.dependencies]")
    };
    found.into_iter().map(|name| Finding::new(MANIFEST, 1, rule(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_linux_are_found_once_and_others_are_not() {
        assert_eq!(findings("collector-user v0.1.0 (dir)\nwindows-sys v0.61.2\nsyscall v1.0.0\n"), []);
        let tree = "collector-user v0.1.0 (dir)\nlinux-raw-sys v0.12.1\naya-obj v0.2.1\nlinux-raw-sys v0.12.1 (*)\n\
                    rustix v1.1.6\nsignal-hook v0.4.6\n";
        let found: Vec<String> = findings(tree).into_iter().map(|finding| finding.rule).collect();
        assert_eq!(found.len(), 4);
        assert!(found[0].starts_with("aya-obj is of Linux") && found[1].starts_with("linux-raw-sys is"));
    }

    #[test]
    fn there_is_none() {
        let workspace = Workspace::locate().unwrap();
        assert_eq!(check(&workspace).unwrap(), []);
    }
}
