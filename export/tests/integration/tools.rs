//! Programs that are not ours.

use std::process::Command;

/// A command, or none where the program is missing.
pub(crate) fn tool(name: &str) -> Option<Command> {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "{name} is needed for this test: install it");
        eprintln!("SKIPPED: {name} is not installed");
    }
    found.then(|| Command::new(name))
}

/// What a command prints; it must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
