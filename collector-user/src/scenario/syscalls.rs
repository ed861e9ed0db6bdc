//! Which system calls there are: how often, how many fail, and for how long, counted in the kernel; the slowest with their
//! stacks.

use collector_common::event::{
    Event, EventField, EventFlags, EventId, Extent, FieldKind, FormatError, Place, Width,
};

use super::Scenario;
use super::time_off::is_registered;
use crate::session::SessionSettings;
use crate::source::{Hook, Program};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "syscalls",
    alias: "sys",
    description: "system calls: how often, errors, histograms of how long; the slowest by stack",
    has_shortest_time: false,
    register,
};

fn register(settings: &mut SessionSettings) {
    let program = Program::SystemCalls;
    if is_registered(settings, program) {
        return;
    }
    let mut event = Event::new(EventId(0), program.name());
    add_fields(&mut event).unwrap_or_else(|error| unreachable!("the fields are constant: {error}"));
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    settings.events.push(Hook::program(event, program));
}

/// The fields of `collector_common::wire::Call`.
fn add_fields(event: &mut Event) -> Result<(), FormatError> {
    let fields = [
        ("duration_ns", "u64", FieldKind::Unsigned(Width::W64)),
        ("returned", "i64", FieldKind::Signed(Width::W64)),
        ("slot", "u32", FieldKind::Unsigned(Width::W32)),
    ];
    for (name, type_name, kind) in fields {
        let field = EventField::new(name, type_name, kind, Extent::One, Place::AfterPrevious);
        event.format_mut().add_field(field)?;
    }
    Ok(())
}
