//! Events of `run --event`, and of `collector list events`.

use std::fmt::Write as _;

use collector_common::event::spec::{self, EventSpec};
use collector_common::event::{EventFlags, near as near_names};
use collector_user::probe::{Probe, ProbeError};
use collector_user::source::bpf_map::{BpfMapError, MapSpec};
use collector_user::source::{CLOCK_NAMES, COUNTERS, Counter, Hook};
use collector_user::tracefs::{Tracefs, TracefsError};

use crate::{Usage, say};

/// What `-e` names.
#[derive(Default)]
pub(crate) struct Named {
    /// Events, each to be recorded with its stacks.
    pub(crate) hooks: Vec<Hook>,
    /// Whether the sampling clock is among them.
    pub(crate) clock: bool,
}

/// What is named. `by_programs` is whether programs of ours may record it.
pub(crate) fn parse(names: &[String], by_programs: bool) -> anyhow::Result<Named> {
    let mut tracefs = None;
    let mut named = Named::default();
    for text in names {
        let spec = spec::parse(text).map_err(|error| Usage(format!("-e {text}: {error}")))?;
        if CLOCK_NAMES.contains(&spec.name) {
            if spec.filter.is_some() {
                return Err(Usage(format!("-e {text}: the sampling clock has no fields to filter by")).into());
            }
            named.clock = true;
        } else {
            named.hooks.extend(hooks_of(&spec, &mut tracefs, by_programs)?);
        }
    }
    Ok(named)
}

/// `tracefs` is opened for the first tracepoint or probe.
fn hooks_of(
    spec: &EventSpec<'_>,
    tracefs: &mut Option<Tracefs>,
    by_programs: bool,
) -> anyhow::Result<Vec<Hook>> {
    let mut hooks = if let Some(hook) = Hook::counter(spec.name) {
        vec![hook]
    } else if Probe::is_probe(spec.name) {
        // What is written wrongly is told before anything is asked of the machine.
        let probe = Probe::parse(spec.name).map_err(wrong_probe)?;
        attach(&probe, opened(tracefs)?, by_programs).map_err(wrong_probe)?
    } else if MapSpec::is_map(spec.name) {
        vec![MapSpec::parse(spec.name).and_then(|map| map.open()).map_err(wrong_map)?]
    } else if let Some((counter, modifiers)) = spec.name.split_once(':').filter(|(name, _)| is_counter(name))
    {
        return Err(Usage(format!(
            "-e {}: modifiers such as `:{modifiers}` are not known here; `-e {counter}` records it in programs and in the kernel",
            spec.name
        ))
        .into());
    } else if spec.name.contains(':') {
        tracepoints(spec.name, opened(tracefs)?)?
    } else {
        let tracepoints = opened(tracefs).and_then(Tracefs::events).unwrap_or_default();
        return Err(no_event(spec.name, &tracepoints));
    };
    for hook in &mut hooks {
        if let Some(note) = hook.note() {
            say(&format!("warning: {note}"));
        }
        hook.event
            .set_filter(spec.filter.as_ref())
            .map_err(|error| Usage(format!("the filter of {}: {error}", spec.name)))?;
        hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
    }
    Ok(hooks)
}

/// The tracepoint of a name, or all that a pattern matches, as `sched:*` does.
fn tracepoints(name: &str, tracefs: &Tracefs) -> anyhow::Result<Vec<Hook>> {
    let names = tracefs.matching(name)?.unwrap_or_else(|| vec![name.to_owned()]);
    if names.is_empty() {
        return Err(
            Usage(format!("no tracepoint matches `{name}`; `collector list events` lists them")).into()
        );
    }
    names.iter().map(|name| Ok(Hook::tracepoint(tracefs.event(name).map_err(wrong_name)?))).collect()
}

fn is_counter(name: &str) -> bool {
    CLOCK_NAMES.contains(&name) || Hook::counter(name).is_some()
}

/// How `perf list` begins names of what it counts at caches.
const CACHES: [&str; 7] = ["L1-dcache-", "L1-icache-", "LLC-", "dTLB-", "iTLB-", "branch-load", "node-"];

/// Nothing is called `name`, which may be a tracepoint without its system.
fn no_event(name: &str, tracepoints: &[String]) -> anyhow::Error {
    let of_system = |full: &&String| full.split_once(':').is_some_and(|(_, event)| event == name);
    let mut near: Vec<&str> = tracepoints.iter().filter(of_system).map(String::as_str).collect();
    if CACHES.iter().any(|cache| name.starts_with(cache)) {
        return Usage(format!(
            "no event is called `{name}`: of a processor's caches, name what is counted by its number in the processor's manual, as rNNN"
        ))
        .into();
    }
    if near.is_empty() {
        near = near_names(name, COUNTERS.iter().map(|counter| counter.name).chain(CLOCK_NAMES));
    }
    let hint = if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) };
    Usage(format!("no event is called `{name}`{hint}; `collector list events` lists them")).into()
}

#[cfg(feature = "ebpf")]
fn attach(probe: &Probe, tracefs: &Tracefs, by_programs: bool) -> Result<Vec<Hook>, ProbeError> {
    if by_programs && collector_user::source::ebpf::check().is_ok() {
        probe.attach_programs(tracefs)
    } else {
        probe.attach(tracefs)
    }
}

#[cfg(not(feature = "ebpf"))]
fn attach(probe: &Probe, tracefs: &Tracefs, _by_programs: bool) -> Result<Vec<Hook>, ProbeError> {
    probe.attach(tracefs)
}

fn opened(tracefs: &mut Option<Tracefs>) -> Result<&Tracefs, TracefsError> {
    match tracefs {
        Some(tracefs) => Ok(tracefs),
        tracefs => Ok(tracefs.insert(Tracefs::open()?)),
    }
}

/// As for names: what is asked for is wrong, or else the machine.
fn wrong_probe(error: ProbeError) -> anyhow::Error {
    if error.is_of_the_request() { Usage(format!("-e {error}")).into() } else { error.into() }
}

fn wrong_map(error: BpfMapError) -> anyhow::Error {
    if error.is_of_the_request() { Usage(format!("-e {error}")).into() } else { error.into() }
}

/// A name that is wrong is wrong usage; all else is the machine's.
fn wrong_name(error: TracefsError) -> anyhow::Error {
    match error {
        TracefsError::Unknown { .. } | TracefsError::NotRegistered { .. } | TracefsError::NoName { .. } => {
            Usage(error.to_string()).into()
        }
        error => error.into(),
    }
}

/// Forms of events that no list has, for people.
const FORMS: [(&str, &str); 8] = [
    ("uprobe:/FILE:FUNCTION", "a call of a function, or of all of a pattern; arguments by (NAME:TYPE, ...)"),
    ("uretprobe:/FILE:FUNCTION", "its return; what it returns by (NAME:TYPE)"),
    ("usdt:/FILE:PROVIDER:NAME", "a marker in a program, which `readelf -n` lists"),
    ("kprobe:FUNCTION", "a call of a function of the kernel, where it was built with CONFIG_KPROBE_EVENTS"),
    ("kretprobe:FUNCTION", "its return"),
    (
        "bpf:/sys/fs/bpf/NAME",
        "what other programs write into a BPF map, ringbuf or perf_event_array; its fields by (NAME:TYPE, ...)",
    ),
    ("bpf:id:NUMBER", "the same, by the map's number, which `bpftool map` lists"),
    ("bpf:fd:NUMBER", "the same, by a descriptor that collector is started with"),
];

/// All events that can be recorded here, a line each.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for name in CLOCK_NAMES {
        let _ = writeln!(text, "{name:<24} the sampling clock, which is all that is recorded without -e");
    }
    let (here, absent): (Vec<Counter>, _) = COUNTERS.into_iter().partition(Counter::is_here);
    for Counter { name, description, .. } in here {
        let _ = writeln!(text, "{name:<24} {description}");
    }
    if absent.is_empty() {
        let _ = writeln!(text, "{:<24} an event of the processor, by the number in its manual", "rNNN");
    } else {
        let names: Vec<&str> = absent.iter().map(|counter| counter.name).collect();
        say(&format!("not counted by the processor here: {}", names.join(", ")));
    }
    for (form, description) in FORMS {
        let _ = writeln!(text, "{form:<24} {description}");
    }
    match Tracefs::open().and_then(|tracefs| tracefs.events()) {
        Ok(names) => names.iter().for_each(|name| {
            let _ = writeln!(text, "{name}");
        }),
        // Counters can be recorded all the same.
        Err(error) => say(&format!("warning: the tracepoints can't be listed: {error}")),
    }
    text
}
