//! Programs that are not ours.

use std::path::Path;
use std::process::Command;

/// A command, or none where the program is missing.
pub(crate) fn tool(name: &str) -> Option<Command> {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        is_absent(name, "install it");
    }
    found.then(|| Command::new(name))
}

/// A script of `tests/python`, with the packages that `cargo xtask setup --for test` installs; or none where these are missing.
pub(crate) fn python(script: &str) -> Option<Command> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = crate_folder.join("../target/python/bin/python");
    if !python.exists() {
        is_absent("target/python", "run `cargo xtask setup --for test`");
        return None;
    }
    let mut command = Command::new(python);
    command.args(["-I", "-B"]).arg(crate_folder.join("tests/python").join(script));
    Some(command)
}

/// A script of `tests/browser` that needs no browser, with the packages that `cargo xtask setup --for test` installs; or none where these
/// are missing.
pub(crate) fn node(script: &str) -> Option<Command> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !crate_folder.join("../target/node/node_modules").exists() {
        is_absent("target/node", "run `cargo xtask setup --for test`");
        return None;
    }
    let mut command = tool("node")?;
    command.arg(crate_folder.join("tests/browser").join(script));
    Some(command)
}

/// A file of these bytes that a program is given.
pub(crate) fn file(bytes: &[u8], ending: &str) -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap().into_temp_path();
    std::fs::write(&file, bytes).unwrap();
    file
}

fn is_absent(what: &str, remedy: &str) {
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{what} is needed for this test: {remedy}");
    eprintln!("SKIPPED: {what} is not installed");
}

/// What a command prints; it must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
