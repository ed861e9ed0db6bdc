//! What samples of a kind become: the format has one table of samples and one of allocations for a thread, and markers for
//! whatever else happened.
//!
//! Sampling clocks are the samples; where nothing was recorded by one, the first kind of occurrences is, so that there is a call
//! tree. The first kind of bytes are the allocations: further ones (what is still in use) would count the same bytes again.

use collector_common::record::{ExportMachine, SampleKind, SampleKindId, Unit};

/// What the samples of one kind become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Samples of the call tree, with the nanoseconds on a CPU that a value of 1 stands for.
    Sampled { period: u64 },
    /// Allocations of bytes.
    Allocated,
    /// Markers; of kinds in nanoseconds for the time that begins at the sample's.
    Marked,
}

impl Role {
    /// By kind.
    pub(super) fn of_kinds(machine: &ExportMachine) -> Vec<Self> {
        let mut used = vec![false; machine.kinds().len()];
        for sample in machine.samples().iter() {
            if let Some(used) = used.get_mut(usize::from(sample.kind.0)) {
                *used = true;
            }
        }
        let first = |test: fn(&SampleKind) -> bool| {
            let mut kinds = machine.kinds().iter().zip(&used);
            kinds.position(|(kind, &used)| used && test(kind))
        };
        let occurrences = match first(is_clock) {
            Some(_) => None,
            None => first(|kind| kind.unit == Unit::Count),
        };
        let bytes = first(|kind| kind.unit == Unit::Bytes);
        let roles = machine.kinds().iter().enumerate().map(|(position, kind)| match kind {
            kind if is_clock(kind) => Self::Sampled { period: kind.period },
            _ if occurrences == Some(position) => Self::Sampled { period: 0 },
            _ if bytes == Some(position) => Self::Allocated,
            _ => Self::Marked,
        });
        roles.collect()
    }

    /// Of a sample's kind.
    pub(super) fn of(roles: &[Self], kind: SampleKindId) -> Self {
        roles.get(usize::from(kind.0)).copied().unwrap_or(Self::Marked)
    }
}

fn is_clock(kind: &SampleKind) -> bool {
    kind.unit == Unit::Count && kind.period > 1
}
