//! How long what a sample tells of lasted.

use collector_common::record::{ESTIMATED, ExportMachine, Sample, Unit};

/// The nanoseconds that begin with a sample, of a kind that is in nanoseconds. What is estimated lasted for some other time.
pub(super) fn duration(machine: &ExportMachine, sample: &Sample) -> Option<u64> {
    let kind = machine.kinds().get(usize::from(sample.kind.0))?;
    let mut attributes = machine.attributes().get(sample.attributes).iter();
    let is_duration = kind.unit == Unit::Nanoseconds
        && !kind.is_sum
        && !attributes
            .any(|&(name, value)| machine.string(name) == ESTIMATED && machine.string(value) == "yes");
    is_duration.then_some(sample.value.max(0).unsigned_abs())
}
