//! Whether there are CPUs enough: how long threads that could run wait for one, counted in the kernel.

use super::{Scenario, program};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "scheduling",
    alias: "sched",
    description: "histograms of how long threads wait for a CPU, by thread name",
    option: None,
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    program::count(settings, Program::RunQueues);
}
