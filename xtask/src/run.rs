//! `cargo xtask run`: one command from a fresh checkout to a picture of what the machine does.
//!
//! In: arguments of `collector run`. Out: its files, in the working folder, and its exit code. We become the
//! collector, so Ctrl-C goes to it alone.

use anyhow::Result;

use crate::build_ebpf::{self, Arch};
use crate::command;
use crate::install;
use crate::setup::{self, Verb};
use crate::workspace::Workspace;

/// How long to record when nothing else ends the recording.
const DURATION: &str = "10s";

/// Builds what is out of date and runs the collector as root.
pub(crate) fn run(workspace: &Workspace, args: Vec<String>) -> Result<()> {
    setup::setup(workspace, Verb::Run)?;
    build_ebpf::build_ebpf(workspace, Arch::host()?)?;
    install::build_release(workspace)?;
    let mut collector = command::as_root(workspace.release_binary())?;
    collector.arg("run");
    if !says_when_to_end(&args) {
        collector.args(["-d", DURATION]);
    }
    collector.args(args);
    Err(command::become_it(&mut collector))
}

/// Whether the arguments have a duration, or a command whose end is the recording's end.
fn says_when_to_end(args: &[String]) -> bool {
    args.iter().any(|arg| arg.starts_with("-d") || arg.starts_with("--duration") || arg == "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(args: &[&str]) -> bool {
        says_when_to_end(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_duration_or_a_command_ends_the_recording() {
        assert!(ends(&["-d", "3s"]));
        assert!(ends(&["-d3s"]));
        assert!(ends(&["--duration", "3s"]));
        assert!(ends(&["-F", "99", "--duration=3s"]));
        assert!(ends(&["-F", "99", "--", "sleep", "1"]));
    }

    #[test]
    fn anything_else_does_not() {
        assert!(!ends(&[]));
        assert!(!ends(&["-F", "99", "-o", "out.svg", "--live"]));
    }
}
