//! Where a record goes: to the closures of its event, and as a sample into the recording.

use collector_common::event::{Context, EventErrors, EventFlags};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::record::{SampleKindId, Unit};
use collector_common::wire::SampleHeader;

use crate::recorder::Recorder;
use crate::source::{EventIndex, EventRequest, Hook, RELEASED, Settings, SourceRecord};

/// Events that a session may have: as many kinds of sample as a recording may have, beside the clock's.
pub(super) const MOST_EVENTS: usize = 255;

/// An event of the session.
struct Hooked {
    hook: Hook,
    /// Of its samples; `None` for one without stacks.
    kind: Option<SampleKindId>,
}

/// What the sources are asked for, for the records to come back by these numbers.
pub(super) fn requests(hooks: &[Hook]) -> Vec<EventRequest> {
    let indexes = (0..).map(EventIndex::of_hook);
    hooks.iter().zip(indexes).filter_map(|(hook, index)| hook.request(index)).collect()
}

/// All events of a session.
pub(super) struct Dispatch {
    /// The sampling clock's, if there is one.
    clock: Option<SampleKindId>,
    hooked: Vec<Hooked>,
    errors: EventErrors,
}

impl Dispatch {
    /// Adds a kind of sample for the sampling clock, if there is one, and for each event whose stacks are wanted.
    pub(super) fn new(settings: &Settings, hooks: Vec<Hook>, recorder: &mut Recorder) -> Self {
        let clock = settings.clock.then(|| recorder.add_kind("cpu", Unit::Count, settings.period().0));
        let hooked = hooks.into_iter().map(|hook| {
            let has_stack = hook.event.flags().contains(EventFlags::CALLSTACK);
            let kind = has_stack.then(|| recorder.add_kind(hook.event.name(), Unit::Count, 1));
            Hooked { hook, kind }
        });
        Self { clock, hooked: hooked.collect(), errors: EventErrors::new() }
    }

    /// Takes one record. One of a thread that the kernel has released is of the process whose end it was.
    pub(super) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        if ![record.header.pid, record.header.tid].contains(&RELEASED) {
            return self.take_known(recorder, record);
        }
        match recorder.process_of_ended(Tid(record.header.tid)) {
            Some(process) => {
                let header = SampleHeader { pid: process.0, ..*record.header };
                self.take_known(recorder, &SourceRecord { header: &header, ..*record });
            }
            None => recorder.ledger_mut().lose(LossCause::NoProcess, 1),
        }
    }

    fn take_known(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) {
        let Some(position) = record.event.hook() else {
            if let Some(clock) = self.clock {
                recorder.sample(clock, record);
            }
            return;
        };
        let Some(hooked) = self.hooked.get_mut(position) else { return };
        let header = record.header;
        let context =
            Context { time: Nanos(header.time), pid: Pid(header.pid), tid: Tid(header.tid), cpu: header.cpu };
        let event = &mut hooked.hook.event;
        let passed = event.process_in(Some(&context), record.data, record.data, &mut self.errors);
        match hooked.kind {
            Some(kind) if passed => recorder.sample(kind, record),
            None if passed => recorder.ledger_mut().deliver(1),
            Some(_) | None => {}
        }
    }

    /// What went wrong in filters and closures.
    pub(super) fn errors(&self) -> &EventErrors {
        &self.errors
    }
}
