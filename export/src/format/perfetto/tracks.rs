//! Processes and threads of a recording in, tracks of a trace out.
//!
//! A process and a thread are a track each, told of at the time the process starts: a reader takes the second track of one pid for
//! one that is given anew (`protos/perfetto/trace/track_event/track_descriptor.proto`). Slices on one track end in the reverse
//! order of their beginnings, so that those of a kind of samples have a track of their own below the thread, and another of the same
//! name where they overlap.

use collector_common::ids::{Nanos, Tid};
use collector_common::intern::StringId;
use collector_common::record::{
    ExportMachine, ProcessId, SampleKindId, ThreadId, Timeline, TimelineId, TimelineOwner,
};

use super::lanes::{Lanes, Nesting};
use super::proto::{CounterDescriptor, ProcessDescriptor, SIZE_BYTES, ThreadDescriptor, TrackDescriptor};
use crate::table::Table;

/// A thread under all of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) process: ProcessId,
    pub(super) tid: Tid,
    /// The last one that it was sampled under.
    name: StringId,
    named: Nanos,
}

/// All threads that have samples, or spans.
#[derive(Debug)]
pub(super) struct Threads {
    list: Vec<Thread>,
    /// By thread of the recording.
    of_threads: Vec<u32>,
}

impl Threads {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let mut last: Vec<Option<Nanos>> = vec![None; machine.threads().len()];
        let spans = machine.spans().iter().filter_map(|span| match machine.timeline_of(span)?.owner {
            TimelineOwner::Thread(thread) => Some((thread, span.start)),
            TimelineOwner::Recording | TimelineOwner::Process(_) => None,
        });
        let samples = machine.samples().iter().map(|sample| (sample.thread, sample.time));
        for (thread, time) in samples.chain(spans) {
            if let Some(last) = last.get_mut(thread.0 as usize) {
                *last = (*last).max(Some(time));
            }
        }
        let (mut list, mut index) = (Vec::<Thread>::new(), Table::default());
        let of_threads = machine.threads().iter().zip(last).map(|(thread, last)| {
            let Some(named) = last else { return u32::MAX };
            let one = Thread { process: thread.process, tid: thread.tid, name: thread.name, named };
            let position = *index.entry((one.process, one.tid)).or_insert(list.len() as u32);
            match list.get_mut(position as usize) {
                Some(known) if known.named < named => *known = one,
                Some(_) => {}
                None => list.push(one),
            }
            position
        });
        let of_threads = of_threads.collect();
        Self { list, of_threads }
    }

    /// All of them; the position is what [`Self::position`] tells.
    pub(super) fn list(&self) -> &[Thread] {
        &self.list
    }

    /// Where a thread with samples or spans is in the list.
    pub(super) fn position(&self, thread: ThreadId) -> u32 {
        self.of_threads.get(thread.0 as usize).copied().unwrap_or(u32::MAX)
    }
}

/// Names a track in the whole trace: what kind of track it is, and a number.
const fn uuid(kind: u64, number: u64) -> u64 {
    kind << 48 | number
}

/// The track with what is told of the recording as a whole.
pub(super) const RECORDING: u64 = uuid(1, 0);

const fn of_process(process: ProcessId) -> u64 {
    uuid(2, process.0 as u64)
}

/// The track of a thread at a position of the list.
pub(super) const fn of_thread(position: u32) -> u64 {
    uuid(3, position as u64)
}

pub(super) fn recording() -> TrackDescriptor {
    TrackDescriptor { uuid: RECORDING, name: "recording".to_owned(), ..TrackDescriptor::default() }
}

pub(super) fn process(machine: &ExportMachine, id: ProcessId) -> TrackDescriptor {
    let process = machine.process(id);
    TrackDescriptor {
        uuid: of_process(id),
        process: Some(ProcessDescriptor {
            pid: Some(process.pid.0.cast_signed()),
            cmdline: arguments(machine, id),
            process_name: machine.string(process.name).to_owned(),
            start_timestamp_ns: process.start.0.cast_signed(),
        }),
        ..TrackDescriptor::default()
    }
}

/// Those of the last program that a process ran.
fn arguments(machine: &ExportMachine, id: ProcessId) -> Vec<String> {
    let end = machine.process(id).end.unwrap_or(Nanos(u64::MAX));
    let program = machine.program_at(id, end).map(|program| machine.program(program));
    let more = program.filter(|program| program.are_cut).map(|_| "...");
    let arguments = program.into_iter().flat_map(|program| machine.arguments(program));
    arguments.chain(more).map(str::to_owned).collect()
}

/// The track below a process with what is told of it.
pub(super) const fn about_process(process: ProcessId) -> u64 {
    uuid(5, process.0 as u64)
}

pub(super) fn about(process: ProcessId) -> TrackDescriptor {
    TrackDescriptor {
        uuid: about_process(process),
        parent_uuid: of_process(process),
        name: "process".to_owned(),
        ..TrackDescriptor::default()
    }
}

pub(super) fn thread(machine: &ExportMachine, position: u32, thread: &Thread) -> TrackDescriptor {
    TrackDescriptor {
        uuid: of_thread(position),
        thread: Some(ThreadDescriptor {
            pid: Some(machine.process(thread.process).pid.0.cast_signed()),
            tid: Some(thread.tid.0.into()),
            thread_name: machine.string(thread.name).to_owned(),
        }),
        ..TrackDescriptor::default()
    }
}

/// Tracks that are made as they are needed.
#[derive(Debug, Default)]
pub(super) struct Added {
    count: u64,
    /// By thread and kind.
    lanes: Table<(u32, SampleKindId), Beside>,
    counters: Table<(ProcessId, SampleKindId), Counter>,
    nests: Table<TimelineId, Beside>,
}

/// Tracks of one name, as many as slices on them need.
#[derive(Debug, Default)]
struct Beside {
    uuids: Vec<u64>,
    lanes: Lanes,
}

impl Beside {
    /// The track of a slice, and whether it is new, which then has a number of `count`.
    fn place(&mut self, slice: (u64, u64), nesting: Nesting, count: &mut u64) -> (u64, bool) {
        let (lane, is_new) = self.lanes.place(slice, nesting);
        if is_new {
            self.uuids.push(uuid(4, *count));
            *count += 1;
        }
        (self.uuids[lane], is_new)
    }
}

/// A track, and its last value.
#[derive(Debug)]
struct Counter {
    uuid: u64,
    value: i64,
}

impl Added {
    /// The track for a slice of a thread and kind, which is not before the last one that was asked for; and what tells of it if it
    /// is new.
    pub(super) fn lane(
        &mut self,
        thread: u32,
        kind: SampleKindId,
        name: &str,
        slice: (u64, u64),
    ) -> (u64, Option<TrackDescriptor>) {
        let lanes = self.lanes.entry((thread, kind)).or_default();
        let (uuid, is_new) = lanes.place(slice, Nesting::None, &mut self.count);
        if !is_new {
            return (uuid, None);
        }
        let (parent_uuid, name) = (of_thread(thread), name.to_owned());
        (uuid, Some(TrackDescriptor { uuid, name, parent_uuid, ..TrackDescriptor::default() }))
    }

    /// The track for a span, whose start is not before that of the last one that was asked for: one on which it lies in another, or in none.
    /// And what tells of the track if it is new.
    pub(super) fn nest(
        &mut self,
        id: TimelineId,
        (timeline, threads): (&Timeline, &Threads),
        name: &str,
        slice: (u64, u64),
    ) -> (u64, Option<TrackDescriptor>) {
        let nests = self.nests.entry(id).or_default();
        let (uuid, is_new) = nests.place(slice, Nesting::Inside, &mut self.count);
        if !is_new {
            return (uuid, None);
        }
        let parent_uuid = match timeline.owner {
            TimelineOwner::Recording => 0,
            TimelineOwner::Process(process) => of_process(process),
            TimelineOwner::Thread(thread) => of_thread(threads.position(thread)),
        };
        let name = name.to_owned();
        (uuid, Some(TrackDescriptor { uuid, name, parent_uuid, ..TrackDescriptor::default() }))
    }

    /// Adds to what a process has of a kind: the track, the sum, and what tells of the track if it is new. Where the sum has no room, there is
    /// another track, which goes on from 0.
    pub(super) fn count(
        &mut self,
        process: ProcessId,
        kind: SampleKindId,
        name: &str,
        value: i64,
    ) -> (u64, i64, Option<TrackDescriptor>) {
        let next = uuid(4, self.count);
        let counter = self.counters.entry((process, kind)).or_insert(Counter { uuid: next, value: 0 });
        *counter = match counter.value.checked_add(value) {
            Some(value) => Counter { value, ..*counter },
            None => Counter { uuid: next, value },
        };
        let descriptor = (counter.uuid == next).then(|| {
            self.count += 1;
            TrackDescriptor {
                uuid: next,
                parent_uuid: of_process(process),
                name: name.to_owned(),
                counter: Some(CounterDescriptor { unit: SIZE_BYTES }),
                ..TrackDescriptor::default()
            }
        });
        (counter.uuid, counter.value, descriptor)
    }
}
