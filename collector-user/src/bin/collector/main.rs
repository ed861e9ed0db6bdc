//! The `collector` binary. Exit status: 0 done, 1 failed, 2 wrong usage.

mod args;
mod chosen;
mod convert;
#[cfg(any(target_os = "linux", windows))]
mod counted;
#[cfg(any(target_os = "linux", windows))]
mod doctor;
#[cfg(target_os = "linux")]
mod events;
#[cfg_attr(not(any(target_os = "linux", windows)), expect(dead_code, reason = "what records needs it"))]
mod finished;
mod formats;
mod imported;
mod kind;
mod known;
mod list;
#[cfg(any(target_os = "linux", windows))]
mod lives;
#[cfg(any(target_os = "linux", windows))]
mod options;
mod output;
#[cfg(target_os = "linux")]
mod progress;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "what records on Linux needs it"))]
mod raw;
mod receiver;
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(windows)]
mod run_etw;
mod stored;
mod target;
#[cfg(windows)]
mod trace;
#[cfg(not(any(target_os = "linux", windows)))]
mod unable;
mod unnamed;
mod unread;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;
use export::hottest::printable;

use args::{Cli, Command};
use convert::convert;
#[cfg(any(target_os = "linux", windows))]
use doctor::doctor;
#[cfg(target_os = "linux")]
use run::run;
#[cfg(windows)]
use run_etw::run;
#[cfg(not(any(target_os = "linux", windows)))]
use unable::{doctor, run};

fn main() -> ExitCode {
    let started = Instant::now();
    #[cfg(target_os = "linux")]
    env_logger::init_from_env(env_logger::Env::new().filter_or("COLLECTOR_LOG", "off"));
    let result = match Cli::parse().command {
        Command::Run(args) => run(*args, started),
        Command::Doctor => doctor(),
        Command::Convert(args) => convert(&args),
        Command::Report(args) => report::report(&args),
        Command::List { what } => list::list(what),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            tell(&error);
            match error.downcast_ref::<Usage>() {
                Some(_) => ExitCode::from(2),
                None => ExitCode::FAILURE,
            }
        }
    }
}

/// Tells an error and its causes, in one line.
pub(crate) fn tell(error: &anyhow::Error) {
    say(&format!("collector: {}", one_line(error)));
}

/// Writes lines to stderr. A stderr that is closed or full must not end a recording. Names in them are those of recorded programs, which
/// may have chosen some that would drive a terminal.
pub(crate) fn say(lines: &str) {
    for line in lines.split('\n') {
        let _ = writeln!(std::io::stderr(), "{}", printable(line));
    }
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
