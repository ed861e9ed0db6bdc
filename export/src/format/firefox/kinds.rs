//! What is told of kinds of samples as a whole, for which the format has no place: of each a type of markers of which there is none, whose fields'
//! labels say it.

use collector_common::record::{ExportMachine, SampleKind, SampleKindId};
use fxprof_processed_profile::{
    MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, Profile, RuntimeSchemaMarkerField,
    RuntimeSchemaMarkerSchema,
};

use super::roles::{Role, Sampling};

/// What names of such types begin with; a number follows, by which they are in order.
pub(crate) const OF_KINDS: &str = "kind: ";

/// The fields: the kind's name, its values' unit, and what one sample stands for in it.
pub(crate) const KIND: &str = "kind";
pub(crate) const UNIT: &str = "unit";
pub(crate) const PERIOD: &str = "period";

/// Of the kind that is the samples of the call tree: the value that has a weight of 1.
pub(crate) const WEIGHT: &str = "weight";

/// Of the kind that is to be looked at first, whatever this says.
pub(crate) const SHOWN: &str = "shown";

/// Tells of all kinds.
pub(super) fn tell(machine: &ExportMachine, roles: &[Role], out: &mut Profile) {
    for ((kind, role), number) in machine.kinds().iter().zip(roles).zip(0..) {
        let is_shown = machine.main_kind() == Some(SampleKindId(number));
        out.register_marker_type(schema(machine, kind, *role, number, is_shown));
    }
}

fn schema(
    machine: &ExportMachine,
    kind: &SampleKind,
    role: Role,
    number: u16,
    is_shown: bool,
) -> RuntimeSchemaMarkerSchema {
    let weight = match role {
        Role::Sampled(Sampling { divisor, is_time: false, .. }) => Some((WEIGHT, divisor.to_string())),
        _ => None,
    };
    let shown = is_shown.then(|| (SHOWN, "yes".to_owned()));
    let told = [
        Some((KIND, machine.string(kind.name).to_owned())),
        Some((UNIT, kind.unit.name().to_owned())),
        Some((PERIOD, kind.period.to_string())),
        weight,
        shown,
    ];
    let field = |(key, label): (&str, String)| RuntimeSchemaMarkerField {
        key: key.to_owned(),
        label,
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::empty(),
    };
    RuntimeSchemaMarkerSchema {
        type_name: format!("{OF_KINDS}{number}"),
        description: None,
        locations: MarkerLocations::empty(),
        chart_label: None,
        tooltip_label: None,
        table_label: None,
        fields: told.into_iter().flatten().map(field).collect(),
        graphs: Vec::new(),
    }
}
