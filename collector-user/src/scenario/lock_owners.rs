//! The event of the release of a lock of user code that another thread waited for, and its data as closures get them.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};
use collector_common::wire::COMM_LEN;

use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::Program;

/// The event's data. The event itself is of the thread that released the lock, when it did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct LockOwnerTime {
    /// Nanoseconds for which the other thread had waited.
    pub(crate) blocked_ns: u64,
    /// How many waits it stands for.
    pub(crate) weight: f64,
    /// Address of the lock, in the waiter's memory.
    pub(crate) lock: u64,
    /// Process of the waiter.
    pub(crate) waiter_pid: u32,
    /// The waiter.
    pub(crate) waiter_tid: u32,
    /// Its name.
    pub(crate) waiter_comm: [u8; COMM_LEN],
}

/// Has a session charge waits for locks to who released them, where it records those waits.
pub(super) fn register(settings: &mut SessionSettings) {
    program::record(settings, Program::LockOwners, fields());
}

/// The fields of [`LockOwnerTime`].
fn fields() -> [Field; 6] {
    let (number, id) = (FieldKind::Unsigned(Width::W64), FieldKind::Unsigned(Width::W32));
    [
        ("blocked_ns", "u64", number.clone(), Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
        ("lock", "u64", number, Extent::One),
        ("waiter_pid", "u32", id.clone(), Extent::One),
        ("waiter_tid", "u32", id, Extent::One),
        ("waiter_comm", "char[16]", FieldKind::Char, Extent::Array(COMM_LEN as u32)),
    ]
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::LockOwners, fields());
        let mut waiter_comm = [0; COMM_LEN];
        waiter_comm[..4].copy_from_slice(b"init");
        let (blocked_ns, weight, lock, waiter_pid, waiter_tid) = (1, 2.5, 3, 4, 5);
        let data = LockOwnerTime { blocked_ns, weight, lock, waiter_pid, waiter_tid, waiter_comm };
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("blocked_ns")).unwrap(), 1);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 2.5_f64.to_bits());
        assert_eq!(data.try_get_u64(field("lock")).unwrap(), 3);
        assert_eq!(data.try_get_u32(field("waiter_pid")).unwrap(), 4);
        assert_eq!(data.try_get_u32(field("waiter_tid")).unwrap(), 5);
        assert_eq!(data.try_get_str(field("waiter_comm")).unwrap(), "init");
    }
}
