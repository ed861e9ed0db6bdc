//! Surroundings that do not allow it: no rights, and a file system that fills up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::prerequisites::live_with;
use crate::programs::folder;

/// `nobody` on all distributions.
const NOBODY: &str = "65534";

#[test]
fn without_rights() {
    let Some(_live) = live_with("without_rights", &["setpriv"]) else { return };
    // Where every user can come to, unlike the build's folders.
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let binary = folder.path().join("collector");
    fs::copy(env!("CARGO_BIN_EXE_collector"), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(&binary)
        .args(["run", "-d", "1s", "-o", "x.folded"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("run it with sudo"), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the binary alone");
}

/// `$1` a folder for a small file system, `$2` a folder with room, `$3` the collector.
const FULL: &str = r#"
    mount -t tmpfs -o size=16k none "$1"
    status=0
    "$3" run -o "$1/full.html" -o "$2/fine.folded" --stats "$2/stats.json" -- sh -c \
        'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' || status=$?
    ls -A "$1"
    exit "$status"
"#;

#[test]
fn a_file_system_that_fills_up() {
    let Some(_live) = live_with("a_file_system_that_fills_up", &["unshare", "mount"]) else { return };
    let (small, roomy) = (folder(), folder());
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-euc", FULL, "sh"])
        .args([small.path(), roomy.path()])
        .arg(env!("CARGO_BIN_EXE_collector"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let told: Vec<&str> = stderr.lines().filter(|line| line.starts_with("collector: ")).collect();
    assert!(
        told.len() == 1 && told[0].contains("full.html") && told[0].contains("No space left"),
        "{stderr}"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "no half file is left");
    // What could be written was.
    assert!(fs::read_to_string(roomy.path().join("fine.folded")).unwrap().starts_with("sh;"));
    assert!(roomy.path().join("stats.json").exists());
}
