//! Scenarios: what to record, by a name. Each registers what it needs in the settings of a session: the sampling clock,
//! events, programs of ours in the kernel. Several go into one session, and share its rings.
//!
//! ```no_run
//! use collector_user::scenario;
//! use collector_user::session::{Session, SessionSettings};
//! use collector_user::source::Settings;
//!
//! let sampling = Settings { clock: false, ..Settings::default() };
//! let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
//! for name in ["cpu_profiling", "off_cpu"] {
//!     scenario::by_name(name).expect("a scenario's name").register(&mut settings);
//! }
//! let session = Session::start(settings, None)?;
//! # Ok::<(), collector_user::session::SessionError>(())
//! ```
//!
//! What each measures, its units, its cost and its limits: `docs/scenarios.md`.

mod cpu_profiling;
mod io_monitoring;
mod kernel_locks;
mod lock_owners;
mod locks;
mod memory_growth;
mod memory_tracking;
mod off_cpu;
mod page_faults;
mod processes;
mod program;
mod scheduling;
mod syscalls;
mod time_off;
mod transfer_time;
mod wall_clock;

use collector_common::ids::Nanos;

use crate::session::SessionSettings;
use crate::source::{Program, Settings, Trigger};

pub(crate) use io_monitoring::BlockTime;
pub(crate) use kernel_locks::KernelLockTime;
pub(crate) use lock_owners::LockOwnerTime;
pub(crate) use memory_tracking::AllocatedBlock;
pub(crate) use time_off::TimeOff;
pub(crate) use transfer_time::TransferTime;

/// A setting of [`Settings`] that is of one scenario.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioOption {
    /// What is shorter is left out: its place in [`Settings::shortest`].
    Shortest(fn(&mut Settings) -> &mut Nanos),
    /// There is one stack for about so many bytes: [`Settings::allocation_period`] or [`Settings::mapped_period`].
    Every(fn(&mut Settings) -> &mut u64),
}

/// Something to record.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Its short name.
    pub alias: &'static str,
    /// What it records, in a line.
    pub description: &'static str,
    /// What can be chosen of it.
    pub option: Option<ScenarioOption>,
    /// Counters that, named beside it, record in its place what it would record of that, without its tables.
    pub gives_way_to: &'static [&'static str],
    register: fn(&mut SessionSettings),
}

impl Scenario {
    /// Has a session record it, beside what the session records already. Twice is as good as once.
    pub fn register(&self, settings: &mut SessionSettings) {
        (self.register)(settings);
    }
}

/// All scenarios, in the order in which they are listed.
pub const SCENARIOS: [Scenario; 11] = [
    cpu_profiling::SCENARIO,
    off_cpu::SCENARIO,
    wall_clock::SCENARIO,
    scheduling::SCENARIO,
    locks::SCENARIO,
    memory_tracking::SCENARIO,
    memory_growth::SCENARIO,
    page_faults::SCENARIO,
    processes::SCENARIO,
    syscalls::SCENARIO,
    io_monitoring::SCENARIO,
];

/// The scenario of a name or a short name.
pub fn by_name(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name || scenario.alias == name)
}

/// What the scenario of a program is called; of one that no scenario has, the program's events.
pub(crate) fn name_of(program: Program) -> &'static str {
    let has = |scenario: &&Scenario| {
        let mut settings = SessionSettings::default();
        scenario.register(&mut settings);
        settings.events.iter().any(|hook| hook.trigger == Trigger::Program(program))
    };
    SCENARIOS.iter().find(has).map_or(program.name(), |scenario| scenario.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_each_of_one_scenario() {
        let names: BTreeSet<_> =
            SCENARIOS.iter().flat_map(|scenario| [scenario.name, scenario.alias]).collect();
        assert_eq!(names.len(), 2 * SCENARIOS.len());
        assert!(SCENARIOS.iter().all(|one| by_name(one.alias).is_some_and(|other| other.name == one.name)));
        assert!(by_name("").is_none());
    }

    #[test]
    fn programs_are_called_by_their_scenario() {
        for (program, name) in [
            (Program::Allocations, "memory_tracking"),
            (Program::Mapped, "memory_growth"),
            (Program::RunQueues, "scheduling"),
            (Program::LockOwners, "locks"),
            (Program::NetworkIo, "io_monitoring"),
            (Program::Functions, "functions"),
        ] {
            assert_eq!(name_of(program), name);
        }
    }

    #[test]
    fn a_scenario_is_registered_once() {
        for scenario in &SCENARIOS {
            let sampling = Settings { clock: false, ..Settings::default() };
            let mut settings = SessionSettings { sampling, ..SessionSettings::default() };
            scenario.register(&mut settings);
            let once = settings.events.len();
            scenario.register(&mut settings);
            assert_eq!(settings.events.len(), once);
            assert!(settings.sampling.clock || once > 0, "{}", scenario.name);
        }
    }
}
