//! The `collector` binary. Exit status: 0 done, 1 failed, 2 wrong usage.

mod args;
#[cfg(target_os = "linux")]
mod doctor;
mod list;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod progress;
mod report;
#[cfg(target_os = "linux")]
mod run;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;

use args::{Cli, Command};

fn main() -> ExitCode {
    let started = Instant::now();
    #[cfg(target_os = "linux")]
    env_logger::init_from_env(env_logger::Env::new().filter("COLLECTOR_LOG"));
    let result = match Cli::parse().command {
        #[cfg(target_os = "linux")]
        Command::Run(args) => run::run(args, started),
        #[cfg(target_os = "linux")]
        Command::Doctor => doctor::doctor(),
        #[cfg(not(target_os = "linux"))]
        Command::Run(_) | Command::Doctor => {
            let _ = started;
            Err(anyhow::anyhow!("recording works on Linux; here `collector report` reads profiles"))
        }
        Command::Report(args) => report::report(&args),
        Command::List { what } => list::list(what),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            say(&format!("collector: {}", one_line(&error)));
            match error.downcast_ref::<Usage>() {
                Some(_) => ExitCode::from(2),
                None => ExitCode::FAILURE,
            }
        }
    }
}

/// Writes a line to stderr. A stderr that is closed or full must not end a recording.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A command line that parses but means nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The error and its causes; a cause that its effect has told already is left out.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if line.contains(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    line.replace('\n', " ")
}
