//! Native memory: what is allocated by whom, what of it is not freed, and what never will be, likely.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};

use super::program::{self, Field};
use super::{Scenario, ScenarioOption};
use crate::session::SessionSettings;
use crate::source::Program;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "memory_tracking",
    alias: "memory",
    description: "bytes that programs allocate, what is not freed of them, and likely leaks, by stack",
    option: Some(ScenarioOption::Every(|settings| &mut settings.allocation_period)),
    gives_way_to: &[],
    register,
};

/// The event's data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct AllocatedBlock {
    /// Bytes that were asked for.
    pub(crate) bytes: u64,
    /// Where the block begins.
    pub(crate) address: u64,
    /// How many blocks it stands for.
    pub(crate) weight: f64,
}

fn register(settings: &mut SessionSettings) {
    program::record(settings, Program::Allocations, fields());
}

/// The fields of [`AllocatedBlock`].
pub(super) fn fields() -> [Field; 3] {
    let number = FieldKind::Unsigned(Width::W64);
    [
        ("bytes", "u64", number.clone(), Extent::One),
        ("address", "u64", number, Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
    ]
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::Allocations, fields());
        let data = AllocatedBlock { bytes: 1, address: 2, weight: 3.5 };
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("bytes")).unwrap(), 1);
        assert_eq!(data.try_get_u64(field("address")).unwrap(), 2);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 3.5_f64.to_bits());
    }
}
