//! Where a record goes: to the closures of its event, and as a sample into the recording.

use collector_common::event::{Context, EventErrors, EventFlags};
use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::loss::LossCause;
use collector_common::record::{SampleKindId, Unit};
use collector_common::wire::SampleHeader;

use crate::recorder::Recorder;
use crate::source::{EventIndex, EventRequest, Hook, RELEASED, SourceRecord};

/// Events that a session may have: as many kinds of sample as a recording may have, beside the clock's.
pub(crate) const MOST_EVENTS: usize = 255;

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
pub(crate) struct Dispatch {
    /// The sampling clock's, if there is one.
    clock: Option<SampleKindId>,
    hooked: Vec<Hooked>,
    errors: EventErrors,
}

impl Dispatch {
    /// Adds a kind of sample for the sampling clock, if there is one with its period, and for each event whose stacks are wanted.
    pub(crate) fn new(clock: Option<Nanos>, hooks: Vec<Hook>, recorder: &mut Recorder) -> Self {
        let clock = clock.map(|period| recorder.add_kind("cpu", Unit::Count, period.0));
        let hooked = hooks.into_iter().map(|hook| {
            let has_stack = hook.event.flags().contains(EventFlags::CALLSTACK);
            let kind = has_stack.then(|| recorder.add_kind(hook.event.name(), Unit::Count, 1));
            Hooked { hook, kind }
        });
        Self { clock, hooked: hooked.collect(), errors: EventErrors::new() }
    }

    /// Takes one record, and says whether it is in the recording. One of a thread that the kernel has released is of the process
    /// whose end it was.
    pub(crate) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) -> bool {
        if ![record.header.pid, record.header.tid].contains(&RELEASED) {
            return self.take_known(recorder, record);
        }
        let Some(process) = recorder.process_of_ended(Tid(record.header.tid)) else {
            recorder.ledger_mut().lose(LossCause::NoProcess, 1);
            return false;
        };
        let header = SampleHeader { pid: process.0, ..*record.header };
        self.take_known(recorder, &SourceRecord { header: &header, ..*record })
    }

    fn take_known(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) -> bool {
        let Some(position) = record.event.hook() else {
            return self.clock.is_some_and(|clock| recorder.sample(clock, record));
        };
        let Some(hooked) = self.hooked.get_mut(position) else { return false };
        let header = record.header;
        let context =
            Context { time: Nanos(header.time), pid: Pid(header.pid), tid: Tid(header.tid), cpu: header.cpu };
        let event = &mut hooked.hook.event;
        let passed = event.process_in(Some(&context), record.data, record.data, &mut self.errors);
        if let Some(kind) = hooked.kind {
            return passed && recorder.sample(kind, record);
        }
        recorder.ledger_mut().deliver(passed.into());
        passed
    }

    /// What went wrong in filters and closures.
    pub(crate) fn errors(&self) -> &EventErrors {
        &self.errors
    }
}
