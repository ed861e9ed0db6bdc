//! Types of events in, kinds of raw events out: each is added when the first event of it comes.

use std::collections::HashMap;
use std::sync::Arc;

use collector_common::record::{EventKind, EventKindId, ExportMachine, SampleKindId};

use crate::format::nettrace::{Event, EventType, KnownType, NAME, NO_SAMPLES, SAMPLES};
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
    types: HashMap<u32, OfType>,
    /// Whether there are too many kinds.
    is_full: bool,
}

/// The kinds of a type: events that end before their fields do are of another one.
struct OfType {
    /// What is known of a type that the trace tells by its number.
    known: Option<KnownType>,
    whole: Option<Kept>,
    damaged: Option<Kept>,
}

impl EventKinds {
    /// What an event is kept as; `None` where there are too many kinds. Addresses of the trace have so many bytes.
    pub(super) fn of(
        &mut self,
        machine: &mut ExportMachine,
        event: &Event<'_>,
        pointer_size: u32,
        samples: Option<SampleKindId>,
    ) -> Option<Kept> {
        let of = event.event_type;
        let kinds = self.types.entry(of.position).or_insert_with(|| {
            let known = known(of, pointer_size).filter(|_| of.field_names().next().is_none());
            OfType { known, whole: None, damaged: None }
        });
        let known = kinds.known;
        let is_damaged = known.is_some_and(|known| !known.is_whole(event.payload));
        let kept = if is_damaged { &mut kinds.damaged } else { &mut kinds.whole };
        if kept.is_some() || self.is_full {
            return *kept;
        }
        let described = of.format();
        let is_described = described.is_some();
        let format = described.or_else(|| known.filter(|_| !is_damaged)?.format());
        let called = name_of(of);
        let [name, provider, short_name] =
            [name(&called), &of.provider, short_name(of)].map(|text| machine.intern_string(text));
        let added = machine.add_event_kind(EventKind {
            name,
            provider,
            short_name,
            id: of.id.into(),
            facts: of.facts,
            format: Arc::new(format.unwrap_or_default()),
            samples,
        });
        self.is_full = added.is_none();
        *kept = added.map(|kind| Kept { kind, is_described });
        *kept
    }
}

/// What is known of a type that the trace tells by its number, and by no other name than its own.
fn known(of: &EventType, pointer_size: u32) -> Option<KnownType> {
    let known = KnownType::of(&of.provider, of.id, of.facts.version, pointer_size)?;
    (of.name.is_empty() || of.name == known.name()).then_some(known)
}

/// A type's name with its provider: as the trace has it, or as it is known; empty where it has but a number.
fn short_name(of: &EventType) -> &str {
    // It does not depend on addresses.
    if of.name.is_empty() { known(of, 8).map_or("", KnownType::name) } else { &of.name }
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
    match (of.provider.as_str(), short_name(of)) {
        (provider, "") => format!("{provider}/{}", of.id),
        (provider, name) => format!("{provider}/{name}"),
    }
}
