//! The event of a call that transfers data, and its data as closures get them.

use bytemuck::{Pod, Zeroable};
use collector_common::event::{Extent, FieldKind, FloatWidth, Width};
use collector_common::wire::Transfer;

use super::program::{self, Field};
use crate::session::SessionSettings;
use crate::source::Program;

/// Bytes of a path or an address with a NUL behind it.
const PLACE: usize = 528;

/// The event's data.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct TransferTime {
    /// Nanoseconds from the entry of the call to its exit.
    took_ns: u64,
    /// What it returned: from -4095 to -1 the number of an error.
    returned: i64,
    /// Bytes that were transferred.
    bytes: u64,
    /// How many calls it stands for.
    weight: f64,
    /// Of a socket: the port on this side.
    local_port: u32,
    /// 1 where there was no room for all of the path.
    is_cut: u32,
    /// What the call does, NUL-padded.
    operation: [u8; 8],
    /// What to, NUL-padded.
    kind: [u8; 24],
    /// The path or the address, NUL-padded.
    place: [u8; PLACE],
}

impl TransferTime {
    /// With what the call does, what to, and where that is.
    pub(crate) fn new(transfer: &Transfer, weight: f64, [operation, kind, place]: [&str; 3]) -> Self {
        let Transfer { took: took_ns, returned, bytes, local_port, is_cut, .. } = *transfer;
        let (operation, kind, place) = (padded(operation), padded(kind), padded(place));
        Self { took_ns, returned, bytes, weight, local_port, is_cut, operation, kind, place }
    }
}

/// As much of a text as there is room for, with a NUL behind it.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let text = &text[..text.floor_char_boundary(N - 1)];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Has a session record such calls with their stacks: those of files, or those of sockets.
pub(super) fn register(settings: &mut SessionSettings, program: Program) {
    let place = if program == Program::NetworkIo { "address" } else { "path" };
    program::record(settings, program, fields(place));
}

/// The fields of [`TransferTime`].
fn fields(place: &'static str) -> [Field; 9] {
    let number = FieldKind::Unsigned(Width::W64);
    let text = |len| (FieldKind::Char, Extent::Array(len));
    let ((kind, operation_len), (_, kind_len), (_, place_len)) = (text(8), text(24), text(PLACE as u32));
    [
        ("took_ns", "u64", number.clone(), Extent::One),
        ("returned", "i64", FieldKind::Signed(Width::W64), Extent::One),
        ("bytes", "u64", number, Extent::One),
        ("weight", "f64", FieldKind::Float(FloatWidth::W64), Extent::One),
        ("local_port", "u32", FieldKind::Unsigned(Width::W32), Extent::One),
        ("is_cut", "bool", FieldKind::Bool(Width::W32), Extent::One),
        ("operation", "char[8]", kind.clone(), operation_len),
        ("kind", "char[24]", kind.clone(), kind_len),
        (place, "char[528]", kind, place_len),
    ]
}

#[cfg(test)]
mod tests {
    use collector_common::event::EventData;

    use super::*;

    #[test]
    fn fields_lie_where_the_data_has_them() {
        let event = program::event(Program::FileIo, fields("path"));
        let transfer =
            Transfer { took: 1, returned: -2, bytes: 3, local_port: 4, is_cut: 1, ..Transfer::zeroed() };
        let data = TransferTime::new(&transfer, 5.5, ["receive", "character device", "/dev/null"]);
        let bytes = bytemuck::bytes_of(&data);
        let format = event.format();
        assert_eq!(format.size(), Some(bytes.len() as u32));
        let data = EventData::new(bytes, bytes, format);
        let field = |name| format.field_ref(name).unwrap();
        assert_eq!(data.try_get_u64(field("took_ns")).unwrap(), 1);
        assert_eq!(data.try_get_i64(field("returned")).unwrap(), -2);
        assert_eq!(data.try_get_u64(field("bytes")).unwrap(), 3);
        assert_eq!(data.try_get_f64(field("weight")).unwrap().to_bits(), 5.5_f64.to_bits());
        assert_eq!(data.try_get_u32(field("local_port")).unwrap(), 4);
        assert!(data.try_get_bool(field("is_cut")).unwrap());
        assert_eq!(data.try_get_str(field("operation")).unwrap(), "receive");
        assert_eq!(data.try_get_str(field("kind")).unwrap(), "character device");
        assert_eq!(data.try_get_str(field("path")).unwrap(), "/dev/null");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(padded::<4>("abc"), *b"abc\0");
        assert_eq!(padded::<4>("abcd"), *b"abc\0");
        assert_eq!(padded::<4>("abü"), *b"ab\0\0");
    }
}
