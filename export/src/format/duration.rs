//! How long what a sample tells of lasted.

use collector_common::record::{ESTIMATED, ExportMachine, Sample, Unit};

/// The nanoseconds that begin with a sample, of a kind that is in nanoseconds. What is estimated lasted for some other time.
pub(super) fn duration(machine: &ExportMachine, sample: &Sample) -> Option<u64> {
    let kind = machine.kinds().get(usize::from(sample.kind.0))?;
    let is_duration = kind.unit == Unit::Nanoseconds
        && !kind.is_sum
        && machine.attribute(sample.attributes, ESTIMATED).as_deref() != Some("yes");
    is_duration.then_some(sample.value.max(0).unsigned_abs())
}
