//! What runs: samples of every thread that is on a CPU, by a clock.

use super::Scenario;
use crate::session::SessionSettings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cpu_profiling",
    alias: "cpu",
    description: "samples of what runs on the CPUs, at a fixed rate per CPU",
    option: None,
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    settings.sampling.clock = true;
}
