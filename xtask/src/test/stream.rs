//! Runs a test runner, shows what it prints as it comes, and counts.
//!
//! In: a command. Out: the same lines on our stdout and stderr, each also read by the totals. What passing tests print, which
//! cargo's runner shows behind all of them, is read alone: which of them did not test what it is for is there. A runner that is silent for
//! too long is ended, so that what stands still has a name and not only a limit of somebody else's.

use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::totals::Totals;
use crate::command;

/// How long a runner may print nothing: far longer than any test or crate takes, and far shorter than what CI has for all of them.
const SILENCE: Duration = Duration::from_mins(15);

/// Runs `cargo test` as it is in `cargo`, with further arguments of its runner.
pub(crate) fn run_tests(cargo: &mut Command, arguments: &[&str], totals: &mut Totals) -> Result<()> {
    run(cargo.args(["--", "--show-output"]).args(arguments), totals)
}

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
    let (told, heard) = mpsc::channel();
    let tell = told.clone();
    let errors = thread::spawn(move || copy(stderr, &mut io::stderr(), &tell));
    let output = thread::spawn(move || copy(stdout, &mut io::stdout(), &told));
    let is_silent = !prints(&heard, SILENCE);
    if is_silent {
        end(child.id());
    }
    for (thread, stream) in [(output, "stdout"), (errors, "stderr")] {
        let printed = thread.join().map_err(|_| anyhow!("the thread that reads {stream} panicked"))?;
        for line in printed.with_context(|| format!("the runner's {stream} can't be read"))? {
            totals.read(&line);
        }
    }
    let status = child.wait().with_context(|| format!("`{name}` can't be waited for"))?;
    if is_silent {
        let minutes = SILENCE.as_secs() / 60;
        bail!(
            "`{name}` printed nothing for {minutes} minutes and was ended; what ran is named above as \"running for over\""
        );
    }
    if !status.success() {
        bail!("`{name}` failed: {status}");
    }
    Ok(())
}

/// Waits until nothing more can come: whether something came within each `silence`.
fn prints(heard: &Receiver<()>, silence: Duration) -> bool {
    loop {
        match heard.recv_timeout(silence) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Ends a process that we started and all that it started, its children last, which are nobody's to ask for then.
fn end(pid: u32) {
    let mut family = vec![pid];
    let mut known = 0;
    while let Some(&pid) = family.get(known) {
        known += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let children: Vec<u32> = children
            .flat_map(|pids| pids.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        family.extend(children);
    }
    let pids = family.iter().map(ToString::to_string);
    // Those that have ended by themselves meanwhile are no error.
    _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
}

/// Copies `from` to `to` line by line, but for what passing tests print, and returns the lines that totals could be about. Each line is told of.
fn copy(from: impl Read, to: &mut impl Write, told: &Sender<()>) -> io::Result<Vec<String>> {
    let mut kept = Vec::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut kept_back = KeptBack::default();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(kept);
        }
        // Who has heard enough has ended the runner.
        _ = told.send(());
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        kept_back.next(text);
        if kept_back.of == Some(Outcome::Passed) {
            kept.extend(kept_back.skip(text));
            continue;
        }
        to.write_all(&line)?;
        to.flush()?;
        if kept_back.of.is_none() && Totals::is_about(text) {
            kept.push(text.to_owned());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
}

/// What cargo's runner keeps back of what tests print, and shows behind all of them, each under a heading with its name.
#[derive(Debug, Default)]
struct KeptBack {
    /// What became of the tests that the line is of, if it is of any.
    of: Option<Outcome>,
    /// The one that printed it.
    test: String,
}

impl KeptBack {
    fn next(&mut self, line: &str) {
        match line {
            "successes:" => self.of = Some(Outcome::Passed),
            "failures:" => self.of = Some(Outcome::Failed),
            _ if line.starts_with("test result: ") => self.of = None,
            _ => {}
        }
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            name.clone_into(&mut self.test);
        }
    }

    /// The line for the totals, with the name of the test, where it tells that something was not tested.
    fn skip(&self, line: &str) -> Option<String> {
        Totals::is_skip(line).map(|(kind, reason)| format!("{kind} {}: {reason}", self.test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cargo's runner prints it, of a test that passed and printed, and one that failed.
    const PRINTED: &str = "\
running 3 tests
test a::quiet ... ok
test a::skipped ... ok

successes:

---- a::skipped stdout ----
7 rows
SKIPPED: gcc is not installed
NOT BESIDE THE CHECKOUT: x.etl
test result of another kind

successes:
    a::quiet
    a::skipped

failures:

---- a::wrong stdout ----
SKIPPED: this is part of what failed
assertion failed

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn what_passing_tests_print_is_read_and_not_shown() {
        let mut shown = Vec::new();
        let kept = copy(PRINTED.as_bytes(), &mut shown, &mpsc::channel().0).unwrap();
        let result = PRINTED.lines().last().unwrap();
        let skips = ["SKIPPED a::skipped: gcc is not installed", "NOT BESIDE THE CHECKOUT a::skipped: x.etl"];
        assert_eq!(kept, [skips[0], skips[1], result]);
        let shown = String::from_utf8(shown).unwrap();
        let (before, failures) = (PRINTED.find("successes:").unwrap(), PRINTED.find("failures:").unwrap());
        assert_eq!(shown, format!("{}{}", &PRINTED[..before], &PRINTED[failures..]));
    }

    #[test]
    fn a_runner_that_stands_still_is_ended_with_what_it_started() {
        let mut shell = Command::new("sh");
        let mut child = shell
            .args(["-c", "echo begin; sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (told, heard) = mpsc::channel();
        let output = thread::spawn(move || {
            let mut shown = Vec::new();
            copy(stdout, &mut shown, &told).unwrap();
            shown
        });
        assert!(!prints(&heard, Duration::from_secs(1)));
        end(child.id());
        // The pipe is open for as long as one of them is there.
        let shown = String::from_utf8(output.join().unwrap()).unwrap();
        assert_eq!(shown.lines().next(), Some("begin"));
        assert!(!child.wait().unwrap().success());
        assert!(prints(&heard, Duration::from_secs(1)), "nothing more can come");
    }
}
