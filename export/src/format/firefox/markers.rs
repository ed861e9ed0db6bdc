//! Samples that become markers: each with its value, its CPU, its attributes, and its stack.
//!
//! A kind's markers have a type for each list of attributes' names and forms that occurs, since the types' fields are fixed.

use super::attributes::{Names, Schema, Values, names, quoted};
use crate::table::Table;
use collector_common::record::{
    AttributeListId, ESTIMATED, ExportMachine, Sample, SampleKind, SampleKindId, Unit,
};
use fxprof_processed_profile::{
    CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTypeHandle, Profile,
    RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle,
};

/// What names of types begin with, so that no kind has the name of a type that is of none.
const OF_SAMPLES: &str = "sample: ";

/// Fields before those of attributes.
const FIRST_ATTRIBUTE: u32 = 2;

/// All that was made for markers so far.
#[derive(Debug, Default)]
pub(super) struct Markers {
    types: Table<(SampleKindId, Names), MarkerTypeHandle>,
    by_list: Table<(SampleKindId, AttributeListId), Prepared>,
}

/// What markers of one kind with one list of attributes have in common.
#[derive(Debug)]
struct Prepared {
    marker_type: MarkerTypeHandle,
    name: StringHandle,
    attributes: Values,
}

impl Markers {
    /// How many types there are.
    pub(super) fn types(&self) -> usize {
        self.types.len()
    }

    /// The marker of a sample; `None` if its kind is unknown.
    pub(super) fn marker(
        &mut self,
        machine: &ExportMachine,
        sample: &Sample,
        out: &mut Profile,
    ) -> Option<SampleMarker<'_>> {
        let key = (sample.kind, sample.attributes);
        if !self.by_list.contains_key(&key) {
            let prepared = self.prepare(machine, key, out)?;
            self.by_list.insert(key, prepared);
        }
        self.by_list.get(&key).map(|prepared| SampleMarker {
            prepared,
            value: sample.value as f64,
            cpu: f64::from(sample.cpu),
        })
    }

    fn prepare(
        &mut self,
        machine: &ExportMachine,
        (kind_id, list): (SampleKindId, AttributeListId),
        out: &mut Profile,
    ) -> Option<Prepared> {
        let kind = machine.kinds().get(usize::from(kind_id.0))?;
        let kind_name = machine.string(kind.name);
        let marker_type =
            *self.types.entry((kind_id, names(machine, list))).or_insert_with_key(|(_, names)| {
                let sort = sort(machine, kind_id, kind);
                out.register_marker_type(schema(kind, Schema::of(&sort, names, machine)))
            });
        let attributes = Values::of(machine, list, out);
        Some(Prepared { marker_type, name: out.intern_string(kind_name), attributes })
    }
}

/// What types of a kind's markers begin with. Of kinds of one name and several units each but the first's has its unit.
fn sort(machine: &ExportMachine, id: SampleKindId, kind: &SampleKind) -> String {
    let name = quoted(machine.string(kind.name));
    let mut before = machine.kinds().iter().take(usize::from(id.0));
    let is_first = !before.any(|other| other.name == kind.name && other.unit != kind.unit);
    let unit = if is_first { String::new() } else { format!(" ({})", kind.unit.name()) };
    format!("{OF_SAMPLES}{name}{unit}")
}

fn schema(kind: &SampleKind, of_attributes: Schema) -> RuntimeSchemaMarkerSchema {
    let (value, format) = match kind.unit {
        Unit::Count => ("Count", MarkerFieldFormat::Integer),
        Unit::Nanoseconds => ("Time", MarkerFieldFormat::Nanoseconds),
        Unit::Bytes => ("Bytes", MarkerFieldFormat::Bytes),
    };
    let field = |key: &str, label: &str, format| RuntimeSchemaMarkerField {
        key: key.to_owned(),
        label: label.to_owned(),
        format,
        flags: MarkerFieldFlags::empty(),
    };
    let own = [field("value", value, format), field("cpu", "CPU", MarkerFieldFormat::Integer)];
    let Schema { type_name, fields, shown } = of_attributes;
    let is_estimate = fields.iter().any(|field| field.label == ESTIMATED);
    let lasts = kind.unit == Unit::Nanoseconds && !kind.is_sum;
    // The application has no other unit for nanoseconds, as it has for how long a marker lasts.
    let value = if lasts && !is_estimate { "{marker.duration}" } else { "{marker.data.value}" };
    // Most counts are of one.
    let label = match kind.unit {
        Unit::Count if !shown.is_empty() => shown,
        _ if shown.is_empty() => value.to_owned(),
        _ => format!("{value}, {shown}"),
    };
    let mut locations = MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE;
    if lasts {
        locations |= MarkerLocations::TIMELINE_OVERVIEW;
    }
    RuntimeSchemaMarkerSchema {
        type_name,
        description: None,
        locations,
        chart_label: Some(label.clone()),
        tooltip_label: None,
        table_label: Some(label),
        fields: own.into_iter().chain(fields).collect(),
        graphs: Vec::new(),
    }
}

/// A sample as a marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleMarker<'a> {
    prepared: &'a Prepared,
    value: f64,
    cpu: f64,
}

impl Marker for SampleMarker<'_> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.prepared.marker_type
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.prepared.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        let attribute = field.checked_sub(FIRST_ATTRIBUTE).and_then(|at| self.prepared.attributes.text(at));
        // The type has as many fields as the list has attributes.
        attribute.unwrap_or(self.prepared.name)
    }

    fn number_field_value(&self, field: u32) -> f64 {
        match field.checked_sub(FIRST_ATTRIBUTE) {
            Some(at) => self.prepared.attributes.number(at).unwrap_or_default(),
            None if field == 0 => self.value,
            None => self.cpu,
        }
    }
}

/// A thread has another name from here on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renamed {
    pub(super) marker: StringHandle,
    pub(super) name: StringHandle,
}

impl StaticSchemaMarker for Renamed {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "renamed";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.name}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "name",
        label: "Name",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.marker
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.name
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// Something is told of the recording, or of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) marker: StringHandle,
    pub(super) text: StringHandle,
}

impl StaticSchemaMarker for Told {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "recording";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.text}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.text}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "text",
        label: "Text",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.marker
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.text
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}
