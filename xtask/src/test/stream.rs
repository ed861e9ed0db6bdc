//! Runs a test runner, shows what it prints as it comes, and counts.
//!
//! In: a command. Out: the same lines on our stdout and stderr, each also read by the totals.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use super::totals::Totals;
use crate::command;

/// Runs `command` to its end; fails when it fails.
pub(crate) fn run(command: &mut Command, totals: &mut Totals) -> Result<()> {
    eprintln!("$ {}", command::line(command));
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let name = command::line(command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{name}` can't be started"))?;
    let stderr = child.stderr.take().context("the runner has no stderr")?;
    let stdout = child.stdout.take().context("the runner has no stdout")?;
    let errors = thread::spawn(move || copy(stderr, &mut io::stderr()));
    let printed = copy(stdout, &mut io::stdout()).context("what the runner prints can't be read")?;
    let errors = errors.join().map_err(|_| anyhow::anyhow!("the thread that reads stderr panicked"))?;
    for line in printed.iter().chain(&errors.context("the runner's stderr can't be read")?) {
        totals.read(line);
    }
    let status = child.wait().with_context(|| format!("`{name}` can't be waited for"))?;
    if !status.success() {
        bail!("`{name}` failed: {status}");
    }
    Ok(())
}

/// Copies `from` to `to` line by line and returns the lines that totals could be about.
fn copy(from: impl Read, to: &mut impl Write) -> io::Result<Vec<String>> {
    let mut kept = Vec::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(kept);
        }
        to.write_all(&line)?;
        to.flush()?;
        let text = String::from_utf8_lossy(&line);
        if Totals::is_about(&text) {
            kept.push(text.trim_end().to_owned());
        }
    }
}
