//! Which system calls there are: how often, how many fail, and for how long, counted in the kernel; the slowest with their
//! stacks.

use collector_common::event::{Extent, FieldKind, Width};

use super::Scenario;
use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "syscalls",
    alias: "sys",
    description: "system calls: how often, errors, histograms of how long; the slowest by stack",
    option: None,
    gives_way_to: &[],
    register,
};

fn register(settings: &mut SessionSettings) {
    program::record(settings, Program::SystemCalls, fields());
}

/// The fields of `collector_common::wire::Call`.
fn fields() -> [Field; 3] {
    [
        ("duration_ns", "u64", FieldKind::Unsigned(Width::W64), Extent::One),
        ("returned", "i64", FieldKind::Signed(Width::W64), Extent::One),
        ("slot", "u32", FieldKind::Unsigned(Width::W32), Extent::One),
    ]
}
