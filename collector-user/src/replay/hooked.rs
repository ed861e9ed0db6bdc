//! Where a recording's samples go: to the closures of their event, and into the recording.

use collector_common::event::{Event, EventErrors};
use collector_common::ids::Nanos;
use collector_common::record::{AttributeListId, SampleKindId, Unit};

use crate::recorder::{Kept, Kinds, Recorder};
use crate::records::{EventIndex, SourceRecord};

/// An event of a recording that was made earlier.
#[derive(Debug)]
pub struct ReplayedEvent {
    /// Its format, filter and closures. They see its own records, and not what the samples of another event tell of how often it was counted.
    pub event: Event,
    /// Of its samples' values.
    pub(super) unit: Unit,
}

/// All events of a recording.
pub(super) struct Hooked {
    /// The sampling clock's, if there is one.
    clock: Option<SampleKindId>,
    events: Vec<(ReplayedEvent, Kinds)>,
    errors: EventErrors,
}

impl Hooked {
    /// Adds a kind of sample for the sampling clock, if there is one with its period, and for each event; for those whose
    /// raw events are kept a kind of these, too.
    pub(super) fn new(
        clock: Option<Nanos>,
        events: Vec<ReplayedEvent>,
        kept: Kept<'_>,
        recorder: &mut Recorder,
    ) -> Self {
        recorder.machine_mut().event_records_mut().set_limit(kept.bytes);
        let clock = clock.map(|period| recorder.add_kind("cpu", Unit::Count, period.0));
        let with_kinds = |replayed: ReplayedEvent| {
            let samples = recorder.add_kind_of(&replayed.event, replayed.unit);
            let is_kept = kept.has(replayed.event.name());
            let events = is_kept.then(|| recorder.add_event_kind(&replayed.event, samples)).flatten();
            let kinds = Kinds { samples: Some(samples), events, is_passed_over: !is_kept };
            (replayed, kinds)
        };
        let events = events.into_iter().map(with_kinds).collect();
        Self { clock, events, errors: EventErrors::new() }
    }

    /// Takes one record.
    pub(super) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        recorder.take_of_any(record, |recorder, record| match record.event.hook() {
            None => self.clock.is_some_and(|clock| recorder.sample(clock, record)),
            Some(position) => self.events.get_mut(position).is_some_and(|(replayed, kinds)| {
                recorder.take_event(&mut replayed.event, *kinds, record, &mut self.errors)
            }),
        });
    }

    /// Takes what other events had counted when a record was made: that is samples of theirs with its stack.
    pub(super) fn take_counts(
        &self,
        recorder: &mut Recorder,
        record: &SourceRecord<'_>,
        counts: &[(EventIndex, u64)],
    ) {
        if counts.is_empty() {
            return;
        }
        recorder.take_of_any(record, |recorder, record| {
            let Some(taken) = recorder.take_stack(record) else { return false };
            for &(event, value) in counts {
                let kinds = event.hook().and_then(|position| self.events.get(position));
                if let Some(kind) = kinds.and_then(|(_, kinds)| kinds.samples) {
                    recorder.add_sample(kind, taken, value.cast_signed(), AttributeListId::NONE);
                    recorder.deliver(&taken);
                }
            }
            true
        });
    }

    /// What went wrong in filters and closures.
    pub(super) fn errors(&self) -> &EventErrors {
        &self.errors
    }
}
