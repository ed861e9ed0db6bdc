//! What samples of a kind become: the format has one table of samples and one of allocations for a thread, and markers for
//! whatever else happened.
//!
//! A sampling clock is the samples: that which is to be looked at first, or the first one, as samples of two would count the same time twice.
//! Where nothing was recorded by one, the first kind of occurrences is, so that there is a call
//! tree, and where none is of occurrences, the first kind of times is, whose samples are markers as well. The first kind of bytes are the allocations: further ones (what is still in use) would count the same bytes again.

use collector_common::record::{ExportMachine, SampleKind, SampleKindId, Unit};

/// What the samples of one kind become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Samples of the call tree.
    Sampled(Sampling),
    /// Allocations of bytes.
    Allocated,
    /// Markers; of kinds in nanoseconds for the time that begins at the sample's.
    Marked,
}

/// What samples of the call tree weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// The nanoseconds on a CPU that a value of 1 stands for.
    pub(super) period: u64,
    /// The value that has a weight of 1.
    pub(super) divisor: i64,
    /// Whether weights are milliseconds, not samples.
    pub(super) is_time: bool,
}

impl Sampling {
    const TIMES: Self = Self { period: 0, divisor: 1_000_000, is_time: true };

    /// Of counts, of which the greatest is as far from 0 as this.
    fn of_counts(period: u64, greatest: u64) -> Self {
        let fits = |divisor: &i64| greatest / divisor.unsigned_abs() < u64::from(i32::MAX.unsigned_abs());
        let mut divisors = (0..5).map(|power| 1000_i64.pow(power));
        Self { period, divisor: divisors.find(fits).unwrap_or(i64::MAX), is_time: false }
    }
}

impl Role {
    /// By kind.
    pub(super) fn of_kinds(machine: &ExportMachine) -> Vec<Self> {
        // Of kinds that there are samples of.
        let mut greatest: Vec<Option<u64>> = vec![None; machine.kinds().len()];
        for sample in machine.samples().iter() {
            if let Some(greatest) = greatest.get_mut(usize::from(sample.kind.0)) {
                *greatest = (*greatest).max(Some(sample.value.unsigned_abs()));
            }
        }
        let first = |test: fn(&SampleKind) -> bool| {
            let mut kinds = machine.kinds().iter().zip(&greatest);
            kinds.position(|(kind, greatest)| greatest.is_some() && test(kind))
        };
        let is_shown = |kind: &SampleKindId| machine.kinds().get(usize::from(kind.0)).is_some_and(is_clock);
        let shown = machine.shown_kind().filter(is_shown).map(|kind| usize::from(kind.0));
        let clock = shown.or_else(|| first(is_clock));
        let occurrences = match clock {
            Some(_) => None,
            None => first(|kind| kind.unit == Unit::Count),
        };
        let times = match first(|kind| kind.unit == Unit::Count) {
            Some(_) => None,
            None => first(|kind| kind.unit == Unit::Nanoseconds),
        };
        let bytes = first(|kind| kind.unit == Unit::Bytes);
        let counts = |period, position: usize| {
            let greatest = greatest.get(position).copied().flatten().unwrap_or_default();
            Self::Sampled(Sampling::of_counts(period, greatest))
        };
        let roles = machine.kinds().iter().enumerate().map(|(position, kind)| match kind {
            kind if clock == Some(position) => counts(kind.period, position),
            _ if occurrences == Some(position) => counts(0, position),
            _ if times == Some(position) => Self::Sampled(Sampling::TIMES),
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
