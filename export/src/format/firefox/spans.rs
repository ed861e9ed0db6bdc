//! Spans that become markers, in the row of their timeline: each with its name and its attributes.
//!
//! As of samples, there is a type for each list of attributes' names and forms that occurs. A span that went on when the recording ended is the
//! start of a marker without an end, which readers show as unfinished. Whose timeline it is is told by the type's name.

use collector_common::intern::StringId;
use collector_common::record::{AttributeListId, ExportMachine, Span, TimelineOwner};
use fxprof_processed_profile::{
    CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTypeHandle, Profile,
    RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, StringHandle,
};

use super::attributes::{Names, Schema, Values, names};
use crate::table::Table;

/// What names of types begin with. That of a kind of samples begins with something else.
pub(crate) const OF_THREADS: &str = "span";
pub(crate) const OF_PROCESSES: &str = "span of a process";
pub(crate) const OF_RECORDINGS: &str = "span of the recording";

/// The field of the span's name, which is before those of attributes.
pub(crate) const NAME: &str = "span";
const FIRST_ATTRIBUTE: u32 = 1;

/// All that was made for spans so far.
#[derive(Debug, Default)]
pub(super) struct Spans {
    types: Table<(&'static str, Names), MarkerTypeHandle>,
    by_list: Table<(&'static str, AttributeListId), Prepared>,
}

/// What markers with one list of attributes have in common.
#[derive(Debug)]
struct Prepared {
    marker_type: MarkerTypeHandle,
    attributes: Values,
}

impl Spans {
    /// How many types there are.
    pub(super) fn types(&self) -> usize {
        self.types.len()
    }

    /// The marker of a span.
    pub(super) fn marker(
        &mut self,
        machine: &ExportMachine,
        span: &Span,
        out: &mut Profile,
    ) -> SpanMarker<'_> {
        let timeline = machine.timeline_of(span);
        let of = match timeline.map(|timeline| timeline.owner) {
            Some(TimelineOwner::Thread(_)) => OF_THREADS,
            Some(TimelineOwner::Process(_)) => OF_PROCESSES,
            Some(TimelineOwner::Recording) | None => OF_RECORDINGS,
        };
        let timeline = timeline.map_or(StringId::EMPTY, |timeline| timeline.name);
        let [timeline, name] = [timeline, span.name].map(|text| out.intern_string(machine.string(text)));
        let Self { types, by_list } = self;
        let prepared = by_list.entry((of, span.attributes)).or_insert_with(|| {
            let names = names(machine, span.attributes);
            let marker_type = *types
                .entry((of, names))
                .or_insert_with_key(|(_, names)| out.register_marker_type(schema(of, names, machine)));
            Prepared { marker_type, attributes: Values::of(machine, span.attributes, out) }
        });
        SpanMarker { prepared, timeline, name }
    }
}

fn schema(of: &str, attributes: &Names, machine: &ExportMachine) -> RuntimeSchemaMarkerSchema {
    let name = RuntimeSchemaMarkerField {
        key: NAME.to_owned(),
        label: "Span".to_owned(),
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    };
    let Schema { type_name, fields, shown } = Schema::of(of, attributes, machine);
    let label = format!("{{marker.data.{NAME}}}");
    let in_table = if shown.is_empty() { label.clone() } else { format!("{label} ({shown})") };
    RuntimeSchemaMarkerSchema {
        type_name,
        description: None,
        locations: MarkerLocations::MARKER_CHART
            | MarkerLocations::MARKER_TABLE
            | MarkerLocations::TIMELINE_OVERVIEW,
        chart_label: Some(label),
        tooltip_label: Some(format!("{{marker.name}}: {{marker.data.{NAME}}}")),
        table_label: Some(in_table),
        fields: [name].into_iter().chain(fields).collect(),
        graphs: Vec::new(),
    }
}

/// A span as a marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanMarker<'a> {
    prepared: &'a Prepared,
    timeline: StringHandle,
    name: StringHandle,
}

impl Marker for SpanMarker<'_> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.prepared.marker_type
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.timeline
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        let attribute = field.checked_sub(FIRST_ATTRIBUTE).and_then(|at| self.prepared.attributes.text(at));
        attribute.unwrap_or(self.name)
    }

    fn number_field_value(&self, field: u32) -> f64 {
        let attribute = field.checked_sub(FIRST_ATTRIBUTE).and_then(|at| self.prepared.attributes.number(at));
        attribute.unwrap_or_default()
    }
}
