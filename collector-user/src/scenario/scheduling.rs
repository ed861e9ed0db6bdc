//! Whether there are CPUs enough: how long threads that could run wait for one, counted in the kernel.

use collector_common::event::{Event, EventId};

use super::Scenario;
use super::time_off::is_registered;
use crate::session::SessionSettings;
use crate::source::{Hook, Program};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "scheduling",
    alias: "sched",
    description: "histograms of how long threads wait for a CPU, by thread name",
    has_shortest_time: false,
    register,
};

fn register(settings: &mut SessionSettings) {
    let program = Program::RunQueues;
    if !is_registered(settings, program) {
        settings.events.push(Hook::program(Event::new(EventId(0), program.name()), program));
    }
}
