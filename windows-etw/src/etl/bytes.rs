//! Numbers in bytes of a file: little-endian, at an offset, and none where the bytes end before them.

use collector_common::event::{ByteOrder, Guid};

/// As many bytes as the result has, at `at`.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(super) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array(bytes, at).map(i32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

pub(super) fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    array(bytes, at).map(i64::from_le_bytes)
}

pub(super) fn guid_at(bytes: &[u8], at: usize) -> Option<Guid> {
    array(bytes, at).map(|guid| Guid::from_bytes(guid, ByteOrder::Little))
}

/// UTF-16 up to a zero, or up to the end where there is none. With it, how many bytes that were, the zero included.
pub(super) fn utf16(bytes: &[u8]) -> (String, usize) {
    let units = || bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let length = units().take_while(|unit| *unit != 0).count();
    let text =
        char::decode_utf16(units().take(length)).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    (text.collect(), (2 * length + 2).min(bytes.len()))
}
