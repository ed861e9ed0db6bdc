//! Events by their names, as `-e` takes them: counters, tracepoints and patterns of them, probes, maps, the sampling clock.

use std::collections::{BTreeMap, BTreeSet};

use collector_common::event::filter::FilterError;
use collector_common::event::spec::{self, EventSpec, SpecError};
use collector_common::event::{EventFlags, near as near_names};
use collector_common::glob::is_glob;
use thiserror::Error;

use super::bpf_map::{BpfMapError, MapSpec};
use super::raw_number::{self, Meant};
use super::{CLOCK_NAMES, COUNTERS, Hook, Trigger};
use crate::probe::{Probe, ProbeError};
use crate::tracefs::{Tracefs, TracefsError};

/// Words that begin names of what is no tracepoint of the kernel's own.
const SCHEMES: [&str; 7] = ["uprobe", "uretprobe", "usdt", "kprobe", "kretprobe", "bpf", "user_events"];

/// What begins names of tracepoints that programs register.
const OF_PROGRAMS: &str = "user_events:";

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
    #[error("{}", unread(text, error))]
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
    /// An event of the processor by its number, as other tools write it.
    #[error("no event is called `{name}`{}", by_number(meant.as_deref()))]
    Number {
        /// What.
        name: String,
        /// How it is written here.
        meant: Option<String>,
    },
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
    #[error("no tracepoint matches `{pattern}`{}; `collector list events` lists them", hint(pattern, near))]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// Names and patterns that are like it.
        near: Vec<String>,
    },
    /// An event is named a second time: by the same text, by another name that it has, by a pattern, or with another filter or other
    /// arguments. Both would be samples of one name.
    #[error("{}", twice(name, first, second))]
    Twice {
        /// The event's name.
        name: String,
        /// What names it.
        first: String,
        /// What names it again.
        second: String,
    },
    /// The filter does not fit the event's fields.
    #[error("{name}: {error}")]
    Filter {
        /// The event's name.
        name: String,
        /// Why.
        #[source]
        error: FilterError,
    },
    /// What it is looked up in can't be opened.
    #[error("{name}: {error}")]
    Unopened {
        /// What.
        name: String,
        /// Why.
        #[source]
        error: TracefsError,
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
            Self::Unopened { .. } => false,
            _ => true,
        }
    }
}

impl Named {
    /// What is named, each event once. `by_programs` is whether programs of ours may record it.
    ///
    /// # Errors
    /// When something is named twice, is not there or can't be recorded. Nothing is left of what was named before it.
    pub fn parse<S: AsRef<str>>(names: &[S], by_programs: bool) -> Result<Self, NamedError> {
        let mut naming = Naming { tracefs: None, by_programs, taken: Taken::default() };
        let mut named = Self::default();
        for text in names.iter().map(AsRef::as_ref) {
            if let Some(meant) = raw_number::meant(text) {
                let meant = match meant {
                    Meant::Event(meant) => Some(meant),
                    Meant::More => None,
                };
                return Err(NamedError::Number { name: text.to_owned(), meant });
            }
            let spec =
                spec::parse(text).map_err(|error| NamedError::Spec { text: text.to_owned(), error })?;
            if CLOCK_NAMES.contains(&spec.name) {
                if spec.filter.is_some() {
                    return Err(NamedError::ClockFilter(text.to_owned()));
                }
                naming.taken.take("the sampling clock", text)?;
                named.clock = true;
            } else {
                named.hooks.extend(naming.hooks_of(&spec, text)?);
            }
        }
        Ok(named)
    }
}

/// Events by their names, each with the text that names it.
#[derive(Default)]
struct Taken(BTreeMap<String, String>);

impl Taken {
    fn take(&mut self, name: &str, text: &str) -> Result<(), NamedError> {
        match self.0.insert(name.to_owned(), text.to_owned()) {
            None => Ok(()),
            Some(first) => Err(NamedError::Twice { name: name.to_owned(), first, second: text.to_owned() }),
        }
    }
}

/// What names are looked up in.
struct Naming {
    /// Opened for the first tracepoint or probe.
    tracefs: Option<Tracefs>,
    by_programs: bool,
    taken: Taken,
}

impl Naming {
    fn hooks_of(&mut self, spec: &EventSpec<'_>, text: &str) -> Result<Vec<Hook>, NamedError> {
        let name = spec.name;
        let mut hooks = if let Some(hook) = Hook::counter(name) {
            match hook.trigger {
                // However many digits it is written with.
                Trigger::Raw(number) => self.taken.take(&format!("r{number:x}"), text)?,
                _ => self.taken.take(hook.event.name(), text)?,
            }
            vec![hook]
        } else if Probe::is_probe(name) {
            // What is written wrongly is told before anything is asked of the machine.
            let probe = Probe::parse(name)?;
            self.taken.take(&probe.name, text)?;
            attach(&probe, opened_for(&mut self.tracefs, &probe.name)?, self.by_programs)?
        } else if MapSpec::is_map(name) {
            let map = MapSpec::parse(name)?;
            self.taken.take(&map.name, text)?;
            vec![map.open()?]
        } else if let Some((counter, modifiers)) = name.split_once(':').filter(|(name, _)| is_counter(name)) {
            let [name, counter, modifiers] = [name, counter, modifiers].map(str::to_owned);
            return Err(NamedError::Modifiers { name, counter, modifiers });
        } else if name.starts_with("etw:") {
            return Err(NamedError::Windows(name.to_owned()));
        } else if name.contains(':') {
            self.tracepoints(name, text)?
        } else {
            let tracepoints = opened(&mut self.tracefs).and_then(Tracefs::events).unwrap_or_default();
            return Err(no_event(name, &tracepoints));
        };
        for hook in &mut hooks {
            let filtered = hook.event.set_filter(spec.filter.as_ref());
            filtered.map_err(|error| NamedError::Filter { name: hook.event.name().to_owned(), error })?;
            hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
        }
        Ok(hooks)
    }

    /// The tracepoint of a name, or all that a pattern matches, as `sched:*` does.
    fn tracepoints(&mut self, name: &str, text: &str) -> Result<Vec<Hook>, NamedError> {
        if !is_glob(name) {
            self.taken.take(name, text)?;
        }
        let tracefs = opened_for(&mut self.tracefs, name)?;
        let Some(names) = tracefs.matching(name)? else {
            let known = || tracefs.events().unwrap_or_default();
            let event = tracefs.event(name).map_err(|error| mended(name, error, known))?;
            if !tracefs.is_recordable(name) {
                return Err(TracefsError::OfTracer { name: name.to_owned() }.into());
            }
            return Ok(vec![Hook::tracepoint(event)]);
        };
        if names.is_empty() && name.starts_with(OF_PROGRAMS) {
            tracefs.event(name)?;
        }
        if names.is_empty() {
            let near = near_patterns(name, &tracefs.events().unwrap_or_default());
            return Err(NamedError::NoMatch { pattern: name.to_owned(), near });
        }
        names.iter().try_for_each(|name| self.taken.take(name, text))?;
        names.iter().map(|name| Ok(Hook::tracepoint(tracefs.event(name)?))).collect()
    }
}

/// Of a name that is no tracepoint's, where the word that begins it is a misspelt one.
fn mended(name: &str, error: TracefsError, known: impl FnOnce() -> Vec<String>) -> NamedError {
    let knows_better = match &error {
        TracefsError::Unknown { near, .. } => !near.is_empty(),
        TracefsError::NoName { .. } => false,
        _ => true,
    };
    if knows_better {
        return error.into();
    }
    let known = known();
    // As other tools write it: `tracepoint:sched:sched_switch`.
    let rest = name.split_once(':').map_or("", |(_, rest)| rest);
    let near = if known.iter().any(|known| known == rest) {
        vec![rest.to_owned()]
    } else {
        near_systems(name, &known)
    };
    if near.is_empty() && !name.contains(',') {
        error.into()
    } else {
        NamedError::Unknown { name: name.to_owned(), near }
    }
}

/// The same name or pattern with words before its colon that are near to the one that is there, which none has.
fn near_systems(name: &str, tracepoints: &[String]) -> Vec<String> {
    let Some((system, rest)) = name.split_once(':') else { return Vec::new() };
    let known: BTreeSet<&str> = systems(tracepoints).chain(SCHEMES).collect();
    if known.contains(system) {
        return Vec::new();
    }
    near_names(system, known.into_iter()).into_iter().map(|near| format!("{near}:{rest}")).collect()
}

/// What may have been meant by a pattern that matches nothing: another system, names that are like it, or all of its system.
fn near_patterns(pattern: &str, tracepoints: &[String]) -> Vec<String> {
    let near = near_systems(pattern, tracepoints);
    if !near.is_empty() {
        return near;
    }
    let plain = pattern.replace(['*', '?', '\\'], "");
    let near = near_names(&plain, tracepoints.iter().map(String::as_str));
    if !near.is_empty() {
        return near.into_iter().map(str::to_owned).collect();
    }
    let system = pattern.split_once(':').map_or("", |(system, _)| system);
    systems(tracepoints)
        .find(|known| *known == system)
        .map(|known| format!("{known}:*"))
        .into_iter()
        .collect()
}

/// What is before the colon of each, as often as it is there.
fn systems(tracepoints: &[String]) -> impl Iterator<Item = &str> {
    tracepoints.iter().filter_map(|full| Some(full.split_once(':')?.0))
}

/// Says how events of the processor are written.
fn by_number(meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!(": did you mean {meant}?"),
        None => ": name an event of the processor by its number in the processor's manual, of up to 16 hexadecimal digits, as rNNN".to_owned(),
    }
}

/// Says what can't be read; of a filter that says itself which event's and what it is, that alone.
fn unread(text: &str, error: &SpecError) -> String {
    match error {
        SpecError::Filter { .. } => error.to_string(),
        _ => format!("{text}: {error}"),
    }
}

/// Says that an event is named again, and what to do.
fn twice(name: &str, first: &str, second: &str) -> String {
    if first == second {
        return format!("{second} is named twice: leave one out");
    }
    let remedy = if first.ends_with('/') && second.ends_with('/') {
        "name it once, with both filters joined by `or`"
    } else if first.ends_with(')') && second.ends_with(')') {
        "name it once, with all arguments in one list"
    } else {
        "leave one out"
    };
    format!("{second}: {name} is named already, by {first}: {remedy}")
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
    let mut near: Vec<String> = near.into_iter().map(str::to_owned).collect();
    if near.is_empty() {
        let systems: BTreeSet<&str> = systems(tracepoints).collect();
        let meant = match systems.get(name) {
            Some(system) => vec![*system],
            None => near_names(name, systems.into_iter()),
        };
        near = meant.into_iter().map(|system| format!("{system}:*")).collect();
    }
    NamedError::Unknown { name: name.to_owned(), near }
}

fn hint(name: &str, near: &[String]) -> String {
    if name.contains(',') {
        ": each event has an `-e` of its own".to_owned()
    } else if is_glob(name) && !name.contains(':') {
        ": a pattern of tracepoints is CATEGORY:NAME, as sched:*".to_owned()
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

fn opened_for<'a>(tracefs: &'a mut Option<Tracefs>, name: &str) -> Result<&'a Tracefs, NamedError> {
    opened(tracefs).map_err(|error| NamedError::Unopened { name: name.to_owned(), error })
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
            ("page-faults/pid == 1/", "page-faults: the filter `pid == 1`, at column 1"),
            ("a:b/pid => 1/", "a:b: the filter `pid => 1`, at column 5, before `=> 1`"),
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
        assert!(told("sched").contains("did you mean sched:*?"));
        assert!(told("shced").contains("did you mean sched:*?"));
        assert!(told("LLC-load-misses").contains("as rNNN"));
        assert!(told("page-faults,cs").contains("an `-e` of its own"));
        assert!(told("*").contains("a pattern of tracepoints is CATEGORY:NAME"));
        let told = |name| Named::parse(&[name], false).unwrap_err();
        for (name, expected) in [
            ("raw:0x1a8", "did you mean r1a8?"),
            ("cpu/event=0xa8,umask=1,inv/", "of up to 16 hexadecimal digits, as rNNN"),
        ] {
            let error = told(name);
            assert!(error.is_of_the_request() && error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn misspelt_patterns_and_systems_have_a_hint() {
        let tracepoints = ["irq:softirq_entry", "sched:sched_switch", "uprobes:x"].map(str::to_owned);
        let patterns = |pattern| near_patterns(pattern, &tracepoints);
        assert_eq!(patterns("shced:*"), ["sched:*"]);
        assert_eq!(patterns("sched:sched_swich*"), ["sched:sched_switch"]);
        assert_eq!(patterns("sched:zz*"), ["sched:*"]);
        assert_eq!(patterns("unlike:*"), [""; 0]);
        let told = |name: &str| {
            let error = TracefsError::NoName { name: name.to_owned() };
            mended(name, error, || tracepoints.to_vec()).to_string()
        };
        assert!(
            told("uporbe:/bin/x:f").contains("did you mean uprobe:/bin/x:f"),
            "{}",
            told("uporbe:/bin/x:f")
        );
        assert!(told("kprob:do_exit").contains("did you mean kprobe:do_exit"));
        assert!(told("sched:a/b").contains("names no event"), "the system is there");
        assert!(told("tracepoint:sched:sched_switch").contains("did you mean sched:sched_switch?"));
        assert!(told("sched:sched_switch,irq:softirq_entry").contains("an `-e` of its own"));
    }

    #[test]
    fn an_event_is_named_once() {
        for (names, told) in [
            (["cs", "cs"], "cs is named twice: leave one out"),
            (
                ["page-faults", "faults"],
                "faults: page-faults is named already, by page-faults: leave one out",
            ),
            (["r01c2", "r1C2"], "r1C2: r1c2 is named already, by r01c2: leave one out"),
            (["cpu-clock", "task-clock"], "task-clock: the sampling clock is named already"),
        ] {
            let error = Named::parse(&names, false).unwrap_err();
            assert!(error.is_of_the_request() && error.to_string().contains(told), "{error}");
        }
        let mut taken = Taken::default();
        let mut take = |name, text| taken.take(name, text).map_err(|error| error.to_string());
        let [name, filtered, pattern] = ["a:b", "a:b/x == 1/", "a:*/x == 2/"];
        assert_eq!(take(name, filtered), Ok(()));
        assert!(take(name, pattern).unwrap_err().ends_with("with both filters joined by `or`"));
        let name = "uprobe:/x:f";
        assert_eq!(take(name, "uprobe:/x:f(a:u64)"), Ok(()));
        assert!(take(name, "uprobe:/x:f(b:u64)").unwrap_err().ends_with("with all arguments in one list"));
        assert!(take(name, name).unwrap_err().ends_with("leave one out"));
    }

    #[test]
    fn the_clock_is_no_event_of_its_own() {
        let named = Named::parse(&["cs", "task-clock"], false).unwrap();
        assert!(named.clock);
        let names: Vec<_> = named.hooks.iter().map(|hook| hook.event.name()).collect();
        assert_eq!(names, ["context-switches"]);
    }
}
