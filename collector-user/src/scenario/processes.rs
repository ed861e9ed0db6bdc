//! Which processes there are: who makes whom, what they execute with which arguments, how long they live and how they end.

use super::{Scenario, program};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "processes",
    alias: "proc",
    description: "who starts what with which arguments, for how long it lives and how it ends",
    option: None,
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    program::count(settings, Program::Processes);
}
