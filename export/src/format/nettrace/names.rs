//! Frames with names in, ranges of addresses with names out, by mapping.
//!
//! Where a symbol begins and ends is not kept; what is known is which addresses on stacks it names. A name's range is from the
//! first of them to the last, as far as no other name is between. It is named after the address on the stack,
//! which is behind the call that the name was looked up by.

use collector_common::record::FrameFlags;

use super::places::{MappingNumber, Places};
use crate::format::Profile;
use crate::symbolize::NameId;

/// Addresses with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) mapping: MappingNumber,
    pub(super) first: u64,
    /// The last address, not the one after it, which is what `PerfView` takes it for.
    pub(super) last: u64,
    pub(super) name: NameId,
}

/// Names for all places that were asked for, by mapping and address.
pub(super) fn ranges(Profile { machine, symbols }: Profile<'_>, places: &Places<'_>) -> Vec<Range> {
    let mut named: Vec<(MappingNumber, u64, bool, NameId)> = places
        .known()
        .filter(|&(frame, _)| symbols.is_resolved(frame))
        .filter_map(|(frame, place)| {
            let is_exact = !machine.frames().get(frame).flags.has(FrameFlags::RETURN_ADDRESS);
            Some((place.mapping?, place.address, is_exact, symbols.name_id(frame)))
        })
        .collect();
    // A function that ends with a call returns to where the next one begins: one address with two names, of which there is
    // room for one. Returns are more often on stacks than the first byte of a function.
    named.sort_unstable();
    named.dedup_by_key(|&mut (mapping, address, ..)| (mapping, address));
    let mut ranges: Vec<Range> = Vec::new();
    for (mapping, address, _, name) in named {
        match ranges.last_mut() {
            Some(range) if (range.mapping, range.name) == (mapping, name) => range.last = address,
            _ => ranges.push(Range { mapping, first: address, last: address, name }),
        }
    }
    ranges
}
