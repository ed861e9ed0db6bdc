//! What goes with an event besides its payload: each item's bytes by its type.
//!
//! Source: `evntcons.h` (`EVENT_HEADER_EXT_TYPE_*`, `EVENT_EXTENDED_ITEM_*`). Numbers are little-endian.

use collector_common::event::{ByteOrder, Guid};

use crate::record::{Extended, Instance, PointerSize, StackItem, StackKey};

/// Keeps an item. One that has too few bytes, and of which there is no use, is left out.
pub(super) fn keep<'a>(extended: &mut Extended<'a>, kind: u16, data: &'a [u8]) {
    match kind {
        1 => extended.related_activity = guid(data, 0),
        2 => extended.sid = Some(data),
        3 => extended.terminal_session = number(data, 0).map(u32::from_le_bytes),
        4 => {
            extended.instance = (|| {
                let id = number(data, 0).map(u32::from_le_bytes)?;
                let parent_id = number(data, 4).map(u32::from_le_bytes)?;
                Some(Instance { id, parent_id, parent: guid(data, 8)? })
            })();
        }
        5 => extended.stack = stack(data, PointerSize::Bits32),
        6 => extended.stack = stack(data, PointerSize::Bits64),
        8 => extended.counters = Some(data),
        10 => extended.event_key = number(data, 0).map(u64::from_le_bytes),
        11 => extended.self_description = Some(data),
        12 => extended.provider_traits = Some(data),
        13 => extended.process_start_key = number(data, 0).map(u64::from_le_bytes),
        16 => extended.container = Some(data),
        17 => {
            let key = number(data, 8).map(|key| u32::from_le_bytes(key).into());
            extended.stack_key = stack_key(data, key);
        }
        18 => extended.stack_key = stack_key(data, number(data, 8).map(u64::from_le_bytes)),
        _ => {}
    }
}

fn number<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

fn guid(data: &[u8], at: usize) -> Option<Guid> {
    number(data, at).map(|bytes| Guid::from_bytes(bytes, ByteOrder::Little))
}

/// A u64, and whole addresses.
fn stack(data: &[u8], width: PointerSize) -> Option<StackItem<'_>> {
    let (match_id, addresses) = data.split_first_chunk()?;
    let whole = addresses.len() - addresses.len() % width.bytes();
    Some(StackItem { match_id: u64::from_le_bytes(*match_id), width, addresses: &addresses[..whole] })
}

fn stack_key(data: &[u8], key: Option<u64>) -> Option<StackKey> {
    Some(StackKey { match_id: number(data, 0).map(u64::from_le_bytes)?, key: key? })
}
