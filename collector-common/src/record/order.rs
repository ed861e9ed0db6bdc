//! What happened, in the order of time.
//!
//! What is sorted at once is limited: of a long recording, spans of time that hold about as many things as that are sorted one after
//! the other. For each of them the times of those samples are looked through that lie in chunks with any of its time, and all others.

use std::vec;

use super::{EventRecordId, ExportMachine, ModuleMapping, ProcessId, ProgramId, Sample, Span, SpanId};
use crate::ids::Nanos;

/// Things that are sorted at once, if they are not of one moment: 16 bytes each.
const SORTED_AT_ONCE: usize = 1 << 19;

/// Something that happened at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened<'a> {
    /// A process was made, or was there when the recording began (time 0).
    ProcessStarted(ProcessId),
    /// A process executed a program, or ran it when the recording began (time 0).
    Executed(ProgramId),
    /// A module was mapped, or was there when the recording began (time 0): its position in
    /// [`ExportMachine::mappings`], and the mapping.
    Mapped(u32, &'a ModuleMapping),
    /// A span began; when it ends, it tells itself.
    SpanBegan(SpanId, &'a Span),
    /// A sample was taken.
    Sampled(Sample),
    /// A sample was taken of a raw event, which is there, too: for who writes both it is one thing.
    SampledEvent(Sample, EventRecordId),
    /// A raw event happened that there is no sample of.
    Event(EventRecordId),
    /// A process's last thread ended.
    ProcessEnded(ProcessId),
}

/// What is where, in the order of those that happened at once: a sample's process and mapping are there before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Started(u32),
    Executed(u32),
    Mapped(u32),
    SpanBegan(u32),
    Sampled(u32),
    Event(u32),
    Ended(u32),
}

impl ExportMachine {
    /// Everything with its time, oldest first: programs, mappings and ends of a process not before it was made, whatever their own times
    /// are. Needs about 8 MiB, and a bit for each raw event.
    pub fn in_time_order(&self) -> impl ExactSizeIterator<Item = (Nanos, Happened<'_>)> {
        self.in_order_of(SORTED_AT_ONCE)
    }

    fn in_order_of(&self, at_once: usize) -> InTimeOrder<'_> {
        let sampled = Sampled::of(self);
        let left = self.samples().len() + self.others(&sampled).count();
        let ends = self.windows(&sampled, left, at_once);
        InTimeOrder {
            machine: self,
            sampled,
            left,
            ends: ends.into_iter(),
            since: None,
            span: Vec::new(),
            next: 0,
        }
    }

    /// Where spans of time end that have about as many entries as are sorted at once; the last one ends never.
    fn windows(&self, sampled: &Sampled, count: usize, at_once: usize) -> Vec<Option<Nanos>> {
        /// Times of a span that are looked at to find its end.
        const LOOKED_AT: usize = 64;
        // They do not come out alike: half as many are aimed at.
        let spans = if count <= at_once { 1 } else { count / (at_once / 2).max(1) + 1 };
        let mut ends = Vec::new();
        if spans > 1 {
            let step = (count / (spans * LOOKED_AT)).max(1);
            let all = self.entries(sampled, None, None);
            let mut times: Vec<Nanos> = all.step_by(step).map(|(time, _)| time).collect();
            times.sort_unstable();
            ends.extend(
                (1..spans).filter_map(|span| times.get(span * times.len() / spans).copied()).map(Some),
            );
            ends.dedup();
        }
        ends.push(None);
        ends
    }

    /// What is since `since` and before `end`, where these are given, and more, in no order.
    fn entries<'a>(
        &'a self,
        sampled: &'a Sampled,
        since: Option<Nanos>,
        end: Option<Nanos>,
    ) -> impl Iterator<Item = (Nanos, Entry)> + 'a {
        let samples = self.samples().times_about(since, end).map(|(at, time)| (time, Entry::Sampled(at)));
        samples.chain(self.others(sampled))
    }

    /// Everything but samples, in no order.
    fn others<'a>(&'a self, sampled: &'a Sampled) -> impl Iterator<Item = (Nanos, Entry)> + 'a {
        let processes = || self.processes().iter().zip(0..);
        let started = processes().map(|(process, at)| (process.start, Entry::Started(at)));
        let start =
            |process: ProcessId| self.processes().get(process.0 as usize).map(|process| process.start);
        let not_before = move |process, time: Nanos| start(process).map_or(time, |start| time.max(start));
        let ended = processes().filter_map(move |(process, at)| {
            Some((not_before(ProcessId(at), process.end?), Entry::Ended(at)))
        });
        let executed = self
            .programs()
            .iter()
            .zip(0..)
            .map(move |(program, at)| (not_before(program.process, program.since), Entry::Executed(at)));
        let mapped = self
            .mappings()
            .iter()
            .zip(0..)
            .map(move |(mapping, at)| (not_before(mapping.process, mapping.since), Entry::Mapped(at)));
        let spans = self.spans().iter().zip(0..).map(|(span, at)| (span.start, Entry::SpanBegan(at)));
        let records = self.event_records();
        let events = records.times().iter().zip(0..).filter(|(_, at)| !sampled.has(*at));
        let events = events.filter(|(_, at)| !records.is_removed(EventRecordId(*at)));
        let events = events.map(|(&time, at)| (time, Entry::Event(at)));
        started.chain(executed).chain(mapped).chain(spans).chain(events).chain(ended)
    }

    fn happened(&self, entry: Entry) -> Happened<'_> {
        match entry {
            Entry::Started(at) => Happened::ProcessStarted(ProcessId(at)),
            Entry::Executed(at) => Happened::Executed(ProgramId(at)),
            Entry::Mapped(at) => Happened::Mapped(at, &self.mappings()[at as usize]),
            Entry::SpanBegan(at) => Happened::SpanBegan(SpanId(at), &self.spans()[at as usize]),
            Entry::Sampled(at) => match self.samples().with_record(at as usize) {
                (sample, Some(record)) => Happened::SampledEvent(sample, record),
                (sample, None) => Happened::Sampled(sample),
            },
            Entry::Event(at) => Happened::Event(EventRecordId(at)),
            Entry::Ended(at) => Happened::ProcessEnded(ProcessId(at)),
        }
    }
}

/// The raw events that there are samples of, a bit each.
struct Sampled(Vec<u64>);

impl Sampled {
    fn of(machine: &ExportMachine) -> Self {
        let mut bits = vec![0_u64; machine.event_records().len().div_ceil(64)];
        if bits.is_empty() {
            return Self(bits);
        }
        for EventRecordId(at) in machine.samples().records() {
            if let Some(bits) = bits.get_mut(at as usize / 64) {
                *bits |= 1 << (at % 64);
            }
        }
        Self(bits)
    }

    fn has(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }
}

struct InTimeOrder<'a> {
    machine: &'a ExportMachine,
    sampled: Sampled,
    left: usize,
    /// Where the spans end that are not sorted yet.
    ends: vec::IntoIter<Option<Nanos>>,
    /// Where the last one that is ended; `None` before the first.
    since: Option<Nanos>,
    /// The span that is given, and where in it; kept for its memory.
    span: Vec<(Nanos, Entry)>,
    next: usize,
}

impl<'a> Iterator for InTimeOrder<'a> {
    type Item = (Nanos, Happened<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(&(time, entry)) = self.span.get(self.next) {
                self.left -= 1;
                self.next += 1;
                return Some((time, self.machine.happened(entry)));
            }
            let end = self.ends.next()?;
            let since = self.since;
            let is_within =
                |time: Nanos| since.is_none_or(|since| time >= since) && end.is_none_or(|end| time < end);
            let entries =
                self.machine.entries(&self.sampled, since, end).filter(|(time, _)| is_within(*time));
            self.span.clear();
            self.span.extend(entries);
            self.span.sort_unstable();
            (self.next, self.since) = (0, end);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for InTimeOrder<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Avma, FileOffset, Pid, Tid};
    use crate::intern::{StackId, StringId};
    use crate::record::{AttributeListId, EventKindId, EventRecord, ModuleId, SampleKindId, TimelineOwner};

    #[test]
    fn things_of_one_moment_come_as_they_need_each_other() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "p", None, Nanos(50));
        let thread = machine.intern_thread(process, Tid(7), StringId::EMPTY);
        let mapping = ModuleMapping {
            process,
            module: ModuleId::KERNEL,
            start: Avma(0),
            end: Avma(1),
            file_offset: FileOffset(0),
            bias: 0,
            since: Nanos(50),
        };
        let sample = |time| Sample {
            time: Nanos(time),
            thread,
            stack: StackId::EMPTY,
            cpu: 0,
            kind: SampleKindId(0),
            value: 1,
            attributes: AttributeListId::NONE,
        };
        for time in [90, 50, 70] {
            machine.add_sample(&sample(time));
        }
        machine.end_process(process, Nanos(90));
        machine.add_mapping(mapping);
        let program = machine.add_program(process, Nanos(50), "p");
        let early = ModuleMapping { since: Nanos(3), ..mapping };
        machine.add_mapping(early);
        let short = machine.add_process(Pid(8), "q", None, Nanos(95));
        machine.end_process(short, Nanos(94));
        let timeline = machine.add_timeline("work", TimelineOwner::Process(process));
        let span = machine.begin_span(timeline, "part", Nanos(50), AttributeListId::NONE);
        machine.end_span(span, Nanos(60));
        let part = machine.spans()[0];
        let told: Vec<_> = machine.in_time_order().collect();
        let expected = [
            (50, Happened::ProcessStarted(process)),
            (50, Happened::Executed(program)),
            (50, Happened::Mapped(0, &mapping)),
            (50, Happened::Mapped(1, &early)),
            (50, Happened::SpanBegan(span, &part)),
            (50, Happened::Sampled(sample(50))),
            (70, Happened::Sampled(sample(70))),
            (90, Happened::Sampled(sample(90))),
            (90, Happened::ProcessEnded(process)),
            (95, Happened::ProcessStarted(short)),
            (95, Happened::ProcessEnded(short)),
        ];
        assert_eq!(told, expected.map(|(time, happened)| (Nanos(time), happened)));
    }

    #[test]
    fn an_event_and_its_sample_are_one_thing() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "p", None, Nanos(0));
        let thread = machine.intern_thread(process, Tid(7), StringId::EMPTY);
        let record =
            |time| EventRecord { time: Nanos(time), thread, kind: EventKindId(1), ..EventRecord::default() };
        let sample = |time| Sample { time: Nanos(time), thread, value: 1, ..Sample::default() };
        machine.add_event_record(&record(30), b"alone").unwrap();
        machine.add_sample_of_event(&sample(20), EventKindId(1), b"both");
        machine.add_sample(&sample(10));
        machine.add_sample_of_event(&sample(5), EventKindId(1), b"left out");
        machine.apply_custom_filter(|_, sample| sample.time > Nanos(5));
        let told: Vec<_> = machine.in_time_order().skip(1).map(|(_, happened)| happened).collect();
        let both = EventRecordId(1);
        assert_eq!(
            told,
            [
                Happened::Sampled(sample(10)),
                Happened::SampledEvent(sample(20), both),
                Happened::Event(EventRecordId(0))
            ]
        );
        let (read, bytes) = machine.event_records().get(both).unwrap();
        assert_eq!((read, bytes), (record(20), &b"both"[..]));
    }

    #[test]
    fn spans_give_the_order_that_sorting_all_gives() {
        let mut machine = ExportMachine::default();
        machine.add_process(Pid(7), "p", None, Nanos(0));
        // Times of all sizes, many of them twice, in no order.
        for at in 0..5_000_u64 {
            let time = Nanos((at * 7_919 % 1_000) << (at % 5 * 10));
            machine.add_sample(&Sample { time, value: at.cast_signed(), ..Sample::default() });
        }
        let whole: Vec<_> = machine.in_order_of(usize::MAX).collect();
        assert!(whole.is_sorted_by_key(|(time, _)| *time) && whole.len() == 5_001);
        for at_once in [1, 10, 100, 4_999] {
            let order = machine.in_order_of(at_once);
            assert_eq!(order.len(), 5_001);
            assert!(order.eq(whole.iter().copied()), "{at_once}");
        }
    }
}
