//! `collector doctor`: prints the checks, and fails when recording does not work here.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use collector_user::doctor::{Verdict, examine};

use crate::report::print_text;

pub(crate) fn doctor() -> anyhow::Result<ExitCode> {
    let mut works = true;
    let mut text = String::new();
    for check in examine() {
        let (mark, more) = match check.verdict {
            Verdict::Good => ("ok  ", None),
            Verdict::Limited { effect, fix } => ("some", Some(format!("{effect}\n        {fix}"))),
            Verdict::Bad { fix } => {
                works = false;
                ("NO  ", Some(fix))
            }
        };
        let _ = writeln!(text, "{mark} {}: {}", check.name, check.found);
        if let Some(more) = more {
            let _ = writeln!(text, "        {more}");
        }
    }
    text.push_str(if works { "recording works here\n" } else { "recording does not work here yet\n" });
    print_text(&text).context("stdout can't be written")?;
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
