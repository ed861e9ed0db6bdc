//! Closures on events. Records in, from a live session or a file; out, calls of the closures that were added to their [`Event`]s.
//!
//! What fields an event has is known when one comes: by the tables, by Windows, by the trace, or by the event itself, and versions differ. So
//! what is registered makes closures: for each description that events come with it gets an [`Event`] with these fields once.
//!
//! ```
//! use collector_common::event::Guid;
//! use collector_common::ids::Nanos;
//! use windows_etw::decode::described::Schemas;
//! use windows_etw::dispatch::{Dispatch, Which};
//! # use windows_etw::record::EtwRecord;
//! # let records: [(EtwRecord<'_>, Nanos); 0] = [];
//!
//! let mut dispatch = Dispatch::new(Schemas::default());
//! dispatch.on(Which::Name("Windows Kernel/Process/Start".into()), |event| {
//!     let image = event.format().field_ref("ImageFileName").ok_or_else(|| anyhow::anyhow!("it has no name"))?;
//!     event.add_closure(move |data| {
//!         println!("{} was started", data.try_get_text(image)?);
//!         Ok(())
//!     });
//!     Ok(())
//! });
//! for (record, time) in &records {
//!     dispatch.take(record, *time);
//! }
//! assert!(dispatch.errors().is_empty());
//! ```

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use collector_common::event::{Context, Event, EventErrors, EventFormat, EventId, Guid};
use collector_common::ids::Nanos;
use collector_common::intern::Seeded;

use crate::decode::EventKey;
use crate::decode::described::{Described, Schemas};
use crate::record::{EtwRecord, Schema};

/// Descriptions whose events are kept: more than any trace has.
const MOST: usize = 1 << 14;

/// Which events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// Those of a provider with this number, or of a class of classic events with this opcode.
    Key(Guid, EventKey),
    /// Those that are called so, with their provider, as in a recording: `Microsoft-Windows-DotNETRuntime/GC/Triggered`.
    Name(Box<str>),
}

/// Adds closures to an event.
type Prepare = Box<dyn FnMut(&mut Event) -> anyhow::Result<()>>;

/// What events are of one kind by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum KindKey {
    /// By where their description is.
    Described(usize),
    /// Nothing is known of them.
    Undescribed(Guid, EventKey, u8),
}

/// Events of one kind.
struct Kind {
    /// One for each that is registered and that these are.
    events: Vec<Event>,
    /// Keeps its place in memory, by which it is known.
    _described: Option<Arc<Described>>,
}

/// Hands events to closures.
pub struct Dispatch {
    schemas: Schemas,
    registered: Vec<(Which, Prepare)>,
    /// Those of them that are not names.
    keys: HashSet<(Guid, EventKey), Seeded>,
    kinds: HashMap<KindKey, Kind, Seeded>,
    errors: EventErrors,
    left_out: u64,
}

impl Dispatch {
    /// Nothing is registered yet. What fields an event has, `schemas` is asked.
    pub fn new(schemas: Schemas) -> Self {
        Self {
            schemas,
            registered: Vec::new(),
            keys: HashSet::default(),
            kinds: HashMap::default(),
            errors: EventErrors::new(),
            left_out: 0,
        }
    }

    /// Has `prepare` add closures to these events, before any is taken. It gets an [`Event`] for each description that such come with, with the
    /// fields of that; one without fields where nothing is known of them. What it fails with is among [`Self::errors`].
    pub fn on(&mut self, which: Which, prepare: impl FnMut(&mut Event) -> anyhow::Result<()> + 'static) {
        if let Which::Key(provider, key) = which {
            self.keys.insert((provider, key));
        }
        self.registered.push((which, Box::new(prepare)));
    }

    /// Takes a record, and says whether it was wanted: it is registered, and no filter left it out.
    pub fn take(&mut self, record: &EtwRecord<'_>, time: Nanos) -> bool {
        if let Err(error) = self.schemas.learn(record) {
            self.fail(record, &error.into());
        }
        let by_name = self.keys.len() < self.registered.len();
        if !by_name && !self.keys.contains(&(record.provider, key_of(record))) {
            return false;
        }
        let described = match self.schemas.describe(record) {
            Ok(described) => described,
            Err(error) => {
                self.fail(record, &error.into());
                return false;
            }
        };
        let key = kind_key(record, described.as_ref());
        if !self.kinds.contains_key(&key) {
            if self.kinds.len() >= MOST {
                self.left_out += 1;
                return false;
            }
            let kind = self.kind(record, described);
            self.kinds.insert(key, kind);
        }
        let Some(kind) = self.kinds.get_mut(&key) else { return false };
        let context =
            record.pid.zip(record.tid).map(|(pid, tid)| Context { time, pid, tid, cpu: record.cpu.into() });
        let mut is_wanted = false;
        for event in &mut kind.events {
            is_wanted |= event.process_in(context.as_ref(), record.payload, record.payload, &mut self.errors);
        }
        is_wanted
    }

    /// What went wrong in closures, in filters, in what adds them, and in descriptions.
    pub fn errors(&self) -> &EventErrors {
        &self.errors
    }

    /// Records that were left out because there were too many descriptions.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What is registered for a record's kind.
    fn kind(&mut self, record: &EtwRecord<'_>, described: Option<Arc<Described>>) -> Kind {
        let (id, key) = (EventId(number(key_of(record))), key_of(record));
        let name = match &described {
            Some(described) => format!("{}/{}", described.provider, described.name),
            None => format!("{}/{id}", record.provider),
        };
        let mut events = Vec::new();
        for (which, prepare) in &mut self.registered {
            let is_it = match which {
                Which::Key(provider, of) => *provider == record.provider && *of == key,
                Which::Name(of) => **of == *name,
            };
            if !is_it {
                continue;
            }
            let mut event = Event::new(id, name.as_str());
            if let Some(described) = &described {
                *event.format_mut() = described.format.duplicate();
            }
            if let Err(error) = prepare(&mut event) {
                self.errors.collect(id, &name, event.format(), &error);
            }
            events.push(event);
        }
        Kind { events, _described: described }
    }

    /// A description can't be understood.
    #[cold]
    fn fail(&mut self, record: &EtwRecord<'_>, error: &anyhow::Error) {
        let id = EventId(number(key_of(record)));
        self.errors.collect(id, &record.provider.to_string(), &EventFormat::default(), error);
    }
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registered: Vec<&Which> = self.registered.iter().map(|(which, _)| which).collect();
        out.debug_struct("Dispatch").field("registered", &registered).finish_non_exhaustive()
    }
}

fn key_of(record: &EtwRecord<'_>) -> EventKey {
    match record.schema {
        Schema::Classic => EventKey::Opcode(record.descriptor.opcode),
        _ => EventKey::Id(record.descriptor.id),
    }
}

fn number(key: EventKey) -> u64 {
    match key {
        EventKey::Opcode(opcode) => opcode.into(),
        EventKey::Id(id) => id.into(),
    }
}

fn kind_key(record: &EtwRecord<'_>, described: Option<&Arc<Described>>) -> KindKey {
    match described {
        Some(described) => KindKey::Described(Arc::as_ptr(described) as usize),
        None => KindKey::Undescribed(record.provider, key_of(record), record.descriptor.version),
    }
}

#[cfg(test)]
mod tests;
