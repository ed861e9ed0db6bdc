//! `collector doctor`: prints the checks, and fails when recording does not work here.

use std::process::ExitCode;

use collector_user::doctor::{Verdict, examine};

pub(crate) fn doctor() -> ExitCode {
    let mut works = true;
    for check in examine() {
        let (mark, more) = match check.verdict {
            Verdict::Good => ("ok  ", None),
            Verdict::Limited { effect, fix } => ("some", Some(format!("{effect}\n        {fix}"))),
            Verdict::Bad { fix } => {
                works = false;
                ("NO  ", Some(fix))
            }
        };
        println!("{mark} {}: {}", check.name, check.found);
        if let Some(more) = more {
            println!("        {more}");
        }
    }
    println!("{}", if works { "recording works here" } else { "recording does not work here yet" });
    if works { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
