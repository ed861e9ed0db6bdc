//! Which events' records are kept with their bytes, beside their samples, and what is said of them.

use std::sync::Arc;

use collector_common::event::EventFormat;
use collector_common::record::{EventFacts, EventKind, EventKindId, SampleKindId};

use crate::recorder::Recorder;
use crate::source::{Hook, Trigger};

/// Whose an event is that does not say it.
const OWN: &str = "Collector";

/// Whether a hook's records are events of their own: our programs' tell of times and sizes, which the samples have.
pub(super) fn is_raw(hook: &Hook) -> bool {
    !matches!(hook.trigger, Trigger::Program(_))
}

/// The kind of a hook's raw events, where its records are such.
pub(super) fn kind_of(hook: &Hook, samples: SampleKindId, recorder: &mut Recorder) -> Option<EventKindId> {
    if !is_raw(hook) {
        return None;
    }
    let event = &hook.event;
    let (provider, short_name) = event.name().split_once(':').unwrap_or((OWN, event.name()));
    let machine = recorder.machine_mut();
    let [name, provider, short_name] =
        [event.name(), provider, short_name].map(|text| machine.intern_string(text));
    machine.add_event_kind(EventKind {
        name,
        provider,
        short_name,
        id: event.id().0,
        facts: EventFacts::default(),
        format: Arc::new(EventFormat::duplicate(event.format())),
        samples: Some(samples),
    })
}
