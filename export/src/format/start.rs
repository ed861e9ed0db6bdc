//! When a recording starts, for the formats whose times begin with it.

use collector_common::ids::Nanos;
use collector_common::record::ExportMachine;

/// The recording's start, or the first sample's time where that was before it.
pub(super) fn start(machine: &ExportMachine) -> Nanos {
    let sampled = machine.samples().span().map(|(first, _)| first);
    sampled.into_iter().fold(machine.system().start, Nanos::min)
}
