//! What is read and written: how long block devices take for requests, and how large those are.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{
    Event, EventField, EventFlags, EventId, Extent, FieldKind, FloatWidth, FormatError, Place, Width,
};

use super::Scenario;
use super::time_off::is_registered;
use crate::session::SessionSettings;
use crate::source::{Hook, Program};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "io_monitoring",
    alias: "io",
    description: "nanoseconds that block devices take for requests, and their sizes, by device and stack",
    has_shortest_time: false,
    register,
};

/// The event's data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct BlockTime {
    /// Nanoseconds from when the device got the request until it was complete.
    pub(crate) took_ns: u64,
    /// Bytes to be transferred.
    pub(crate) bytes: u64,
    /// How many requests it stands for.
    pub(crate) weight: f64,
    /// The device's number in the kernel: `major << 20 | minor`.
    pub(crate) device: u32,
    /// `enum req_op` of `include/linux/blk_types.h`: 0 reads, 1 writes.
    pub(crate) operation: u32,
}

fn register(settings: &mut SessionSettings) {
    let program = Program::BlockRequests;
    if is_registered(settings, program) {
        return;
    }
    let mut event = Event::new(EventId(0), program.name());
    add_fields(&mut event).unwrap_or_else(|error| unreachable!("the fields are constant: {error}"));
    event.flags_mut().set(EventFlags::CALLSTACK, true);
    settings.events.push(Hook::program(event, program));
}

/// The fields of [`BlockTime`].
fn add_fields(event: &mut Event) -> Result<(), FormatError> {
    let (number, id) = (FieldKind::Unsigned(Width::W64), FieldKind::Unsigned(Width::W32));
    let fields = [
        ("took_ns", "u64", number.clone()),
        ("bytes", "u64", number),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64)),
        ("device", "u32", id.clone()),
        ("operation", "u32", id),
    ];
    for (name, type_name, kind) in fields {
        let field = EventField::new(name, type_name, kind, Extent::One, Place::AfterPrevious);
        event.format_mut().add_field(field)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let mut event = Event::new(EventId(0), "block_io");
        add_fields(&mut event).unwrap();
        let data = BlockTime { took_ns: 1, bytes: 2, weight: 3.5, device: 4, operation: 5 };
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("took_ns")).unwrap(), 1);
        assert_eq!(data.try_get_u64(field("bytes")).unwrap(), 2);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 3.5_f64.to_bits());
        assert_eq!(data.try_get_u32(field("device")).unwrap(), 4);
        assert_eq!(data.try_get_u32(field("operation")).unwrap(), 5);
    }
}
