//! Names of scenarios and events, as people type them, in; what ETW is asked for out.

use collector_common::event::{Guid, near};
use collector_common::ids::Pid;
use thiserror::Error;
use windows_etw::plan::{
    Buffers, EventSpec, EventSpecError, HeapPlan, KNOWN_PROVIDERS, Note, Plan, PlanError, SCENARIOS,
    Scenario, Scope,
};

/// What is recorded without a name.
const DEFAULT: &str = "cpu_profiling";

/// What a command line asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Scenarios by their names. Without any, and without events, CPUs are sampled.
    pub scenarios: &'a [String],
    /// Events, as `etw:Microsoft-Windows-Kernel-Process:0x10`.
    pub events: &'a [String],
    /// CPU samples a second.
    pub frequency_hz: u32,
    /// Processes that are named: those whose heaps tell of blocks.
    pub pids: &'a [Pid],
    /// Whether a command is recorded, whose process is added to those of the heaps when it is there.
    pub has_command: bool,
}

/// A request that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// No such scenario.
    #[error("no scenario is called `{name}`{hint}; `collector list scenarios` lists them")]
    Scenario {
        /// What was asked for.
        name: String,
        /// What may have been meant, as `: did you mean off_cpu?`; empty where nothing is like it.
        hint: String,
    },
    /// No such event.
    #[error("-e {error}{hint}")]
    Event {
        /// Why.
        error: EventSpecError,
        /// As that of a scenario.
        hint: String,
    },
    /// Not all in one recording.
    #[error(transparent)]
    Together(#[from] PlanError),
}

impl Request<'_> {
    /// The plan. `providers` are those that the system knows by name, which are asked for where a name is not among
    /// [`KNOWN_PROVIDERS`].
    ///
    /// Providers are not asked to tell of the named processes alone, for those that these make would be left out. Of whom they are asked at the end
    /// is decided then, when it is known who is there.
    ///
    /// # Errors
    /// [`RequestError`]: all are wrong usage.
    pub fn plan(&self, providers: impl Fn() -> Vec<(String, Guid)>) -> Result<Plan, RequestError> {
        let scope = Scope { frequency_hz: self.frequency_hz, pids: self.pids.to_vec() };
        let default = [DEFAULT.to_owned()];
        let nothing = self.scenarios.is_empty() && self.events.is_empty();
        let scenarios = if nothing { &default[..] } else { self.scenarios };
        let mut plans = Vec::new();
        for name in scenarios {
            plans.push(scenario(name)?.plan(&scope));
        }
        for event in self.events {
            plans.push(spec(event, &providers)?.plan(&scope));
        }
        let mut plans = plans.into_iter();
        let mut whole = plans.next().ok_or_else(|| no_scenario("", [DEFAULT].into_iter()))?;
        plans.try_for_each(|plan| whole.add(plan))?;
        whole.providers.iter_mut().for_each(|provider| provider.pids.clear());
        whole.notes.retain(|note| !matches!(note, Note::ManyProcesses(_)));
        if self.has_command && whole.notes.contains(&Note::HeapNeedsProcesses) {
            whole.notes.retain(|note| *note != Note::HeapNeedsProcesses);
            whole.heap = Some(HeapPlan { pids: Vec::new() });
            whole.buffers = whole.buffers.or_larger(Buffers::LARGE);
        }
        Ok(whole)
    }
}

fn scenario(name: &str) -> Result<&'static Scenario, RequestError> {
    let all = SCENARIOS.iter().flat_map(|scenario| [scenario.name, scenario.alias]);
    Scenario::by_name(name).ok_or_else(|| no_scenario(name, all))
}

/// That there is none of this name among `all`.
fn no_scenario<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> RequestError {
    let hint = if name.contains(',') { ": each has a `-s` of its own".to_owned() } else { meant(name, all) };
    RequestError::Scenario { name: name.to_owned(), hint }
}

fn spec(event: &str, providers: &impl Fn() -> Vec<(String, Guid)>) -> Result<EventSpec, RequestError> {
    let mut told = Vec::new();
    let spec = EventSpec::parse(event, |name| {
        told = providers();
        told.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, guid)| *guid)
    });
    spec.map_err(|error| {
        let known = KNOWN_PROVIDERS.iter().map(|known| known.name);
        let hint = match &error {
            EventSpecError::Provider(name) => {
                meant(name, known.chain(told.iter().map(|(name, _)| name.as_str())))
            }
            _ => String::new(),
        };
        RequestError::Event { error, hint }
    })
}

/// `: did you mean this or that?`; nothing where no name is near.
fn meant<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let near = near(name, all);
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use windows_etw::plan::{Flags, SampleInterval};

    use super::*;

    fn plan(scenarios: &[&str], events: &[&str], pids: &[u32]) -> Result<Plan, RequestError> {
        let [scenarios, events] =
            [scenarios, events].map(|it| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let pids: Vec<Pid> = pids.iter().copied().map(Pid).collect();
        let request = Request {
            scenarios: &scenarios,
            events: &events,
            frequency_hz: 997,
            pids: &pids,
            has_command: false,
        };
        request.plan(|| vec![("Contoso-Fabrikam".to_owned(), Guid([7; 16]))])
    }

    #[test]
    fn without_a_name_cpus_are_sampled_and_an_event_alone_is_alone() {
        let default = plan(&[], &[], &[]).unwrap();
        assert_eq!(
            (default.names, default.system.interval.map(SampleInterval::units)),
            (vec!["cpu_profiling".to_owned()], Some(10_030))
        );
        let event = plan(&[], &["etw:contoso-fabrikam:0x10"], &[]).unwrap();
        assert!(event.system.flags.0 & Flags::PROFILE.0 == 0 && event.system.interval.is_none());
        assert!(event.providers.iter().any(|it| it.guid == Guid([7; 16]) && it.any == 0x10));
        let both = plan(&["off_cpu", "cpu"], &["etw:Contoso-Fabrikam"], &[]).unwrap();
        assert_eq!(both.names, ["off_cpu", "cpu_profiling", "etw:Contoso-Fabrikam"]);
    }

    #[test]
    fn providers_tell_of_all_and_heaps_of_the_named_processes() {
        let pids: Vec<u32> = (1..=9).collect();
        let named = plan(&["memory_tracking", "dotnet_exceptions"], &[], &pids).unwrap();
        assert!(!named.providers.is_empty() && named.providers.iter().all(|it| it.pids.is_empty()));
        assert_eq!((named.heap.unwrap().pids.len(), named.notes), (9, vec![]));
        assert_eq!(plan(&["memory"], &[], &[]).unwrap().notes, [Note::HeapNeedsProcesses]);
    }

    #[test]
    fn heaps_wait_for_the_process_of_a_command() {
        let plan = |scenario: &str, pids: &[Pid]| {
            let scenarios = [scenario.to_owned()];
            let request = Request { scenarios: &scenarios, pids, has_command: true, ..Request::default() };
            request.plan(Vec::new).unwrap()
        };
        let alone = plan("memory_tracking", &[]);
        assert_eq!((&alone.heap, alone.notes), (&Some(HeapPlan { pids: vec![] }), vec![]));
        let named = plan("memory_tracking", &[Pid(7)]);
        assert_eq!((named.heap, named.buffers), (Some(HeapPlan { pids: vec![Pid(7)] }), alone.buffers));
        assert!(plan("memory_growth", &[]).heap.is_none());
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is_like_it() {
        let says =
            |scenarios: &[&str], events: &[&str]| plan(scenarios, events, &[]).unwrap_err().to_string();
        assert!(
            says(&["of_cpu"], &[]).contains("`of_cpu`: did you mean off_cpu"),
            "{}",
            says(&["of_cpu"], &[])
        );
        assert!(says(&["cpu,off_cpu"], &[]).contains("each has a `-s` of its own"));
        let provider = says(&[], &["etw:Contoso-Fabricam"]);
        assert!(provider.ends_with(": did you mean Contoso-Fabrikam?"), "{provider}");
        let known = says(&[], &["etw:Microsoft-Windows-DotNETRuntim"]);
        assert!(known.contains("did you mean Microsoft-Windows-DotNETRuntime"), "{known}");
        assert!(says(&[], &["sched:sched_switch"]).contains("is no event of ETW"));
        assert!(says(&[], &["etw:Contoso-Fabrikam:x"]).contains("no keywords"));
    }
}
