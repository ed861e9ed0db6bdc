//! Threads as Firefox Profiler has them: one for each tid of a process, whatever its names were.

use std::cmp::Ordering;

use collector_common::ids::Tid;
use collector_common::record::{ExportMachine, ProcessId, Sample, Thread, ThreadId, TimelineOwner};

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

/// A sample or a span of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OfTrack {
    pub(super) track: u32,
    time: u64,
    /// Its position among all samples, or all spans.
    pub(super) at: u32,
}

/// All threads that have samples or spans, and the main threads of processes that have spans alone.
#[derive(Debug)]
pub(super) struct Tracks {
    list: Vec<Track>,
    /// By thread.
    of_threads: Vec<u32>,
}

impl Tracks {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut used = vec![false; machine.threads().len()];
        let timelines = machine.spans().iter().filter_map(|span| machine.timeline_of(span));
        let with_spans = timelines.filter_map(|timeline| match timeline.owner {
            TimelineOwner::Thread(thread) => Some(thread),
            TimelineOwner::Recording | TimelineOwner::Process(_) => None,
        });
        for thread in machine.samples().iter().map(|sample| sample.thread).chain(with_spans) {
            if let Some(used) = used.get_mut(thread.0 as usize) {
                *used = true;
            }
        }
        let tracks = machine.threads().iter().map(|thread| Track::of(machine, thread));
        let mut list: Vec<Track> =
            tracks.clone().zip(used).filter(|(_, used)| *used).map(|(track, _)| track).collect();
        list.sort_unstable_by(Track::order);
        list.dedup();
        Self::add_main_threads(&mut list, machine);
        let of_threads = tracks.map(|track| list.partition_point(|other| other.order(&track).is_lt()) as u32);
        let of_threads = of_threads.collect();
        Self { list, of_threads }
    }

    /// Of processes that have spans, and no thread.
    fn add_main_threads(list: &mut Vec<Track>, machine: &ExportMachine) {
        let mut is_added = vec![true; machine.processes().len()];
        for span in machine.spans() {
            if let Some(TimelineOwner::Process(process)) = machine.timeline_of(span).map(|it| it.owner)
                && let Some(is_added) = is_added.get_mut(process.0 as usize)
            {
                *is_added = false;
            }
        }
        for track in list.iter() {
            is_added[track.process.0 as usize] = true;
        }
        let processes = machine.processes().iter().zip(0..).zip(is_added);
        list.extend(processes.filter(|(_, is_added)| !is_added).map(|((process, id), _)| Track {
            process: ProcessId(id),
            is_main: true,
            tid: Tid(process.pid.0),
        }));
        list.sort_unstable_by(Track::order);
    }

    /// All of them, by process, with the main thread first.
    pub(super) fn list(&self) -> &[Track] {
        &self.list
    }

    pub(super) fn get(&self, track: u32) -> Option<&Track> {
        self.list.get(track as usize)
    }

    /// All samples: for each track those that belong to it, by time.
    pub(super) fn samples(&self, machine: &ExportMachine, roles: &[Role]) -> Vec<OfTrack> {
        let samples = machine.samples().iter().zip(0..);
        let mut samples: Vec<OfTrack> = samples
            .map(|(sample, at)| OfTrack { track: self.of_sample(&sample, roles), time: sample.time.0, at })
            .collect();
        samples.sort_unstable();
        samples
    }

    /// All spans: for each track those that belong to it, by their beginnings. Those of a process are its first thread's, and those of nobody
    /// in particular the first of all threads'.
    pub(super) fn spans(&self, machine: &ExportMachine) -> Vec<OfTrack> {
        let spans = machine.spans().iter().zip(0..).filter_map(|(span, at)| {
            let track = match machine.timeline_of(span)?.owner {
                TimelineOwner::Recording => 0,
                TimelineOwner::Process(process) => self.first_of(process),
                TimelineOwner::Thread(thread) => self.of_thread(thread),
            };
            Some(OfTrack { track, time: span.start.0, at })
        });
        let mut spans: Vec<OfTrack> = spans.collect();
        spans.sort_unstable();
        spans
    }

    /// Where a process's first thread is.
    fn first_of(&self, process: ProcessId) -> u32 {
        self.list.partition_point(|track| track.process < process) as u32
    }

    /// Allocations belong to the first thread of their process: memory is freed by other threads too, so that this is where the
    /// format has them.
    fn of_sample(&self, sample: &Sample, roles: &[Role]) -> u32 {
        let own = self.of_thread(sample.thread);
        match (Role::of(roles, sample.kind), self.get(own)) {
            (Role::Allocated, Some(track)) => self.first_of(track.process),
            _ => own,
        }
    }

    pub(super) fn of_thread(&self, thread: ThreadId) -> u32 {
        self.of_threads.get(thread.0 as usize).copied().unwrap_or(u32::MAX)
    }
}
