//! Which code meets pages that are not there: faults that memory alone answers, and faults that wait for a disk, by the
//! kernel's own counters. Programs at those count all and, where there are many, record some; without programs in the kernel, plain
//! perf events record each.

use collector_common::event::{Extent, FieldKind, Width};

use super::Scenario;
use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::{Program, Trigger};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "page_faults",
    alias: "faults",
    description: "pages that were met absent, without and with reading from a disk, by stack",
    option: None,
    gives_way_to: &COUNTERS,
    register,
};

/// An event that records each fault has them all.
pub(super) const COUNTERS: [&str; 2] = [Program::MinorFaults.name(), Program::MajorFaults.name()];

/// Of each a kind of sample. They share no fault.
const KINDS: [Program; 2] = [Program::MinorFaults, Program::MajorFaults];

pub(super) fn register(settings: &mut SessionSettings) {
    for program in KINDS {
        let counter = Trigger::Program(program).plain();
        if settings.events.iter().all(|hook| hook.trigger != counter) {
            program::record(settings, program, fields());
        }
    }
}

/// The field of a fault's data: how many faults it stands for.
fn fields() -> [Field; 1] {
    [("weight", "u64", FieldKind::Unsigned(Width::W64), Extent::One)]
}
