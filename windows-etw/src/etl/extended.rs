//! What goes with an event besides its payload, between its header and that. Each item: u16 bytes of the item, u16 type, u16
//! whose lowest bit says that another follows, u16 bytes of data, the data; the next one is at a multiple of 8.
//!
//! Source: `evntcons.h` (`EVENT_HEADER_EXT_TYPE_*`, `EVENT_EXTENDED_ITEM_*`). In memory an item has a pointer to its data;
//! that in a file the data follow, and that the first number is the size, is read off files.

use super::bytes::{guid_at, u16_at, u32_at, u64_at};
use crate::record::{Extended, Instance, PointerSize, StackItem, StackKey};

const ITEM_HEADER: usize = 8;

/// Items, and the bytes that they have. None where they reach past the record.
pub(super) fn parse(bytes: &[u8]) -> Option<(Extended<'_>, usize)> {
    let mut extended = Extended::default();
    let mut at = 0;
    loop {
        let (size, length) = (usize::from(u16_at(bytes, at)?), usize::from(u16_at(bytes, at + 6)?));
        let (kind, linkage) = (u16_at(bytes, at + 2)?, u16_at(bytes, at + 4)?);
        let data = bytes.get(at + ITEM_HEADER..at + ITEM_HEADER + length)?;
        keep(&mut extended, kind, data);
        at += (ITEM_HEADER + length).max(size).next_multiple_of(8);
        if linkage & 1 == 0 {
            return Some((extended, at.min(bytes.len())));
        }
    }
}

/// Keeps an item by its type, from a file or from memory. Those that have too few bytes, and of which there is no use (PEBS index, PSM key, control GUID, QPC delta), are left out.
pub(crate) fn keep<'a>(extended: &mut Extended<'a>, kind: u16, data: &'a [u8]) {
    match kind {
        0x1 => extended.related_activity = guid_at(data, 0),
        0x2 => extended.sid = Some(data),
        0x3 => extended.terminal_session = u32_at(data, 0),
        0x4 => extended.instance = instance(data),
        0x5 => extended.stack = stack(data, PointerSize::Bits32),
        0x6 => extended.stack = stack(data, PointerSize::Bits64),
        0x8 => extended.counters = Some(data),
        0xa => extended.event_key = u64_at(data, 0),
        0xb => extended.self_description = Some(data),
        0xc => extended.provider_traits = Some(data),
        0xd => extended.process_start_key = u64_at(data, 0),
        0x10 => extended.container = Some(data),
        0x11 => extended.stack_key = stack_key(data, PointerSize::Bits32),
        0x12 => extended.stack_key = stack_key(data, PointerSize::Bits64),
        _ => {}
    }
}

/// `EVENT_EXTENDED_ITEM_INSTANCE`: two u32 and a GUID.
pub(super) fn instance(data: &[u8]) -> Option<Instance> {
    Some(Instance { id: u32_at(data, 0)?, parent_id: u32_at(data, 4)?, parent: guid_at(data, 8)? })
}

/// `EVENT_EXTENDED_ITEM_STACK_TRACE32` and `64`: a u64, and addresses.
fn stack(data: &[u8], width: PointerSize) -> Option<StackItem<'_>> {
    let (addresses, match_id) = (data.get(8..)?, u64_at(data, 0)?);
    let whole = addresses.len() / width.bytes() * width.bytes();
    Some(StackItem { match_id, width, addresses: &addresses[..whole] })
}

/// `EVENT_EXTENDED_ITEM_STACK_KEY32` and `64`: a u64, and the key.
fn stack_key(data: &[u8], width: PointerSize) -> Option<StackKey> {
    let key = match width {
        PointerSize::Bits32 => u64::from(u32_at(data, 8)?),
        PointerSize::Bits64 => u64_at(data, 8)?,
    };
    Some(StackKey { match_id: u64_at(data, 0)?, key })
}
