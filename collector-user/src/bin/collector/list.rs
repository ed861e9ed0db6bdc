//! `collector list`: what can be recorded and written.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
#[cfg(target_os = "linux")]
use collector_user::scenario::{SCENARIOS, Scenario};
use export::format::{Holds, Part, formats};

use crate::args::ListWhat;
#[cfg(target_os = "linux")]
use crate::raw;
use crate::report::print_text;

pub(crate) fn list(what: ListWhat) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    match what {
        #[cfg(target_os = "linux")]
        ListWhat::Scenarios => {
            for Scenario { name, alias, description, .. } in SCENARIOS {
                let _ = writeln!(text, "{name:<14} {alias:<7} {description}");
            }
        }
        #[cfg(not(target_os = "linux"))]
        ListWhat::Scenarios => {
            anyhow::bail!("scenarios are recorded on Linux; here `collector report` reads profiles")
        }
        #[cfg(target_os = "linux")]
        ListWhat::Events => text = crate::events::list(),
        #[cfg(not(target_os = "linux"))]
        ListWhat::Events => {
            anyhow::bail!("events are recorded on Linux; here `collector report` reads profiles")
        }
        ListWhat::Providers => anyhow::bail!(
            "providers are of Event Tracing for Windows, which this version does not record: `collector list scenarios` \
             lists what it does"
        ),
        ListWhat::Formats => {
            for format in formats() {
                let _ =
                    writeln!(text, "{:<12} {:<10} {}", format.name(), format.ending(), format.description());
                write_left_out(&mut text, format.holds());
            }
            #[cfg(target_os = "linux")]
            {
                let _ = writeln!(text, "{:<12} {:<10} {}", raw::NAME, raw::ENDING, raw::DESCRIPTION);
                write_left_out(&mut text, collector_user::session::CAPTURED);
            }
        }
    }
    print_text(&text).context("stdout can't be written")?;
    Ok(ExitCode::SUCCESS)
}

/// A line of what there is no place for.
fn write_left_out(text: &mut String, holds: Holds) {
    let left_out = Part::ALL.into_iter().filter(|&part| !holds.has(part)).map(Part::text);
    let _ = writeln!(text, "{:<23} without {}", "", left_out.collect::<Vec<_>>().join(", "));
}
