//! `collector list`: what can be recorded, written and read.

#[cfg(any(target_os = "linux", windows))]
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
#[cfg(target_os = "linux")]
use collector_user::scenario::{SCENARIOS, Scenario};
#[cfg(windows)]
use windows_etw::plan::{SCENARIOS, Scenario};
#[cfg(windows)]
use windows_etw::session::providers;

use crate::args::ListWhat;
use crate::formats;
use crate::report::print_text;

/// Forms of events, for people.
#[cfg(windows)]
const EVENTS: &str = "\
etw:PROVIDER                  all events of a provider, with their stacks: by its name, as `collector list providers` lists them, or its GUID
etw:*PROVIDER                 the same of TraceLogging and of .NET's EventSource, whose GUID follows from the name
etw:PROVIDER:KEYWORDS         those with one of these keywords, a number as 0x10
etw:PROVIDER:KEYWORDS:LEVEL   up to a level: 1 to 5, or critical, error, warning, informational, verbose
";

pub(crate) fn list(what: ListWhat) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    match what {
        #[cfg(target_os = "linux")]
        ListWhat::Scenarios => {
            for Scenario { name, alias, description, .. } in SCENARIOS {
                let _ = writeln!(text, "{name:<14} {alias:<7} {description}");
            }
        }
        #[cfg(windows)]
        ListWhat::Scenarios => {
            for Scenario { name, alias, description, .. } in &SCENARIOS {
                let _ = writeln!(text, "{name:<18} {alias:<8} {description}");
            }
        }
        #[cfg(not(any(target_os = "linux", windows)))]
        ListWhat::Scenarios => {
            anyhow::bail!(
                "scenarios are recorded on Linux and Windows; here `collector report` reads profiles"
            )
        }
        #[cfg(target_os = "linux")]
        ListWhat::Events => text = crate::events::list(),
        #[cfg(windows)]
        ListWhat::Events => text.push_str(EVENTS),
        #[cfg(not(any(target_os = "linux", windows)))]
        ListWhat::Events => {
            anyhow::bail!("events are recorded on Linux and Windows; here `collector report` reads profiles")
        }
        #[cfg(windows)]
        ListWhat::Providers => {
            for (name, guid) in providers()? {
                let _ = writeln!(text, "{guid} {name}");
            }
        }
        #[cfg(not(windows))]
        ListWhat::Providers => anyhow::bail!(
            "providers are of Event Tracing for Windows, and are listed there: `collector list scenarios` lists what is recorded here"
        ),
        ListWhat::Formats => text = formats::list(),
    }
    print_text(&text).context("stdout can't be written")?;
    Ok(ExitCode::SUCCESS)
}
