//! Memory that processes get from the kernel: what they ask for, and the pages of it that they touch first. It costs nothing
//! where memory is allocated and freed without the kernel, and tells nothing of that.

use super::memory_tracking::fields;
use super::{Scenario, ScenarioOption, page_faults, program};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "memory_growth",
    alias: "growth",
    description: "bytes that processes ask of the kernel, and pages that they touch first, by stack",
    option: Some(ScenarioOption::Every(|settings| &mut settings.mapped_period)),
    gives_way_to: &page_faults::COUNTERS,
    register,
};

fn register(settings: &mut SessionSettings) {
    program::record(settings, Program::Mapped, fields());
    page_faults::register(settings);
}
