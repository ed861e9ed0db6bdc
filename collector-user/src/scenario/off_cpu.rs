//! What is waited for: nanoseconds for which threads are blocked, by the stack that they wait with.

use super::{Scenario, ScenarioOption, time_off};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "off_cpu",
    alias: "offcpu",
    description: "nanoseconds that threads are blocked for, by stack, and who wakes them",
    option: Some(ScenarioOption::Shortest(|settings| &mut settings.shortest.off_cpu)),
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    time_off::register(settings, Program::OffCpu);
}
