//! Types of events in, kinds of raw events out: each is added when the first event of it comes.

use std::collections::HashMap;
use std::sync::Arc;

use collector_common::record::{EventKind, EventKindId, ExportMachine, SampleKindId};

use crate::format::nettrace::{EventType, NAME, NO_SAMPLES, SAMPLES};
use crate::import::room::name;

/// What a type's events are kept as.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) kind: EventKindId,
    /// Whether their bytes are those of the format, and not the payload as it is.
    pub(super) is_described: bool,
}

/// The kinds of a trace's types.
#[derive(Default)]
pub(super) struct EventKinds {
    /// By the type's position in the trace, which is no number that a file chooses.
    known: HashMap<u32, Kept>,
}

impl EventKinds {
    /// What events of a type are kept as; `None` where there are too many kinds.
    pub(super) fn of(
        &mut self,
        machine: &mut ExportMachine,
        of: &EventType,
        samples: Option<SampleKindId>,
    ) -> Option<Kept> {
        if let Some(&kept) = self.known.get(&of.position) {
            return Some(kept);
        }
        let format = of.format();
        let is_described = format.is_some();
        let called = name_of(of);
        let [name, provider, short_name] =
            [name(&called), &of.provider, &of.name].map(|text| machine.intern_string(text));
        let kind = machine.add_event_kind(EventKind {
            name,
            provider,
            short_name,
            id: of.id.into(),
            facts: of.facts,
            format: Arc::new(format.unwrap_or_default()),
            samples,
        })?;
        let kept = Kept { kind, is_described };
        self.known.insert(of.position, kept);
        Some(kept)
    }
}

/// Whether no samples were taken of a type's events before they were written here.
pub(super) fn is_alone(of: &EventType) -> bool {
    of.pairs.iter().any(|(key, value)| key == SAMPLES && value == NO_SAMPLES)
}

/// What a type is called: as it was before it was written here, else by its provider and its name or number.
pub(super) fn name_of(of: &EventType) -> String {
    if let Some((_, name)) = of.pairs.iter().find(|(key, _)| key == NAME) {
        return name.clone();
    }
    match (of.provider.as_str(), of.name.as_str()) {
        (provider, "") => format!("{provider}/{}", of.id),
        (provider, name) => format!("{provider}/{name}"),
    }
}
