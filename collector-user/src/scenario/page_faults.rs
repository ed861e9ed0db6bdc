//! Which code meets pages that are not there: faults that memory alone answers, and faults that wait for a disk, by the
//! kernel's own counters. Plain perf events do it too.

use collector_common::event::EventFlags;

use super::Scenario;
use crate::session::SessionSettings;
use crate::source::Hook;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "page_faults",
    alias: "faults",
    description: "pages that were met absent, without and with reading from a disk, by stack",
    option: None,
    register,
};

/// The counters, of which each is a kind of sample. They share no fault.
const KINDS: [&str; 2] = ["minor-faults", "major-faults"];

pub(super) fn register(settings: &mut SessionSettings) {
    for name in KINDS {
        let mut hook = Hook::counter(name).unwrap_or_else(|| unreachable!("{name} is a counter's name"));
        if settings.events.iter().any(|other| other.trigger == hook.trigger) {
            continue;
        }
        hook.event.flags_mut().set(EventFlags::CALLSTACK, true);
        settings.events.push(hook);
    }
}
