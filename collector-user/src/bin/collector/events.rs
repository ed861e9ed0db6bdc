//! Events of `run --event`, and of `collector list events`.

use std::fmt::Write as _;

use anyhow::Context as _;
use collector_common::event::{EventFlags, near, spec};
use collector_user::source::{COUNTERS, Counter, Hook};
use collector_user::tracefs::{Tracefs, TracefsError};

use crate::Usage;

/// The events that are named, each to be recorded with its stacks.
pub(crate) fn parse(names: &[String]) -> anyhow::Result<Vec<Hook>> {
    let mut tracefs = None;
    names.iter().map(|text| hook(text, &mut tracefs)).collect()
}

/// `tracefs` is opened for the first tracepoint.
fn hook(text: &str, tracefs: &mut Option<Tracefs>) -> anyhow::Result<Hook> {
    let spec = spec::parse(text).map_err(|error| Usage(format!("-e {text}: {error}")))?;
    let mut hook = if let Some(hook) = Hook::counter(spec.name) {
        hook
    } else if spec.name.contains(':') {
        let tracefs = match tracefs {
            Some(tracefs) => tracefs,
            None => tracefs.insert(Tracefs::open()?),
        };
        Hook::tracepoint(tracefs.event(spec.name).map_err(wrong_name)?)
    } else {
        let near = near(spec.name, COUNTERS.iter().map(|counter| counter.name));
        let hint =
            if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) };
        return Err(Usage(format!(
            "no event is called `{}`{hint}; `collector list events` lists them",
            spec.name
        ))
        .into());
    };
    hook.event
        .set_filter(spec.filter.as_ref())
        .map_err(|error| Usage(format!("the filter of {}: {error}", spec.name)))?;
    hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
    Ok(hook)
}

/// A name that is wrong is wrong usage; all else is the machine's.
fn wrong_name(error: TracefsError) -> anyhow::Error {
    match error {
        TracefsError::Unknown { .. } | TracefsError::NoName { .. } => Usage(error.to_string()).into(),
        error => error.into(),
    }
}

/// All events that can be recorded here, a line each.
pub(crate) fn list() -> anyhow::Result<String> {
    let mut text = String::new();
    let _ = writeln!(text, "{:<24} the time that each CPU is not idle: scenario cpu_profiling", "cpu-clock");
    for Counter { name, description, .. } in COUNTERS {
        let _ = writeln!(text, "{name:<24} {description}");
    }
    let _ = writeln!(text, "{:<24} an event of the processor, by the number in its manual", "rNNN");
    for name in
        Tracefs::open().and_then(|tracefs| tracefs.events()).context("the tracepoints can't be listed")?
    {
        let _ = writeln!(text, "{name}");
    }
    Ok(text)
}
