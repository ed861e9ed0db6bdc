//! All events of the tables: to look one up by name or by record.

use collector_common::payload::EventSpec;
use collector_common::payload::clr::ClrEvent;

use super::kernel::KernelEvent;
use super::windows::WindowsEvent;
use crate::record::EtwRecord;

/// All events of the tables: classic ones, .NET's, and those of Windows' own manifests.
pub fn specs() -> impl Iterator<Item = &'static EventSpec> + Clone {
    KernelEvent::SPECS.iter().chain(ClrEvent::SPECS).chain(WindowsEvent::SPECS)
}

/// What a record is by the tables.
pub fn spec_of(record: &EtwRecord<'_>) -> Option<&'static EventSpec> {
    let event = record.into();
    specs().find(|spec| spec.is_of(&event))
}
