//! What is waited for by design: nanoseconds for which threads wait for locks of user code, by the stack that they wait with,
//! the lock, and who released it; the same time by the stack of who released it; and waits for locks of the kernel.

use super::{Scenario, ScenarioOption, kernel_locks, lock_owners, time_off};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "locks",
    alias: "lock",
    description: "nanoseconds that threads wait for locks, by stack, and by that of who releases them",
    option: Some(ScenarioOption::Shortest(|settings| &mut settings.shortest.locks)),
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    time_off::register(settings, Program::Locks);
    lock_owners::register(settings);
    kernel_locks::register(settings);
}
