//! What is read and written: how long block devices take for requests, and how large those are; calls on files, pipes and
//! sockets with their paths and addresses; TCP connections.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};

use super::Scenario;
use super::program::{self, Field};
use super::transfer_time;
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "io_monitoring",
    alias: "io",
    description: "reads, writes and calls on sockets by path and address, TCP connections, requests to block devices",
    option: None,
    gives_way_to: &[],
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
    program::record(settings, Program::BlockRequests, fields());
    transfer_time::register(settings, Program::FileIo);
    transfer_time::register(settings, Program::NetworkIo);
}

/// The fields of [`BlockTime`].
fn fields() -> [Field; 5] {
    let (number, id) = (FieldKind::Unsigned(Width::W64), FieldKind::Unsigned(Width::W32));
    [
        ("took_ns", "u64", number.clone(), Extent::One),
        ("bytes", "u64", number, Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
        ("device", "u32", id.clone(), Extent::One),
        ("operation", "u32", id, Extent::One),
    ]
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::BlockRequests, fields());
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
