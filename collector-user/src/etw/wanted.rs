//! Names of scenarios in; which kinds of sample are made of events that serve several, and which kind is looked at first, out.
//!
//! `.folded`, `.svg` and `report` have room for one kind. As on Linux it is `cpu`, if that is recorded for itself, else that of the
//! scenario that was named first. Of a trace of which nobody says what it was recorded for, it is the first of [`KINDS`] that there are samples
//! of. What arrives first plays no part in that.

use collector_common::ids::Nanos;
use collector_common::record::{ExportMachine, SampleKindId};

use super::shortest::Shortest;

/// Kinds by scenario, those of one in the order in which they are preferred.
const OF_SCENARIOS: [(&str, &[&str]); 13] = [
    ("cpu_profiling", &["cpu"]),
    ("off_cpu", &["off_cpu"]),
    ("wall_clock", &["wall_clock"]),
    ("scheduling", &["run_queue"]),
    ("page_faults", &["minor-faults", "major-faults"]),
    ("syscalls", &["syscalls"]),
    ("memory_tracking", &["alloc_space", "mapped_space"]),
    ("memory_growth", &["mapped_space", "minor-faults", "major-faults"]),
    ("io_monitoring", &["block_io", "file_io", "network_io"]),
    ("dotnet_gc_analysis", &["Microsoft-Windows-DotNETRuntime/GC/Triggered"]),
    ("dotnet_allocations", &["alloc_space"]),
    ("dotnet_exceptions", &["Microsoft-Windows-DotNETRuntime/Exception/Start"]),
    ("dotnet_contention", &["Microsoft-Windows-DotNETRuntime/Contention/Start"]),
];

/// The order where nothing is said, or what was asked for did not happen; others are behind these, by name.
const KINDS: [&str; 13] = [
    "cpu",
    "wall_clock",
    "off_cpu",
    "alloc_space",
    "mapped_space",
    "block_io",
    "file_io",
    "network_io",
    "syscalls",
    "minor-faults",
    "major-faults",
    "fault_wait",
    "run_queue",
];

/// What is made of events that serve several scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "any of them go together")]
pub(super) struct Wanted {
    /// CPU samples, for themselves.
    pub(super) cpu: bool,
    /// Times that threads are blocked for.
    pub(super) off_cpu: bool,
    /// All time of threads.
    pub(super) wall_clock: bool,
    /// Times that threads wait for a CPU.
    pub(super) run_queue: bool,
    /// What of times off a CPU is left out of `off_cpu` and `wall_clock`.
    pub(super) shortest: Shortest,
}

impl Wanted {
    /// Where nobody says what a trace was recorded for, all of it.
    pub(super) const ALL: Self = Self {
        cpu: true,
        off_cpu: true,
        wall_clock: true,
        run_queue: true,
        shortest: Shortest { off_cpu: Nanos(0), wall_clock: Nanos(0) },
    };

    /// What scenarios ask for, by their names; all for none.
    pub(super) fn of(scenarios: &[String]) -> Self {
        if scenarios.is_empty() {
            return Self::ALL;
        }
        let has = |name: &str| scenarios.iter().any(|scenario| scenario == name);
        Self {
            cpu: has("cpu_profiling"),
            off_cpu: has("off_cpu"),
            wall_clock: has("wall_clock"),
            run_queue: has("scheduling"),
            shortest: Shortest::default(),
        }
    }

    /// What is made of a time off a CPU that took so long.
    pub(super) fn of_time_off(self, took: Nanos) -> Self {
        Self {
            off_cpu: self.off_cpu && took >= self.shortest.off_cpu,
            wall_clock: self.wall_clock && took >= self.shortest.wall_clock,
            ..self
        }
    }
}

/// Says which kind is looked at first: of those with samples, by what was asked for.
pub(super) fn choose_main_kind(machine: &mut ExportMachine, scenarios: &[String]) {
    let mut kinds: Vec<(&str, SampleKindId)> = machine
        .samples()
        .kinds()
        .filter_map(|id| Some((machine.string(machine.kinds().get(usize::from(id.0))?.name), id)))
        .collect();
    kinds.sort_unstable();
    let is_asked = |name: &str| scenarios.iter().any(|scenario| scenario == name);
    let first = is_asked("cpu_profiling").then_some("cpu_profiling");
    let asked = first.into_iter().chain(scenarios.iter().map(String::as_str));
    let asked = asked.filter_map(|name| OF_SCENARIOS.iter().find(|(own, _)| *own == name));
    let order = asked.flat_map(|(_, names)| names.iter()).chain(&KINDS);
    let mut found = order.filter_map(|name| kinds.iter().find(|(own, _)| own == name));
    if let Some((_, id)) = found.next().or(kinds.first()).copied() {
        machine.set_main_kind(id);
    }
}

#[cfg(test)]
mod tests {
    use collector_common::record::{Sample, Unit};
    use windows_etw::plan::SCENARIOS;

    use super::*;

    fn shown(kinds: &[&str], scenarios: &[&str]) -> String {
        let mut machine = ExportMachine::default();
        for name in kinds {
            let kind = machine.add_kind(name, Unit::Count, 1);
            machine.add_sample(&Sample { kind, value: 1, ..Sample::default() });
        }
        // There are none of it.
        machine.add_kind("cpu", Unit::Count, 1);
        let scenarios: Vec<String> = scenarios.iter().map(|name| (*name).to_owned()).collect();
        choose_main_kind(&mut machine, &scenarios);
        let kind =
            machine.shown_kind().map_or("", |kind| machine.string(machine.kinds()[usize::from(kind.0)].name));
        kind.to_owned()
    }

    #[test]
    fn it_is_what_was_asked_for_whatever_came_first() {
        let kinds = ["zzz", "off_cpu", "syscalls", "block_io"];
        assert_eq!(shown(&kinds, &["io_monitoring", "syscalls"]), "block_io");
        assert_eq!(shown(&kinds, &["syscalls", "io_monitoring"]), "syscalls");
        assert_eq!(shown(&["block_io", "cpu"], &["io_monitoring", "cpu_profiling"]), "cpu");
        assert_eq!(shown(&["cpu", "wall_clock"], &["wall_clock"]), "wall_clock");
        assert_eq!(shown(&["network_io", "file_io"], &["io_monitoring"]), "file_io");
    }

    #[test]
    fn without_a_word_it_is_by_the_order_and_then_by_name() {
        assert_eq!(shown(&["major-faults", "b", "off_cpu", "a"], &[]), "off_cpu");
        assert_eq!(shown(&["b", "a"], &[]), "a");
        assert_eq!(shown(&["b", "a"], &["page_faults"]), "a");
        assert_eq!(shown(&[], &["off_cpu"]), "");
    }

    #[test]
    fn all_scenarios_that_take_samples_are_there() {
        let named = OF_SCENARIOS.map(|(name, _)| name);
        for scenario in &SCENARIOS {
            assert_eq!(named.contains(&scenario.name), scenario.name != "processes", "{}", scenario.name);
        }
    }
}
