//! Samples in, those of each kind and thread by time out, without holding all of them: the first pass over them counts, and each further
//! one takes as many series as there is room for. One that there is no room for goes through the recording in the order of time.

use std::ops::Range;

use collector_common::record::{ExportMachine, Happened, Sample, SampleKindId, ThreadId};

use crate::table::Table;

/// How many samples are held at once, by 16 bytes.
pub(super) const AT_ONCE: usize = 1 << 20;

/// Samples of one kind and thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    pub(super) kind: SampleKindId,
    /// The thread, under its last name.
    pub(super) thread: ThreadId,
    /// The sum of their values, which may have no room in 64 bits.
    pub(super) total: i128,
    count: usize,
    /// The last sample: its time and position.
    last: (u64, u32),
}

/// All series of a recording.
pub(super) struct AllSeries<'a> {
    machine: &'a ExportMachine,
    /// Those with the largest sums first; of kinds in their own order.
    list: Vec<Series>,
    /// By kind and thread: the position in the list.
    index: Table<(SampleKindId, ThreadId), u32>,
}

/// Samples of a few series: the series, the time, and the position of each, sorted.
type Held = Vec<(u32, u64, u32)>;

impl<'a> AllSeries<'a> {
    pub(super) fn of(machine: &'a ExportMachine) -> Self {
        let mut found: Vec<Series> = Vec::new();
        let mut of_threads = Table::default();
        let mut index: Table<(SampleKindId, ThreadId), u32> = Table::default();
        for (sample, at) in counted(machine) {
            let next = found.len() as u32;
            let position = *index.entry((sample.kind, sample.thread)).or_insert_with(|| {
                let thread = machine.thread(sample.thread);
                *of_threads.entry((sample.kind, thread.process, thread.tid)).or_insert(next)
            });
            let last = (sample.time.0, at);
            let Sample { kind, thread, .. } = sample;
            if position == next {
                found.push(Series { kind, thread, total: 0, count: 0, last });
            }
            let Some(series) = found.get_mut(position as usize) else { continue };
            series.count += 1;
            series.total += i128::from(sample.value);
            if series.last <= last {
                (series.last, series.thread) = (last, thread);
            }
        }
        let mut order: Vec<u32> = (0..).take(found.len()).collect();
        order.sort_by_key(|&at| {
            let series = found[at as usize];
            let thread = machine.thread(series.thread);
            (series.kind, -series.total, thread.process, thread.tid.0)
        });
        let mut places = vec![0; found.len()];
        for (&at, place) in order.iter().zip(0..) {
            places[at as usize] = place;
        }
        for position in index.values_mut() {
            *position = places[*position as usize];
        }
        let list = order.iter().map(|&at| found[at as usize]).collect();
        Self { machine, list, index }
    }

    /// Calls back for each series with its samples, in the order of the list. Of several at once so many samples are held.
    pub(super) fn each<E>(
        &self,
        at_once: usize,
        mut call: impl FnMut(&Series, &Samples<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = 0;
        while let Some(first) = self.list.get(next) {
            let mut count = first.count;
            let further = self.list[next + 1..].iter().take_while(|series| {
                count = count.saturating_add(series.count);
                count <= at_once
            });
            let group = next..next + 1 + further.count();
            next = group.end;
            if first.count > at_once {
                call(first, &Samples { all: self, of: Source::Through(group.start as u32) })?;
                continue;
            }
            let held = self.held(&group);
            for own in held.chunk_by(|a, b| a.0 == b.0) {
                let series = &self.list[own[0].0 as usize];
                call(series, &Samples { all: self, of: Source::Held(own) })?;
            }
        }
        Ok(())
    }

    fn held(&self, group: &Range<usize>) -> Held {
        let samples = self.list[group.clone()].iter().map(|series| series.count).sum();
        let mut held = Vec::with_capacity(samples);
        for (sample, at) in counted(self.machine) {
            if let Some(series) = self.position(&sample).filter(|at| group.contains(&(*at as usize))) {
                held.push((series, sample.time.0, at));
            }
        }
        held.sort_unstable();
        held
    }

    fn position(&self, sample: &Sample) -> Option<u32> {
        self.index.get(&(sample.kind, sample.thread)).copied()
    }
}

/// The samples that are shown, with their positions: a weight is what an axis is made of.
fn counted(machine: &ExportMachine) -> impl Iterator<Item = (Sample, u32)> + '_ {
    machine.samples().iter().zip(0..).filter(|(sample, _)| sample.value > 0)
}

enum Source<'a> {
    Held(&'a [(u32, u64, u32)]),
    /// Those of a series that is not held.
    Through(u32),
}

/// The samples of a series.
pub(super) struct Samples<'a> {
    all: &'a AllSeries<'a>,
    of: Source<'a>,
}

impl Samples<'_> {
    /// Calls back for each, by time.
    pub(super) fn each<E>(&self, mut call: impl FnMut(&Sample) -> Result<(), E>) -> Result<(), E> {
        let machine = self.all.machine;
        match self.of {
            Source::Held(held) => held
                .iter()
                .filter_map(|&(.., at)| machine.samples().get(at as usize))
                .try_for_each(|it| call(&it)),
            Source::Through(series) => {
                for (_, happened) in machine.in_time_order() {
                    if let Happened::Sampled(sample) | Happened::SampledEvent(sample, _) = happened
                        && sample.value > 0
                        && self.all.position(&sample) == Some(series)
                    {
                        call(&sample)?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use collector_common::ids::{Nanos, Pid, Tid};
    use collector_common::record::Unit;

    use super::*;

    /// A sample's time, position and value.
    type Plain = (u64, u32, i64);

    /// Kinds, threads, and samples of these with times that repeat, not in order.
    fn recording() -> ExportMachine {
        let mut machine = ExportMachine::default();
        let kinds = ["cpu", "bytes"].map(|name| machine.add_kind(name, Unit::Count, 1));
        let process = machine.add_process(Pid(7), "p", None, Nanos(0));
        // The first two are one thread under two names.
        let threads = [(8, "a"), (8, "b"), (9, "c"), (10, "d")].map(|(tid, name)| {
            let name = machine.intern_string(name);
            machine.intern_thread(process, Tid(tid), name)
        });
        let mut state = 1_u64;
        for _ in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let of = |shift: u32, count: u64| (state >> shift) % count;
            machine.add_sample(&Sample {
                time: Nanos(of(40, 500)),
                thread: threads[(of(33, 11) as usize).min(3)],
                kind: kinds[of(50, 2) as usize],
                value: of(20, 100).cast_signed() - 5,
                ..Sample::default()
            });
        }
        machine
    }

    /// However many are held at once, they are the same, as a plain sort of all has them.
    #[test]
    fn series_are_the_same_however_many_are_held() {
        let machine = recording();
        let mut expected: BTreeMap<(SampleKindId, u32), Vec<Plain>> = BTreeMap::new();
        for (sample, at) in machine.samples().iter().zip(0..).filter(|(sample, _)| sample.value > 0) {
            let tid = machine.thread(sample.thread).tid.0;
            expected.entry((sample.kind, tid)).or_default().push((sample.time.0, at, sample.value));
        }
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|((kind, tid), mut samples)| {
                samples.sort_unstable();
                let total: i128 = samples.iter().map(|(.., value)| i128::from(*value)).sum();
                let values: Vec<_> = samples.into_iter().map(|(time, _, value)| (time, value)).collect();
                (kind, -total, tid, values)
            })
            .collect();
        expected.sort();
        for at_once in [0, 1, 700, 2_000, usize::MAX] {
            let all = AllSeries::of(&machine);
            let mut found = Vec::new();
            let Ok(()) = all.each(at_once, |series, samples| {
                let mut values = Vec::new();
                samples.each(|sample| {
                    values.push((sample.time.0, sample.value));
                    Ok::<_, Infallible>(())
                })?;
                found.push((series.kind, -series.total, machine.thread(series.thread).tid.0, values));
                Ok::<_, Infallible>(())
            });
            assert_eq!(found, expected, "{at_once}");
        }
    }
}
