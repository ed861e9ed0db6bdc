//! Kinds of samples by their names, and what markers are samples or spans of.
//!
//! Ours have a type that begins with `sample: `, whose schema tells the value's unit and the attributes' names. Of others those that have
//! a stack are samples of a kind that is called after the marker: of the time that it lasts, or of one occurrence.

use std::collections::HashMap;

use collector_common::intern::Seeded;
use collector_common::record::{AttributeListId, AttributeValue, ExportMachine, SampleKindId, Unit};

use super::columns::{Cell as _, Strings};
use super::json::{Data, Field, Schema};
use crate::format::firefox::{
    KIND, OF_KINDS, OF_PROCESSES, OF_RECORDINGS, OF_THREADS, PERIOD, SHOWN, SPAN, UNIT, WEIGHT,
};
use crate::import::room;

/// What a marker tells.
pub(super) struct Marked {
    pub(super) kind: SampleKindId,
    pub(super) value: i64,
    pub(super) cpu: u16,
    pub(super) attributes: AttributeListId,
}

/// Whose timeline a span is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanOf {
    Thread,
    Process,
    Recording,
}

impl SpanOf {
    fn of(type_name: &str) -> Option<Self> {
        match type_name.split(':').next()? {
            OF_THREADS => Some(Self::Thread),
            OF_PROCESSES => Some(Self::Process),
            OF_RECORDINGS => Some(Self::Recording),
            _ => None,
        }
    }
}

fn fields(schema: &Schema) -> impl Iterator<Item = &Field> {
    schema.fields.0.iter().chain(&schema.data.0)
}

/// Attributes' names, and whether they are numbers.
type Names<'a> = Vec<(&'a str, bool)>;

fn names(schema: &Schema) -> Names<'_> {
    let own = fields(schema).filter(|field| field.key.0.starts_with("attribute"));
    own.map(|field| (&*field.label.0, field.format.0 == "integer")).collect()
}

/// What our own files tell of a kind.
#[derive(Debug)]
struct ToldKind<'a> {
    /// They are in the order of these numbers.
    number: u16,
    name: &'a str,
    unit: Unit,
    period: u64,
    /// Of the kind that is the samples of the call tree: the value that has a weight of 1.
    weight: Option<i64>,
    is_shown: bool,
}

impl<'a> ToldKind<'a> {
    fn of(schema: &'a Schema) -> Option<Self> {
        let number = schema.name.0.strip_prefix(OF_KINDS)?.parse().ok()?;
        let label = |key: &str| fields(schema).find(|field| field.key.0 == key).map(|field| &*field.label.0);
        Some(Self {
            number,
            name: label(KIND)?,
            unit: Unit::by_name(label(UNIT)?)?,
            period: label(PERIOD)?.parse().ok().filter(|period| *period > 0)?,
            weight: label(WEIGHT).and_then(|weight| weight.parse().ok()).filter(|weight| *weight > 0),
            is_shown: label(SHOWN).is_some(),
        })
    }
}

/// What samples of the call tree are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) kind: SampleKindId,
    /// The value that has a weight of 1.
    pub(super) weight: i64,
}

fn attributes(
    machine: &mut ExportMachine,
    strings: &Strings,
    names: &Names<'_>,
    data: &Data,
) -> AttributeListId {
    let attributes = data.attributes.iter().take(room::MOST_ATTRIBUTES);
    let attributes: Vec<_> = attributes
        .filter_map(|&(position, number)| {
            let &(name, is_number) = names.get(position as usize)?;
            let value = if is_number {
                AttributeValue::Number(Some(number).filter(|number| !number.is_nan())?.round() as i64)
            } else {
                machine.intern_string(room::name(strings.get(u32::of(number))?)).into()
            };
            Some((machine.intern_string(room::name(name)), value))
        })
        .collect();
    machine.attributes_mut().intern(&attributes)
}

/// Kinds and types of markers.
#[derive(Default)]
pub(super) struct Events<'a> {
    kinds: HashMap<(String, Unit, u64), SampleKindId, Seeded>,
    /// What is told of kinds, in their order, until they are added.
    told: Vec<ToldKind<'a>>,
    /// Of kinds that are told of, by name and unit: that of the first, as markers don't tell theirs.
    periods: HashMap<(&'a str, Unit), u64, Seeded>,
    /// By type: the value's unit, and the names of attributes.
    types: HashMap<&'a str, (Unit, Names<'a>), Seeded>,
    /// By type of a span's marker: whose its timeline is, and the names of attributes.
    spans: HashMap<&'a str, (SpanOf, Names<'a>), Seeded>,
    /// What there was no room for.
    pub(super) no_room: u64,
}

impl<'a> Events<'a> {
    pub(super) fn of(schemas: impl Iterator<Item = &'a Schema> + Clone) -> Self {
        let spans = schemas.clone().filter_map(|schema| {
            let own = fields(schema).any(|field| field.key.0 == SPAN && field.label.0 == "Span");
            Some((&*schema.name.0, (SpanOf::of(&schema.name.0).filter(|_| own)?, names(schema))))
        });
        let spans = spans.collect();
        let mut told: Vec<ToldKind<'_>> = schemas.clone().filter_map(ToldKind::of).collect();
        told.sort_by_key(|kind| kind.number);
        let mut periods = HashMap::<_, _, Seeded>::default();
        for told in &told {
            periods.entry((told.name, told.unit)).or_insert(told.period);
        }
        let ours = schemas.filter(|schema| schema.name.0.starts_with("sample: "));
        let types = ours.map(|schema| {
            let value = fields(schema).find(|field| field.key.0 == "value");
            let unit = match value.map(|field| &*field.format.0) {
                Some("nanoseconds") => Unit::Nanoseconds,
                Some("bytes") => Unit::Bytes,
                _ => Unit::Count,
            };
            (&*schema.name.0, (unit, names(schema)))
        });
        Self { types: types.collect(), spans, told, periods, ..Self::default() }
    }

    /// Whether the profile is ours, or has markers of ours.
    pub(super) fn are_ours(&self) -> bool {
        !self.types.is_empty() || !self.periods.is_empty()
    }

    /// Adds the kinds that are told of. Out: what samples of the call tree are of, where that is told.
    pub(super) fn add_kinds(&mut self, machine: &mut ExportMachine) -> Option<Sampled> {
        let mut sampled = None;
        for told in std::mem::take(&mut self.told) {
            let kind = self.kind(machine, told.name, told.unit, told.period);
            if let Some(kind) = kind {
                sampled = sampled.or(told.weight.map(|weight| Sampled { kind, weight }));
                if told.is_shown {
                    machine.set_main_kind(kind);
                }
            }
        }
        sampled
    }

    /// The kind of a name; none where there are too many.
    pub(super) fn kind(
        &mut self,
        machine: &mut ExportMachine,
        name: &str,
        unit: Unit,
        period: u64,
    ) -> Option<SampleKindId> {
        let name = room::name(name);
        let key = (name.to_owned(), unit, period);
        if let Some(&kind) = self.kinds.get(&key) {
            return Some(kind);
        }
        if machine.kinds().len() >= ExportMachine::MOST_KINDS {
            self.no_room += 1;
            return None;
        }
        let kind = machine.add_kind(name, unit, period);
        self.kinds.insert(key, kind);
        Some(kind)
    }

    /// Whose span a marker is, and what it says of it; none where it is of something else.
    pub(super) fn span(
        &self,
        machine: &mut ExportMachine,
        strings: &Strings,
        data: &Data,
    ) -> Option<(SpanOf, AttributeListId)> {
        let (of, names) = self.spans.get(&*data.marker_type.0)?;
        Some((*of, attributes(machine, strings, names, data)))
    }

    /// What a marker is a sample of. `lasts` is in nanoseconds, where it does last.
    pub(super) fn marked(
        &mut self,
        machine: &mut ExportMachine,
        strings: &Strings,
        name: &str,
        data: &Data,
        lasts: Option<i64>,
    ) -> Option<Marked> {
        let Some((unit, names)) = self.types.get(&*data.marker_type.0) else {
            let unit = if lasts.is_some() { Unit::Nanoseconds } else { Unit::Count };
            let kind = self.kind(machine, name, unit, 1)?;
            let attributes = AttributeListId::NONE;
            return Some(Marked { kind, value: lasts.unwrap_or(1), cpu: 0, attributes });
        };
        let attributes = attributes(machine, strings, names, data);
        let unit = *unit;
        let period = self.periods.get(&(name, unit)).copied().unwrap_or(1);
        let kind = self.kind(machine, name, unit, period)?;
        let value = data.value.unwrap_or(1.0).round() as i64;
        Some(Marked { kind, value, cpu: data.cpu.unwrap_or_default() as u16, attributes })
    }
}
