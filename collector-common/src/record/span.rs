//! Spans: what a program, a runtime or an embedder says to have been going on for a time, as a request, a collection of garbage or a
//! phase of a build. They lie on timelines, each of a thread, a process or the whole recording.
//!
//! On one timeline a span that lies within another is a part of it. Others may overlap, as requests that are served at once do.
//!
//! ```
//! use collector_common::ids::{Nanos, Pid};
//! use collector_common::record::{AttributeListId, ExportMachine, TimelineOwner};
//!
//! let mut machine = ExportMachine::default();
//! let process = machine.add_process(Pid(7), "server", None, Nanos(0));
//! let requests = machine.add_timeline("requests", TimelineOwner::Process(process));
//! let span = machine.begin_span(requests, "GET /", Nanos(1_000), AttributeListId::NONE);
//! machine.end_span(span, Nanos(4_000));
//! assert_eq!(machine.spans()[0].duration(), Some(3_000));
//! ```

use super::{AttributeListId, ExportMachine, ProcessId, ThreadId};
use crate::ids::Nanos;
use crate::intern::StringId;

/// Names a timeline in one [`ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimelineId(pub u32);

/// Whose spans lie on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimelineOwner {
    /// Nobody's in particular.
    Recording,
    /// A process's.
    Process(ProcessId),
    /// A thread's.
    Thread(ThreadId),
}

/// Where spans lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timeline {
    /// What it is called.
    pub name: StringId,
    /// Whose it is.
    pub owner: TimelineOwner,
}

/// Names a span in one [`ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u32);

/// Something that went on for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it lies.
    pub timeline: TimelineId,
    /// What went on.
    pub name: StringId,
    /// When it began, by `CLOCK_MONOTONIC`.
    pub start: Nanos,
    /// When it ended, which is not before its start; `None` where it went on when the recording ended.
    pub end: Option<Nanos>,
    /// Further facts.
    pub attributes: AttributeListId,
}

impl Span {
    /// Nanoseconds; `None` where it went on when the recording ended.
    pub fn duration(&self) -> Option<u64> {
        Some(self.end?.0 - self.start.0)
    }
}

/// Recording.
impl ExportMachine {
    /// The timeline of this name and owner, which is made where there is none.
    pub fn add_timeline(&mut self, name: &str, owner: TimelineOwner) -> TimelineId {
        let timeline = Timeline { name: self.strings.intern(name), owner };
        let next = TimelineId(self.timelines.len() as u32);
        let id = *self.timeline_index.entry(timeline).or_insert(next);
        if id == next {
            self.timelines.push(timeline);
        }
        id
    }

    /// Adds a span that goes on.
    pub fn begin_span(
        &mut self,
        timeline: TimelineId,
        name: &str,
        start: Nanos,
        attributes: AttributeListId,
    ) -> SpanId {
        let name = self.strings.intern(name);
        self.spans.push(Span { timeline, name, start, end: None, attributes });
        SpanId(self.spans.len() as u32 - 1)
    }

    /// Says when a span ended. One that would end before it began ends at once.
    pub fn end_span(&mut self, span: SpanId, end: Nanos) {
        if let Some(span) = self.spans.get_mut(span.0 as usize) {
            span.end = Some(end.max(span.start));
        }
    }
}

/// Reading.
impl ExportMachine {
    /// All timelines; the position is the [`TimelineId`].
    pub fn timelines(&self) -> &[Timeline] {
        &self.timelines
    }

    /// All spans, in the order in which they were added; the position is the [`SpanId`].
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Where a span lies; `None` for one of another machine.
    pub fn timeline_of(&self, span: &Span) -> Option<&Timeline> {
        self.timelines.get(span.timeline.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Pid, Tid};

    #[test]
    fn timelines_are_told_apart_by_name_and_owner() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "p", None, Nanos(0));
        let owners = [TimelineOwner::Recording, TimelineOwner::Process(process)];
        let mut add = |name| owners.map(|owner| machine.add_timeline(name, owner).0);
        assert_eq!([add("a"), add("b"), add("a")], [[0, 1], [2, 3], [0, 1]]);
    }

    #[test]
    fn a_part_of_the_threads_has_their_spans() {
        let mut machine = ExportMachine::default();
        let [kept, other] = [7, 8].map(|pid| machine.add_process(Pid(pid), "p", None, Nanos(0)));
        let mut thread = |process, tid| machine.intern_thread(process, Tid(tid), StringId::EMPTY);
        let [first, second] = [thread(kept, 7), thread(kept, 9)];
        thread(other, 8);
        let owners = [
            TimelineOwner::Recording,
            TimelineOwner::Process(kept),
            TimelineOwner::Process(other),
            TimelineOwner::Thread(first),
            TimelineOwner::Thread(second),
        ];
        for owner in owners {
            let timeline = machine.add_timeline("work", owner);
            machine.begin_span(timeline, "a", Nanos(1), AttributeListId::NONE);
        }
        let seen = machine.with_part(
            |_, thread| thread == first,
            |part| part.spans().iter().map(|span| span.timeline.0).collect::<Vec<_>>(),
        );
        assert_eq!((seen, machine.spans().len()), (vec![0, 1, 3], owners.len()));
    }

    #[test]
    fn processes_have_their_spans_and_those_of_their_threads() {
        let mut machine = ExportMachine::default();
        let [kept, bare, other] = [7, 8, 9].map(|pid| machine.add_process(Pid(pid), "p", None, Nanos(0)));
        let [own, others] = [kept, other].map(|it| machine.intern_thread(it, Tid(1), StringId::EMPTY));
        let owners = [
            TimelineOwner::Process(other),
            TimelineOwner::Thread(others),
            TimelineOwner::Thread(own),
            TimelineOwner::Process(bare),
            TimelineOwner::Recording,
        ];
        for owner in owners {
            let timeline = machine.add_timeline("work", owner);
            machine.begin_span(timeline, "a", Nanos(1), AttributeListId::NONE);
        }
        let seen = machine.with_processes(
            |_, process| process != other,
            |part| part.spans().iter().map(|span| span.timeline.0).collect::<Vec<_>>(),
        );
        assert_eq!((seen, machine.spans().len()), (vec![2, 3, 4], owners.len()));
    }

    #[test]
    fn a_span_ends_not_before_it_begins() {
        let mut machine = ExportMachine::default();
        let timeline = machine.add_timeline("work", TimelineOwner::Recording);
        let spans =
            [5, 9].map(|start| machine.begin_span(timeline, "a", Nanos(start), AttributeListId::NONE));
        machine.end_span(spans[1], Nanos(3));
        machine.end_span(SpanId(2), Nanos(3));
        let ends: Vec<_> = machine.spans().iter().map(|span| (span.end, span.duration())).collect();
        assert_eq!(ends, [(None, None), (Some(Nanos(9)), Some(0))]);
    }
}
