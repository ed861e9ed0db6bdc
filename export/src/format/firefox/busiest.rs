//! What each thread has of all that was recorded in, the threads that are shown first out: the web application goes by CPU time alone, and
//! takes the first ones where nothing tells of that.

use collector_common::record::{ExportMachine, Sample, SampleKindId};

/// The most that are shown, as many as by the application itself.
const MOST: usize = 15;

/// Below this part of what the busiest one has, threads are idle to the application; so many are shown all the same.
const IDLE: f64 = 0.05;
const FEW: usize = 10;

/// What a thread has of the kind that is shown first, and of all other kinds and spans, of which each counts the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    of_first: f64,
    of_others: f64,
}

/// All that was recorded.
pub(super) struct Totals {
    first: Option<SampleKindId>,
    /// By kind.
    values: Vec<f64>,
    spans: usize,
}

impl Totals {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut values = vec![0.0; machine.kinds().len()];
        for sample in machine.samples().iter() {
            if let Some(value) = values.get_mut(usize::from(sample.kind.0)) {
                *value += sample.value.unsigned_abs() as f64;
            }
        }
        Self { first: machine.shown_kind(), values, spans: machine.spans().len() }
    }

    /// The share of so many spans.
    pub(super) fn of_spans(&self, spans: usize) -> Share {
        Share { of_first: 0.0, of_others: part(spans as f64, self.spans as f64) }
    }

    /// Adds a sample to its thread's share.
    pub(super) fn add(&self, share: &mut Share, sample: &Sample) {
        let total = self.values.get(usize::from(sample.kind.0)).copied().unwrap_or_default();
        let part = part(sample.value.unsigned_abs() as f64, total);
        if self.first == Some(sample.kind) {
            share.of_first += part;
        } else {
            share.of_others += part;
        }
    }
}

fn part(value: f64, total: f64) -> f64 {
    if total > 0.0 { value / total } else { 0.0 }
}

/// Positions of the threads with the most, the busiest first.
pub(super) fn busiest(shares: impl Iterator<Item = Share>) -> Vec<usize> {
    let mut shares: Vec<(usize, Share)> = shares.enumerate().collect();
    let order = |a: &Share, b: &Share| {
        b.of_first.total_cmp(&a.of_first).then_with(|| b.of_others.total_cmp(&a.of_others))
    };
    shares.sort_by(|(_, a), (_, b)| order(a, b));
    let least = shares.first().map_or(0.0, |(_, busiest)| busiest.of_first * IDLE);
    let busy = shares.iter().take_while(|(_, share)| share.of_first > 0.0 && share.of_first >= least).count();
    shares.iter().take(busy.clamp(FEW, MOST)).map(|(position, _)| *position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(list: &[(f64, f64)]) -> Vec<usize> {
        busiest(list.iter().map(|&(of_first, of_others)| Share { of_first, of_others }))
    }

    #[test]
    fn all_are_shown_where_they_are_few() {
        assert_eq!(shares(&[(0.0, 0.1), (0.2, 0.0), (0.0, 0.9), (0.8, 0.0), (0.0, 0.0)]), [3, 1, 2, 0, 4]);
        assert_eq!(shares(&[]), [0; 0]);
    }

    #[test]
    fn of_many_those_that_are_idle_are_not() {
        let busy: Vec<_> = (0..40).map(|at| (f64::from(at) / 40.0, 0.0)).collect();
        assert_eq!(shares(&busy), (25..40).rev().collect::<Vec<_>>(), "no more than the application shows");
        let idle: Vec<_> = (0..40).map(|at| (if at < 12 { 0.5 } else { 0.02 }, 0.0)).collect();
        assert_eq!(shares(&idle), (0..12).collect::<Vec<_>>());
    }
}
