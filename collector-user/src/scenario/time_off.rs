//! The event of a time that a thread was off its CPU, and its data as closures get them.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};
use collector_common::wire::COMM_LEN;

use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::Program;

/// The event's data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct TimeOff {
    /// Nanoseconds until it was woken.
    pub(crate) blocked_ns: u64,
    /// Nanoseconds for which it then waited for a CPU.
    pub(crate) waited_ns: u64,
    /// How many times off it stands for.
    pub(crate) weight: f64,
    /// `task_struct::__state`; 0 where it could have run on.
    pub(crate) state: u32,
    /// 1 where it was not over when the recording ended.
    pub(crate) is_open: u32,
    /// Process of who woke it; 0 where it was an interrupt.
    pub(crate) waker_pid: u32,
    /// Thread of that, or 0.
    pub(crate) waker_tid: u32,
    /// Name of that: of an interrupt `[interrupt]`, or the name of the idle thread that it interrupted.
    pub(crate) waker_comm: [u8; COMM_LEN],
    /// Address of the lock of user code that was waited for; 0 where it was none, or no account is kept of that.
    pub(crate) lock: u64,
    /// 1 where it was one.
    pub(crate) is_lock: u32,
    /// 1 where that was released: it was no limit that ran out, and no signal.
    pub(crate) is_released: u32,
}

/// Has a session record times off with their stacks, for a program that tells of them.
pub(super) fn register(settings: &mut SessionSettings, program: Program) {
    program::record(settings, program, fields());
}

/// The fields of [`TimeOff`].
fn fields() -> [Field; 11] {
    let (number, id) = (FieldKind::Unsigned(Width::W64), FieldKind::Unsigned(Width::W32));
    let name = Extent::Array(COMM_LEN as u32);
    [
        ("blocked_ns", "u64", number.clone(), Extent::One),
        ("waited_ns", "u64", number.clone(), Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
        ("state", "u32", id.clone(), Extent::One),
        ("is_open", "bool", FieldKind::Bool(Width::W32), Extent::One),
        ("waker_pid", "u32", id.clone(), Extent::One),
        ("waker_tid", "u32", id, Extent::One),
        ("waker_comm", "char[16]", FieldKind::Char, name),
        ("lock", "u64", number, Extent::One),
        ("is_lock", "bool", FieldKind::Bool(Width::W32), Extent::One),
        ("is_released", "bool", FieldKind::Bool(Width::W32), Extent::One),
    ]
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::OffCpu, fields());
        let mut waker_comm = [0; COMM_LEN];
        waker_comm[..4].copy_from_slice(b"init");
        let (blocked_ns, waited_ns, weight, state, is_open) = (1, 2, 3.5, 4, 1);
        let (waker_pid, waker_tid, lock, is_lock, is_released) = (6, 7, 8, 1, 0);
        #[rustfmt::skip]
        let data = TimeOff {
            blocked_ns, waited_ns, weight, state, is_open, waker_pid, waker_tid, waker_comm, lock, is_lock, is_released,
        };
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("blocked_ns")).unwrap(), 1);
        assert_eq!(data.try_get_u64(field("waited_ns")).unwrap(), 2);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 3.5_f64.to_bits());
        assert_eq!(data.try_get_u32(field("state")).unwrap(), 4);
        assert!(data.try_get_bool(field("is_open")).unwrap());
        assert_eq!(data.try_get_u32(field("waker_pid")).unwrap(), 6);
        assert_eq!(data.try_get_u32(field("waker_tid")).unwrap(), 7);
        assert_eq!(data.try_get_str(field("waker_comm")).unwrap(), "init");
        assert_eq!(offset_of!(TimeOff, waker_comm), 40);
        assert_eq!(data.try_get_u64(field("lock")).unwrap(), 8);
        assert!(data.try_get_bool(field("is_lock")).unwrap());
        assert!(!data.try_get_bool(field("is_released")).unwrap());
    }
}
