//! What is waited for by design: nanoseconds for which threads wait for locks of user code, by the stack that they wait with,
//! the lock, and who released it.

use super::{Scenario, time_off};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "locks",
    alias: "lock",
    description: "nanoseconds that threads wait for locks, by stack and lock, and who releases them",
    has_shortest_time: true,
    register,
};

fn register(settings: &mut SessionSettings) {
    time_off::register(settings, Program::Locks);
}
