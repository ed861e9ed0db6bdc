//! What is known of the events of one trace: formats and names by provider, number and version, and by what they say of themselves.

use std::collections::HashMap;
use std::sync::Arc;

use collector_common::event::{ByteOrder, EventField, EventFormat, Extent, FieldKind, Guid, Place};
use collector_common::intern::Seeded;
use collector_common::payload::clr::{self, ClrEvent};
use collector_common::payload::{EventSpec, Layout, width_of};

use super::error::DescriptionError;
use super::event_info::{EventInfo, InfoKey};
use super::manifest::{self, Manifest, Parts};
use super::trace_logging::{ProviderTraits, TraceLoggingEvent};
use crate::decode::kernel::{self, KernelEvent, META_DATA};
use crate::decode::windows::{self, WindowsEvent};
use crate::record::{EtwRecord, PointerSize, Schema};

/// Descriptions that are kept: more kinds of events than any trace has.
const MOST: usize = 1 << 14;
/// Bytes of descriptions that are kept.
const MOST_BYTES: usize = 16 << 20;

/// Fields of what events say of themselves that are kept: a field of two bytes there takes hundreds.
const MOST_FIELDS: u64 = 1 << 19;

/// Name and fields of a kind of event.
#[derive(Debug)]
pub struct Described {
    /// Name of the provider; of one that is not known its GUID.
    pub provider: Box<str>,
    /// Task and name, as PerfView prints them.
    pub name: Box<str>,
    /// The fields, which what is made of events may share.
    pub format: Arc<EventFormat>,
}

/// Somebody who may know what a trace does not hold. In: an event of a manifest. Out: the bytes of its `TRACE_EVENT_INFO`.
pub type Ask = fn(&EtwRecord<'_>) -> Option<Vec<u8>>;

/// Kinds of events by what they say of themselves.
type BySelf = HashMap<Box<[u8]>, Arc<Described>>;

/// What is known of the events of one trace.
///
/// Memory is bounded, and so is the time that an event takes: of more kinds than a trace has, what later ones say of themselves is read anew each
/// time, and those that others describe have no description, which is counted for each of their events.
#[derive(Debug, Default)]
pub struct Schemas {
    /// Descriptions that the trace holds, unread until an event needs them.
    learnt: HashMap<InfoKey, Box<[u8]>>,
    /// What was looked up.
    known: HashMap<(InfoKey, PointerSize), Option<Arc<Described>>, Seeded>,
    /// What events said of themselves.
    own: HashMap<(Guid, PointerSize), BySelf>,
    /// Manifests that programs write.
    parts: Parts,
    /// Who is asked last.
    ask: Option<Ask>,
    bytes: usize,
    /// Fields of `own`.
    fields: u64,
    left_out: u64,
}

impl Schemas {
    /// `ask` is asked once for each kind of event of a manifest of which nothing else is known.
    pub fn asking(ask: Ask) -> Self {
        Self { ask: Some(ask), ..Self::default() }
    }

    /// Takes an event that describes others; all others are passed over. A later description of the same event counts.
    ///
    /// # Errors
    /// When it is such a description and can't be understood.
    pub fn learn(&mut self, record: &EtwRecord<'_>) -> Result<(), DescriptionError> {
        if let Some(manifest) = self.parts.take(record) {
            return self.manifest(&manifest, record);
        }
        if record.provider != META_DATA {
            return Ok(());
        }
        let Ok(Some(KernelEvent::EventInfo(info))) = KernelEvent::decode(record) else { return Ok(()) };
        let width = width_of(Layout { version: 0, pointer: record.pointer_size });
        let key = EventInfo::parse(info.data, width)?.key;
        // A later one takes the place of the one before.
        self.bytes -= self.learnt.remove(&key).map_or(0, |before| before.len());
        if self.learnt.len() >= MOST || self.bytes + info.data.len() > MOST_BYTES {
            self.left_out += 1;
            return Ok(());
        }
        self.bytes += info.data.len();
        self.learnt.insert(key, info.data.into());
        for size in [PointerSize::Bits32, PointerSize::Bits64] {
            self.known.remove(&(key, size));
        }
        Ok(())
    }

    /// Takes the events of a manifest for payloads of both kinds.
    fn manifest(&mut self, text: &[u8], record: &EtwRecord<'_>) -> Result<(), DescriptionError> {
        let (provider, version) = (record.provider, record.descriptor.version);
        if clr::provider_name(provider).is_some() {
            return Ok(());
        }
        for pointer in [PointerSize::Bits32, PointerSize::Bits64] {
            let manifest = Manifest::parse(text, width_of(Layout { version: 0, pointer }))?;
            let name = manifest.name;
            let format = Arc::new(EventFormat::new(ByteOrder::Little));
            let parts = (manifest::ID, version, "ManifestData".into(), format);
            let events =
                manifest.events.into_iter().map(|event| (event.id, event.version, event.name, event.format));
            for (id, version, event, format) in events.chain([parts]) {
                if self.known.len() >= MOST {
                    self.left_out += 1;
                    continue;
                }
                let described = Described { provider: name.clone(), name: event, format };
                let key = InfoKey::Manifest(provider, id, version);
                self.known.insert((key, pointer), Some(Arc::new(described)));
            }
        }
        Ok(())
    }

    /// Descriptions, and events of kinds without one, that were left out because there were too many.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What is known of an event: what it says of itself, what is in the tables, what the trace holds. None if that is nothing.
    ///
    /// # Errors
    /// When what it says of itself can't be understood.
    pub fn describe(&mut self, record: &EtwRecord<'_>) -> Result<Option<Arc<Described>>, DescriptionError> {
        if let Some(description) = record.extended.self_description {
            return self.own(record, description).map(Some);
        }
        let descriptor = record.descriptor;
        let key = match record.schema {
            Schema::Classic => InfoKey::Classic(record.provider, descriptor.opcode, descriptor.version),
            Schema::Manifest => InfoKey::Manifest(record.provider, descriptor.id, descriptor.version),
            Schema::Text => return self.text(record).map(Some),
            _ => return Ok(None),
        };
        let place = (key, record.pointer_size);
        if let Some(known) = self.known.get(&place) {
            return Ok(known.clone());
        }
        // What is not kept is not read for each event.
        if self.known.len() >= MOST {
            self.left_out += 1;
            return Ok(None);
        }
        let described = self.look_up(record, key).map(Arc::new);
        self.known.insert(place, described.clone());
        Ok(described)
    }

    fn look_up(&self, record: &EtwRecord<'_>, key: InfoKey) -> Option<Described> {
        let layout = Layout { version: record.descriptor.version, pointer: record.pointer_size };
        let event = record.into();
        let of = |specs: &'static [EventSpec]| specs.iter().find(|spec| spec.is_of(&event));
        let (provider, spec) = match key {
            InfoKey::Classic(..) => (kernel::provider_name(record.provider), of(KernelEvent::SPECS)),
            InfoKey::Manifest(provider, ..) => match clr::provider_name(provider) {
                Some(name) => (Some(name), of(ClrEvent::SPECS)),
                // What the trace says of the other tables' events is as Windows had it.
                None if self.learnt.contains_key(&key) => (None, None),
                None => (windows::provider_name(provider), of(WindowsEvent::SPECS)),
            },
        };
        if let (Some(provider), Some(spec)) = (provider, spec) {
            let format = spec.format(layout).ok()?;
            return Some(Described {
                provider: provider.into(),
                name: spec.name.into(),
                format: Arc::new(format),
            });
        }
        let asked;
        let info = if let Some(learnt) = self.learnt.get(&key) {
            learnt
        } else {
            asked = self.asked(record, key)?;
            &asked[..]
        };
        let info = EventInfo::parse(info, width_of(layout)).ok().filter(|info| info.key == key)?;
        let name = info.name().into();
        let provider = info.provider.unwrap_or_else(|| record.provider.to_string().into());
        Some(Described { provider, name, format: Arc::new(info.format) })
    }

    fn asked(&self, record: &EtwRecord<'_>, key: InfoKey) -> Option<Vec<u8>> {
        let is_asked = matches!(key, InfoKey::Manifest(..));
        self.ask.filter(|_| is_asked).and_then(|ask| ask(record))
    }

    /// An event that is one text.
    fn text(&mut self, record: &EtwRecord<'_>) -> Result<Arc<Described>, DescriptionError> {
        let place = (record.provider, record.pointer_size);
        // No event describes itself by nothing.
        if let Some(known) = self.own.get(&place).and_then(|known| known.get(&[][..])) {
            return Ok(known.clone());
        }
        let mut format = EventFormat::new(ByteOrder::Little);
        let (kind, extent) = (FieldKind::Utf16, Extent::ZeroTerminated);
        let field = EventField::new("Message", "win:UnicodeString", kind, extent, Place::AfterPrevious);
        format.add_field(field).map_err(|error| DescriptionError {
            what: "a text",
            position: 0,
            problem: error.into(),
        })?;
        let provider = record.provider.to_string().into();
        let described =
            Arc::new(Described { provider, name: "EventWriteString".into(), format: Arc::new(format) });
        self.keep(place, &[], &described);
        Ok(described)
    }

    fn keep(&mut self, place: (Guid, PointerSize), description: &[u8], described: &Arc<Described>) {
        // A description has hundreds of bytes at least once it is read, so that the bytes bound their number, too.
        let bytes = description.len().max(MOST_BYTES / MOST);
        let fields = self.fields + u64::from(described.format.total_fields());
        if self.bytes + bytes <= MOST_BYTES && fields <= MOST_FIELDS {
            self.bytes += bytes;
            self.fields = fields;
            self.own.entry(place).or_default().insert(description.into(), described.clone());
        }
    }

    fn own(
        &mut self,
        record: &EtwRecord<'_>,
        description: &[u8],
    ) -> Result<Arc<Described>, DescriptionError> {
        let place = (record.provider, record.pointer_size);
        if let Some(known) = self.own.get(&place).and_then(|known| known.get(description)) {
            return Ok(known.clone());
        }
        let layout = Layout { version: record.descriptor.version, pointer: record.pointer_size };
        let event = TraceLoggingEvent::parse(description, width_of(layout))?;
        // Its fields are told by the event alone.
        let traits = record.extended.provider_traits.and_then(|traits| ProviderTraits::parse(traits).ok());
        let provider = traits.map_or_else(|| record.provider.to_string().into(), |traits| traits.name);
        let described = Arc::new(Described { provider, name: event.name, format: Arc::new(event.format) });
        self.keep(place, description, &described);
        Ok(described)
    }
}
