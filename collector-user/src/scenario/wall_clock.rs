//! All time of threads: nanoseconds that they run, are blocked, or wait for a CPU, each with the stack of that time. The sum
//! is the time that they live.

use super::{Scenario, ScenarioOption, time_off};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "wall_clock",
    alias: "wall",
    description: "nanoseconds of each thread, running, blocked or waiting for a CPU, by stack",
    option: Some(ScenarioOption::Shortest(|settings| &mut settings.shortest.wall_clock)),
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    time_off::register(settings, Program::WallClock);
}
