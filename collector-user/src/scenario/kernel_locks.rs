//! The event of a wait for a lock of the kernel, and its data as closures get them.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};
use collector_common::wire::COMM_LEN;

use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::Program;

/// The event's data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct KernelLockTime {
    /// Nanoseconds until the thread had the lock, or gave up.
    pub(crate) took_ns: u64,
    /// How many waits it stands for.
    pub(crate) weight: f64,
    /// Address of the lock.
    pub(crate) lock: u64,
    /// `LCB_F_*` of `include/trace/events/lock.h`.
    pub(crate) flags: u32,
    /// Thread that had it when the wait began; 0 where the lock does not tell.
    pub(crate) owner_tid: u32,
    /// Name of that.
    pub(crate) owner_comm: [u8; COMM_LEN],
}

/// Has a session record waits for locks of the kernel, with their stacks.
pub(super) fn register(settings: &mut SessionSettings) {
    program::record(settings, Program::KernelLocks, fields());
}

/// The fields of [`KernelLockTime`].
fn fields() -> [Field; 6] {
    let (number, id) = (FieldKind::Unsigned(Width::W64), FieldKind::Unsigned(Width::W32));
    [
        ("took_ns", "u64", number.clone(), Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
        ("lock", "u64", number, Extent::One),
        ("flags", "u32", id.clone(), Extent::One),
        ("owner_tid", "u32", id, Extent::One),
        ("owner_comm", "char[16]", FieldKind::Char, Extent::Array(COMM_LEN as u32)),
    ]
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::KernelLocks, fields());
        let mut owner_comm = [0; COMM_LEN];
        owner_comm[..4].copy_from_slice(b"init");
        let data = KernelLockTime { took_ns: 1, weight: 2.5, lock: 3, flags: 4, owner_tid: 5, owner_comm };
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("took_ns")).unwrap(), 1);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 2.5_f64.to_bits());
        assert_eq!(data.try_get_u64(field("lock")).unwrap(), 3);
        assert_eq!(data.try_get_u32(field("flags")).unwrap(), 4);
        assert_eq!(data.try_get_u32(field("owner_tid")).unwrap(), 5);
        assert_eq!(data.try_get_str(field("owner_comm")).unwrap(), "init");
    }
}
