//! Threads as Firefox Profiler has them: one for each tid of a process, whatever its names were.

use std::cmp::Ordering;

use collector_common::ids::Tid;
use collector_common::record::{ExportMachine, ProcessId, Sample, Thread, ThreadId};

use super::roles::Role;

/// A thread under all of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) process: ProcessId,
    /// Whether it is the one that the process started with.
    pub(super) is_main: bool,
    pub(super) tid: Tid,
}

impl Track {
    fn of(machine: &ExportMachine, thread: &Thread) -> Self {
        let is_main = machine.process(thread.process).pid.0 == thread.tid.0;
        Self { process: thread.process, is_main, tid: thread.tid }
    }

    /// By process, with the main thread first.
    fn order(&self, other: &Self) -> Ordering {
        let key = |track: &Self| (track.process, !track.is_main, track.tid.0);
        key(self).cmp(&key(other))
    }
}

/// A sample of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TrackSample {
    pub(super) track: u32,
    time: u64,
    /// Its position among all samples.
    pub(super) at: u32,
}

/// All threads that have samples.
#[derive(Debug)]
pub(super) struct Tracks {
    list: Vec<Track>,
    /// By thread.
    of_threads: Vec<u32>,
}

impl Tracks {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut used = vec![false; machine.threads().len()];
        for sample in machine.samples().iter() {
            if let Some(used) = used.get_mut(sample.thread.0 as usize) {
                *used = true;
            }
        }
        let tracks = machine.threads().iter().map(|thread| Track::of(machine, thread));
        let mut list: Vec<Track> =
            tracks.clone().zip(used).filter(|(_, used)| *used).map(|(track, _)| track).collect();
        list.sort_unstable_by(Track::order);
        list.dedup();
        let of_threads = tracks.map(|track| list.partition_point(|other| other.order(&track).is_lt()) as u32);
        let of_threads = of_threads.collect();
        Self { list, of_threads }
    }

    pub(super) fn get(&self, track: u32) -> Option<&Track> {
        self.list.get(track as usize)
    }

    /// All samples: for each track those that belong to it, by time.
    pub(super) fn samples(&self, machine: &ExportMachine, roles: &[Role]) -> Vec<TrackSample> {
        let samples = machine.samples().iter().zip(0..);
        let mut samples: Vec<TrackSample> = samples
            .map(|(sample, at)| TrackSample {
                track: self.of_sample(&sample, roles),
                time: sample.time.0,
                at,
            })
            .collect();
        samples.sort_unstable();
        samples
    }

    /// Allocations belong to the first thread of their process: memory is freed by other threads too, so that this is where the
    /// format has them.
    fn of_sample(&self, sample: &Sample, roles: &[Role]) -> u32 {
        let own = self.of_thread(sample.thread);
        match (Role::of(roles, sample.kind), self.get(own)) {
            (Role::Allocated, Some(track)) => {
                self.list.partition_point(|other| other.process < track.process) as u32
            }
            _ => own,
        }
    }

    pub(super) fn of_thread(&self, thread: ThreadId) -> u32 {
        self.of_threads.get(thread.0 as usize).copied().unwrap_or(u32::MAX)
    }
}
