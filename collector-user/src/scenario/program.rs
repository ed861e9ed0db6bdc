//! Has a session run one of our programs in the kernel, once, however often it is asked for.

use collector_common::event::{Event, EventField, EventFlags, EventId, Extent, FieldKind, Place};

use crate::session::SessionSettings;
use crate::source::{Hook, Program, Trigger};

/// A field of a program's data: its name, its type as C has it, what it is, and how many of that. Each lies behind the one before.
pub(super) type Field = (&'static str, &'static str, FieldKind, Extent);

/// Records what a program tells, with stacks. Closures get its data by these fields.
pub(super) fn record(
    settings: &mut SessionSettings,
    program: Program,
    fields: impl IntoIterator<Item = Field>,
) {
    if !is_registered(settings, program) {
        let mut event = event(program, fields);
        event.flags_mut().set(EventFlags::CALLSTACK, true);
        settings.events.push(Hook::program(event, program));
    }
}

/// Has a program count.
pub(super) fn count(settings: &mut SessionSettings, program: Program) {
    if !is_registered(settings, program) {
        settings.events.push(Hook::program(event(program, []), program));
    }
}

/// A program's event.
pub(super) fn event(program: Program, fields: impl IntoIterator<Item = Field>) -> Event {
    let mut event = Event::new(EventId(0), program.name());
    for (name, type_name, kind, extent) in fields {
        let field = EventField::new(name, type_name, kind, extent, Place::AfterPrevious);
        let added = event.format_mut().add_field(field);
        added.unwrap_or_else(|error| unreachable!("the fields are constant: {error}"));
    }
    event
}

fn is_registered(settings: &SessionSettings, program: Program) -> bool {
    settings.events.iter().any(|hook| hook.trigger == Trigger::Program(program))
}
