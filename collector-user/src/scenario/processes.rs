//! Which processes there are: who makes whom, what they execute with which arguments, how long they live and how they end.

use collector_common::event::{Event, EventId};

use super::Scenario;
use super::time_off::is_registered;
use crate::session::SessionSettings;
use crate::source::{Hook, Program};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "processes",
    alias: "proc",
    description: "who starts what with which arguments, for how long it lives and how it ends",
    has_shortest_time: false,
    register,
};

fn register(settings: &mut SessionSettings) {
    let program = Program::Processes;
    if !is_registered(settings, program) {
        settings.events.push(Hook::program(Event::new(EventId(0), program.name()), program));
    }
}
