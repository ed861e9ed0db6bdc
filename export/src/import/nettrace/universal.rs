//! Events of `Universal.System` in, what they say of processes and code out (`UniversalProviders.md` of microsoft/perfview).

use crate::format::nettrace::{Event, Value};

/// Who tells of processes and code.
pub(super) const SYSTEM: &str = "Universal.System";

/// Whose events are samples, with a value each.
pub(super) const EVENTS: &str = "Universal.Events";

/// What one of these events says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A process's name, its pid in its pid namespace, if that is told, and whether it began then.
    Process { name: String, namespace_pid: Option<u32>, is_new: bool },
    /// The process ended.
    Exit,
    /// A file is mapped, from its `offset` on.
    Mapping { id: u64, first: u64, end: u64, offset: u64, file: String, metadata: u64 },
    /// Addresses of a mapping, the last one included, are a function's.
    Symbol { mapping: u64, first: u64, last: u64, name: String },
    /// What is known of a mapped file, and of its version, as JSON.
    Metadata { id: u64, symbols: String, version: String },
}

/// Which of the fields of an event are text; the rest are numbers.
const fn are_text(id: u32) -> &'static [bool] {
    match id {
        0 | 1 | 5 => &[false, true, true],
        3 => &[false, false, false, false, true, false],
        4 => &[false, false, false, false, true],
        _ => &[],
    }
}

/// More fields than any of these events has.
const MOST_FIELDS: usize = 16;

/// The values of an event. What they are is known by its number, which is what `PerfView` goes by, and not all writers describe them right.
fn values(event: &Event<'_>) -> Option<Vec<Value>> {
    // The document has it in mappings, too; no writer is known.
    let has_pid = event.event_type.field_names().take(MOST_FIELDS).any(|name| name == "ProcessId");
    let known = if has_pid { None } else { event.known_values(are_text(event.event_type.id)) };
    match known {
        Some(Ok(values)) => Some(values),
        _ => event.values().ok(),
    }
}

/// What an event says; `None` where its fields are not those of the specification.
pub(super) fn told(event: &Event<'_>) -> Option<Told> {
    use Value::{Text, Unsigned};
    let mut values = values(event)?;
    if event.event_type.field_names().nth(1) == Some("ProcessId") && values.len() > 1 {
        values.remove(1);
    }
    let told = match (event.event_type.id, &*values) {
        (id @ (0 | 1), [inner, Text(name), ..]) => {
            // It is 0 where other tools do not know it.
            let namespace_pid = match inner {
                &Unsigned(pid) => u32::try_from(pid).ok().filter(|pid| *pid > 0),
                _ => None,
            };
            Told::Process { name: name.clone(), namespace_pid, is_new: id == 1 }
        }
        (2, _) => Told::Exit,
        (
            3,
            &[
                Unsigned(id),
                Unsigned(first),
                Unsigned(end),
                Unsigned(offset),
                Text(ref file),
                Unsigned(metadata),
                ..,
            ],
        ) => Told::Mapping { id, first, end, offset, file: file.clone(), metadata },
        (4, &[_, Unsigned(mapping), Unsigned(first), Unsigned(last), Text(ref name), ..]) => {
            Told::Symbol { mapping, first, last, name: name.clone() }
        }
        (5, &[Unsigned(id), Text(ref symbols), Text(ref version), ..]) => {
            Told::Metadata { id, symbols: symbols.clone(), version: version.clone() }
        }
        _ => return None,
    };
    Some(told)
}

/// A sample's value; 1 where it has none.
pub(super) fn value(event: &Event<'_>) -> i64 {
    match event.first_value().ok().flatten() {
        Some(Value::Unsigned(value)) => value.try_into().unwrap_or(i64::MAX),
        Some(Value::Signed(value)) => value,
        _ => 1,
    }
}
