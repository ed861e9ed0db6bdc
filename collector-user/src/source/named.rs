//! Events by their names, as `-e` takes them: counters, tracepoints and patterns of them, probes, maps, the sampling clock.

use collector_common::event::filter::FilterError;
use collector_common::event::spec::{self, EventSpec, SpecError};
use collector_common::event::{EventFlags, near as near_names};
use thiserror::Error;

use super::bpf_map::{BpfMapError, MapSpec};
use super::{CLOCK_NAMES, COUNTERS, Hook};
use crate::probe::{Probe, ProbeError};
use crate::tracefs::{Tracefs, TracefsError};

/// How `perf list` begins names of what it counts at caches.
const CACHES: [&str; 7] = ["L1-dcache-", "L1-icache-", "LLC-", "dTLB-", "iTLB-", "branch-load", "node-"];

/// What is named.
#[derive(Debug, Default)]
pub struct Named {
    /// Events, each to be recorded with its stacks.
    pub hooks: Vec<Hook>,
    /// Whether the sampling clock is among them.
    pub clock: bool,
}

/// What is named can't be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamedError {
    /// It can't be read.
    #[error("{text}: {error}")]
    Spec {
        /// What.
        text: String,
        /// Why.
        #[source]
        error: SpecError,
    },
    /// A filter of the sampling clock.
    #[error("{0}: the sampling clock has no fields to filter by")]
    ClockFilter(String),
    /// `:u` and such, behind a counter.
    #[error(
        "{name}: modifiers such as `:{modifiers}` are not known here; `{counter}` is recorded in programs and in the kernel"
    )]
    Modifiers {
        /// All of it.
        name: String,
        /// What is before them.
        counter: String,
        /// What is behind.
        modifiers: String,
    },
    /// Perf's name for what is counted at a cache.
    #[error(
        "no event is called `{0}`: of a processor's caches, name what is counted by its number in the processor's manual, as rNNN"
    )]
    Cache(String),
    /// An event of Windows.
    #[error(
        "{0} is an event of Windows, which `collector.exe run` records there; `collector list events` lists those of this system"
    )]
    Windows(String),
    /// There is none of the name.
    #[error("no event is called `{name}`{}; `collector list events` lists them", hint(name, near))]
    Unknown {
        /// The name.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A pattern of tracepoints matches none.
    #[error("no tracepoint matches `{0}`; `collector list events` lists them")]
    NoMatch(String),
    /// The filter does not fit the event's fields.
    #[error("the filter of {name}: {error}")]
    Filter {
        /// The event's name.
        name: String,
        /// Why.
        #[source]
        error: FilterError,
    },
    /// A tracepoint.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// A probe.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A map.
    #[error(transparent)]
    Map(#[from] BpfMapError),
}

impl NamedError {
    /// Whether what was asked for is wrong, and not the machine.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            Self::Tracefs(error) => error.is_of_the_request(),
            Self::Probe(error) => error.is_of_the_request(),
            Self::Map(error) => error.is_of_the_request(),
            _ => true,
        }
    }
}

impl Named {
    /// What is named. `by_programs` is whether programs of ours may record it.
    ///
    /// # Errors
    /// When something is named that is not there or can't be recorded. Nothing is left of what was named before it.
    pub fn parse<S: AsRef<str>>(names: &[S], by_programs: bool) -> Result<Self, NamedError> {
        let mut tracefs = None;
        let mut named = Self::default();
        for text in names.iter().map(AsRef::as_ref) {
            let spec =
                spec::parse(text).map_err(|error| NamedError::Spec { text: text.to_owned(), error })?;
            if CLOCK_NAMES.contains(&spec.name) {
                if spec.filter.is_some() {
                    return Err(NamedError::ClockFilter(text.to_owned()));
                }
                named.clock = true;
            } else {
                named.hooks.extend(hooks_of(&spec, &mut tracefs, by_programs)?);
            }
        }
        Ok(named)
    }
}

/// `tracefs` is opened for the first tracepoint or probe.
fn hooks_of(
    spec: &EventSpec<'_>,
    tracefs: &mut Option<Tracefs>,
    by_programs: bool,
) -> Result<Vec<Hook>, NamedError> {
    let name = spec.name;
    let mut hooks = if let Some(hook) = Hook::counter(name) {
        vec![hook]
    } else if Probe::is_probe(name) {
        // What is written wrongly is told before anything is asked of the machine.
        let probe = Probe::parse(name)?;
        attach(&probe, opened(tracefs)?, by_programs)?
    } else if MapSpec::is_map(name) {
        vec![MapSpec::parse(name)?.open()?]
    } else if let Some((counter, modifiers)) = name.split_once(':').filter(|(name, _)| is_counter(name)) {
        let [name, counter, modifiers] = [name, counter, modifiers].map(str::to_owned);
        return Err(NamedError::Modifiers { name, counter, modifiers });
    } else if name.starts_with("etw:") {
        return Err(NamedError::Windows(name.to_owned()));
    } else if name.contains(':') {
        tracepoints(name, opened(tracefs)?)?
    } else {
        let tracepoints = opened(tracefs).and_then(Tracefs::events).unwrap_or_default();
        return Err(no_event(name, &tracepoints));
    };
    for hook in &mut hooks {
        let filtered = hook.event.set_filter(spec.filter.as_ref());
        filtered.map_err(|error| NamedError::Filter { name: name.to_owned(), error })?;
        hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
    }
    Ok(hooks)
}

/// The tracepoint of a name, or all that a pattern matches, as `sched:*` does.
fn tracepoints(name: &str, tracefs: &Tracefs) -> Result<Vec<Hook>, NamedError> {
    let names = tracefs.matching(name)?.unwrap_or_else(|| vec![name.to_owned()]);
    if names.is_empty() {
        return Err(NamedError::NoMatch(name.to_owned()));
    }
    names.iter().map(|name| Ok(Hook::tracepoint(tracefs.event(name)?))).collect()
}

fn is_counter(name: &str) -> bool {
    CLOCK_NAMES.contains(&name) || Hook::counter(name).is_some()
}

/// Nothing is called `name`, which may be a tracepoint without its system.
fn no_event(name: &str, tracepoints: &[String]) -> NamedError {
    if CACHES.iter().any(|cache| name.starts_with(cache)) {
        return NamedError::Cache(name.to_owned());
    }
    let of_system = |full: &&String| full.split_once(':').is_some_and(|(_, event)| event == name);
    let mut near: Vec<&str> = tracepoints.iter().filter(of_system).map(String::as_str).collect();
    if near.is_empty() {
        near = near_names(name, COUNTERS.iter().map(|counter| counter.name).chain(CLOCK_NAMES));
    }
    NamedError::Unknown { name: name.to_owned(), near: near.into_iter().map(str::to_owned).collect() }
}

fn hint(name: &str, near: &[String]) -> String {
    if name.contains(',') {
        ": each event has an `-e` of its own".to_owned()
    } else if near.is_empty() {
        String::new()
    } else {
        format!(": did you mean {}?", near.join(" or "))
    }
}

#[cfg(feature = "ebpf")]
fn attach(probe: &Probe, tracefs: &Tracefs, by_programs: bool) -> Result<Vec<Hook>, ProbeError> {
    if by_programs && super::ebpf::check().is_ok() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_without_a_machine() {
        for (text, expected) in [
            ("", "an event begins with its name"),
            ("page-faults:u", "`page-faults` is recorded in programs and in the kernel"),
            ("cpu-clock:k", "modifiers such as `:k`"),
            ("cpu-clock/pid == 1/", "no fields to filter by"),
            ("page-faults/pid == 1/", "the filter of page-faults"),
        ] {
            let error = Named::parse(&[text], false).unwrap_err();
            assert!(error.is_of_the_request() && error.to_string().contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn names_without_their_system_and_of_caches_have_a_hint() {
        let tracepoints = ["sched:sched_switch", "irq:softirq_entry"].map(str::to_owned);
        let told = |name| no_event(name, &tracepoints).to_string();
        assert!(told("softirq_entry").contains("did you mean irq:softirq_entry?"));
        assert!(told("page-fault").contains("did you mean page-faults?"));
        assert!(told("LLC-load-misses").contains("as rNNN"));
        assert!(told("page-faults,cs").contains("an `-e` of its own"));
    }

    #[test]
    fn the_clock_is_no_event_of_its_own() {
        let named = Named::parse(&["cs", "task-clock"], false).unwrap();
        assert!(named.clock);
        let names: Vec<_> = named.hooks.iter().map(|hook| hook.event.name()).collect();
        assert_eq!(names, ["context-switches"]);
    }
}
