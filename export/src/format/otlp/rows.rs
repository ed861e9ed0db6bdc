//! Samples that differ in nothing but their time and their value: a row each, as the format wants them to be combined.
//!
//! All that is kept is the order of the samples, 4 bytes for each; while they are sorted, 8 more for those of the largest group. Where
//! samples are in a file, there is another one meanwhile, with the samples in the order of their rows.

use std::cmp::Reverse;
use std::io;

use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, ProcessId, Sample, SampleKindId, Samples};

use crate::table::Table;

/// The most samples of a row: what is written at once.
const MOST: usize = 1 << 16;

/// Samples in the order of their process, kind and row, and in a row of their times.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    given: &'a Samples,
    positions: Vec<u32>,
    /// What has the positions, if it is not what was given.
    sorted: Option<Samples>,
}

/// The rows of one kind in one process: a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) process: ProcessId,
    pub(super) kind: SampleKindId,
    start: usize,
    end: usize,
}

/// What samples of a row have in common, but for the process and the kind.
fn key(sample: &Sample) -> impl Ord + use<> {
    (sample.stack, sample.thread, sample.cpu, sample.attributes)
}

impl<'a> Rows<'a> {
    /// The rows of samples of a machine, and their groups: the process with most samples first, since readers show the first profile
    /// first. Samples of unknown kinds are left out.
    pub(super) fn of(machine: &ExportMachine, given: &'a Samples) -> (Self, Vec<Group>) {
        let whole =
            |sample: &Sample| (machine.thread(sample.thread).process, sample.kind, key(sample), sample.time);
        let is_in_file = given.bytes_in_file() > 0;
        let sorted = is_in_file.then(|| given.sorted_by_key(whole));
        let samples = sorted.as_ref().unwrap_or(given);
        let kinds = machine.kinds().len();
        let group_of = |sample: &Sample| {
            let is_known = usize::from(sample.kind.0) < kinds;
            is_known.then(|| (machine.thread(sample.thread).process, sample.kind))
        };
        // Of those alone that there are, which may be few of all kinds in all processes.
        let mut counts: Table<(ProcessId, SampleKindId), usize> = Table::default();
        for group in samples.iter().filter_map(|sample| group_of(&sample)) {
            *counts.entry(group).or_default() += 1;
        }
        let groups = groups(&counts);
        let mut next = counts;
        for group in &groups {
            next.insert((group.process, group.kind), group.start);
        }
        let mut positions = vec![0; groups.last().map_or(0, |group| group.end)];
        for (sample, position) in samples.iter().zip(0..) {
            if let Some(next) = group_of(&sample).and_then(|group| next.get_mut(&group)) {
                positions[*next] = position;
                *next += 1;
            }
        }
        if sorted.is_none() {
            for group in &groups {
                sort(&mut positions[group.start..group.end], samples);
            }
        }
        (Self { given, positions, sorted }, groups)
    }

    /// What has the positions of the rows.
    pub(super) fn samples(&self) -> &Samples {
        self.sorted.as_ref().unwrap_or(self.given)
    }

    /// Tells whether all samples could be read.
    pub(super) fn check(&self) -> io::Result<()> {
        self.sorted.as_ref().map_or(Ok(()), Samples::check)
    }

    /// The rows of a group: positions of their samples, in pieces that are not too large.
    pub(super) fn get(&self, group: &Group) -> impl Iterator<Item = &[u32]> {
        let samples = self.samples();
        let key = |position: u32| key(&samples.at(position as usize));
        let rows = self.positions[group.start..group.end].chunk_by(move |&a, &b| key(a) == key(b));
        rows.flat_map(|row| row.chunks(MOST))
    }
}

/// Sorts the samples of a group by their row, and those of a row by time: first by their stack alone, so that of each sample is asked
/// only twice.
fn sort(positions: &mut [u32], samples: &Samples) {
    let mut by_stack: Vec<(StackId, u32)> =
        positions.iter().map(|&position| (samples.at(position as usize).stack, position)).collect();
    by_stack.sort_unstable();
    let mut own = Vec::new();
    let mut next = positions.iter_mut();
    for of_stack in by_stack.chunk_by(|a, b| a.0 == b.0) {
        own.extend(of_stack.iter().map(|&(_, position)| {
            let sample = samples.at(position as usize);
            (key(&sample), sample.time, position)
        }));
        own.sort_unstable();
        for ((.., position), place) in own.drain(..).zip(&mut next) {
            *place = position;
        }
    }
}

/// Groups, from the number of samples of each.
fn groups(counts: &Table<(ProcessId, SampleKindId), usize>) -> Vec<Group> {
    let mut of_processes: Table<ProcessId, usize> = Table::default();
    for ((process, _), count) in counts {
        *of_processes.entry(*process).or_default() += count;
    }
    let mut order: Vec<_> = counts.iter().map(|(&group, &count)| (group, count)).collect();
    let of_process = |process| Reverse(of_processes.get(&process).copied().unwrap_or_default());
    order.sort_unstable_by_key(|&((process, kind), _)| (of_process(process), process, kind));
    let mut end = 0;
    let groups = order.into_iter().map(|((process, kind), count)| {
        let start = end;
        end += count;
        Group { process, kind, start, end }
    });
    groups.collect()
}
