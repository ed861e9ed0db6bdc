//! Kinds of events of a trace: each is added when the first event of it comes, with what its payload means.

use std::collections::HashMap;
use std::sync::Arc;

use collector_common::event::{EventFormat, Guid};
use collector_common::intern::Seeded;
use collector_common::record::{EventFacts, EventKind, EventKindId, ExportMachine};
use windows_etw::decode::described::Described;
use windows_etw::record::{EtwRecord, Schema};

use super::kinds::Kinds;
use super::name;

/// As many as have a number.
const MOST: usize = 1 << 16;

/// Fields of all of them: an event that says of itself what it has takes more for each than its bytes.
const MOST_FIELDS: u64 = 1 << 20;

#[derive(Debug)]
struct Known {
    /// With the provider.
    name: String,
    provider: String,
    short_name: String,
    id: u64,
    facts: EventFacts,
    format: Arc<EventFormat>,
    /// Keeps its place in memory, by which it is known.
    _described: Option<Arc<Described>>,
}

/// What an event is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// By where its description is.
    Described(usize),
    Undescribed {
        provider: Guid,
        is_classic: bool,
        number: u16,
        version: u8,
    },
}

/// All kinds of events of a trace.
#[derive(Debug, Default)]
pub(super) struct Events {
    kinds: Vec<Known>,
    known: HashMap<Key, EventKindId, Seeded>,
    fields: u64,
}

impl Events {
    /// The kind of an event; none where there are too many, or fields of them.
    pub(super) fn of(
        &mut self,
        record: &EtwRecord<'_>,
        described: Option<Arc<Described>>,
    ) -> Option<EventKindId> {
        let is_classic = record.schema == Schema::Classic;
        let descriptor = &record.descriptor;
        let number = if is_classic { descriptor.opcode.into() } else { descriptor.id };
        let key = match &described {
            Some(described) => Key::Described(Arc::as_ptr(described) as usize),
            None => Key::Undescribed {
                provider: record.provider,
                is_classic,
                number,
                version: descriptor.version,
            },
        };
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let id = EventKindId(u16::try_from(self.kinds.len()).ok()?);
        let fields = described.as_ref().map_or(0, |described| described.format.total_fields());
        let fields = self.fields + u64::from(fields);
        if fields > MOST_FIELDS {
            return None;
        }
        self.fields = fields;
        self.known.insert(key, id);
        let (provider, short_name) = match &described {
            Some(described) => (name(&described.provider).to_owned(), name(&described.name).to_owned()),
            None => (record.provider.to_string(), String::new()),
        };
        let full = match short_name.as_str() {
            "" => format!("{provider}/{number}"),
            short_name => format!("{provider}/{short_name}"),
        };
        let facts = EventFacts {
            version: descriptor.version,
            level: descriptor.level,
            opcode: descriptor.opcode,
            keywords: descriptor.keyword,
        };
        let format = described.as_ref().map(|described| described.format.clone()).unwrap_or_default();
        self.kinds.push(Known {
            name: full,
            provider,
            short_name,
            id: number.into(),
            facts,
            format,
            _described: described,
        });
        Some(id)
    }

    /// What a kind is called, with its provider.
    pub(super) fn name(&self, id: EventKindId) -> &str {
        self.kinds.get(usize::from(id.0)).map_or("", |known| &known.name)
    }

    /// Adds them all, under the numbers that they have here.
    pub(super) fn add_to(&self, machine: &mut ExportMachine, kinds: &Kinds) {
        for (known, id) in self.kinds.iter().take(MOST).zip(0..) {
            let [name, provider, short_name] =
                [&known.name, &known.provider, &known.short_name].map(|text| machine.intern_string(text));
            machine.add_event_kind(EventKind {
                name,
                provider,
                short_name,
                id: known.id,
                facts: known.facts,
                format: known.format.clone(),
                samples: kinds.made_for(EventKindId(id)),
            });
        }
    }
}
