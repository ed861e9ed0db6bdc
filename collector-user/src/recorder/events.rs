//! Events whose records are kept as they come: as samples, and with their bytes where those are wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use collector_common::event::{Context, Event, EventErrors, EventFormat};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::record::{
    EventFacts, EventKind, EventKindId, ExportMachine, SampleKind, SampleKindId, Unit,
};
use collector_common::wire::SampleHeader;

use super::state::Recorder;
use crate::event_clock::EventTimes;
use crate::records::{RELEASED, SourceRecord};

/// Events that a recording may have: each may be a kind of sample, and there is room for the clock's and for what programs add to theirs.
pub(crate) const MOST_EVENTS: usize = 4000;

const _: () = assert!(MOST_EVENTS + 96 <= ExportMachine::MOST_KINDS);

/// Whose an event is that does not say it.
const OWN: &str = "Collector";

/// What begins names of markers of programs.
const MARKER: &str = "usdt:";

/// What becomes of an event's records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    /// Of its samples; `None` for one without stacks.
    pub(crate) samples: Option<SampleKindId>,
    /// Of its raw events, where they are kept.
    pub(crate) events: Option<EventKindId>,
    /// Its records are raw events that nothing is kept of but their samples.
    pub(crate) is_passed_over: bool,
}

/// Which raw events are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    /// What they may take of memory: 0 keeps none.
    pub(crate) bytes: u64,
    /// Names of those that are not.
    pub(crate) passed_over: &'a BTreeSet<String>,
}

impl Kept<'_> {
    /// Whether those of a name are.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.bytes > 0 && !self.passed_over.contains(name)
    }
}

/// What a record says of itself.
pub(crate) fn context_of(record: &SourceRecord<'_>) -> Context {
    let header = record.header;
    Context { time: Nanos(header.time), pid: Pid(header.pid), tid: Tid(header.tid), cpu: header.cpu }
}

impl Recorder {
    /// Tells closures times by these from now on.
    pub(crate) fn set_event_times(&mut self, times: EventTimes) {
        self.event_times = times;
    }

    /// What tells closures times.
    pub(crate) fn event_times_mut(&mut self) -> &mut EventTimes {
        &mut self.event_times
    }

    /// What closures are told, in the clock that was chosen for them.
    pub(crate) fn for_closures(&self, context: Context) -> Context {
        Context { time: self.event_times.tell(context.time), ..context }
    }

    /// The kind of an event's samples, each of which counts as one. Markers that one name means, and whose arguments differ, are events of their
    /// own that are called alike: their samples are of one kind, as formats and people tell kinds apart by their names.
    pub(crate) fn add_kind_of(&mut self, event: &Event, unit: Unit) -> SampleKindId {
        if event.name().starts_with(MARKER) {
            let machine = self.machine_mut();
            let is_it = |kind: &SampleKind| machine.string(kind.name) == event.name() && kind.unit == unit;
            let known = machine.kinds().iter().position(is_it);
            if let Some(known) = known.and_then(|known| u16::try_from(known).ok()) {
                return SampleKindId(known);
            }
        }
        self.add_kind(event.name(), unit, 1)
    }

    /// Adds the kind of an event's raw events, whose samples are of this kind.
    pub(crate) fn add_event_kind(&mut self, event: &Event, samples: SampleKindId) -> Option<EventKindId> {
        let (provider, short_name) = event.name().split_once(':').unwrap_or((OWN, event.name()));
        let [name, provider, short_name] =
            [event.name(), provider, short_name].map(|text| self.machine.intern_string(text));
        self.machine.add_event_kind(EventKind {
            name,
            provider,
            short_name,
            id: event.id().0,
            facts: EventFacts::default(),
            format: Arc::new(EventFormat::duplicate(event.format())),
            samples: Some(samples),
        })
    }

    /// Has `take` take in a record, and says whether it is in the recording. One of a thread that the kernel has released is of the
    /// process whose end it was.
    pub(crate) fn take_of_any(
        &mut self,
        record: &SourceRecord<'_>,
        take: impl FnOnce(&mut Self, &SourceRecord<'_>) -> bool,
    ) -> bool {
        if ![record.header.pid, record.header.tid].contains(&RELEASED) {
            return take(self, record);
        }
        let Some(process) = self.process_of_ended(Tid(record.header.tid)) else {
            self.ledger.lose(LossCause::NoProcess, 1);
            return false;
        };
        let header = SampleHeader { pid: process.0, ..*record.header };
        take(self, &SourceRecord { header: &header, ..*record })
    }

    /// Hands a record of a wanted thread to the closures of its event, and keeps what they let pass. Says whether it is in the recording.
    pub(crate) fn take_event(
        &mut self,
        event: &mut Event,
        kinds: Kinds,
        record: &SourceRecord<'_>,
        errors: &mut EventErrors,
    ) -> bool {
        if !self.is_wanted(record) {
            return false;
        }
        let context = self.for_closures(context_of(record));
        let passed = event.process_in(Some(&context), record.data, record.data, errors);
        let has_own = !event.format().fields().is_empty() || !record.data.is_empty();
        match (kinds.samples, kinds.events.filter(|_| has_own)) {
            (Some(kind), Some(event_kind)) => passed && self.sample_event(kind, event_kind, record),
            (Some(kind), None) => {
                let is_taken = passed && self.sample(kind, record);
                if is_taken && has_own && kinds.is_passed_over {
                    self.machine.event_records_mut().pass_over();
                }
                is_taken
            }
            (None, _) => {
                self.ledger.deliver(passed.into());
                passed
            }
        }
    }
}
