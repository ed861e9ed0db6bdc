//! Frames with names in, ranges of addresses with names out, by mapping.
//!
//! Where a symbol begins and ends is not kept; what is known is which addresses on stacks it names. A name's range is from the
//! first of them to the last, as far as no address of another name, or without one, is between, in any mapping of the process: some held
//! the same addresses one after the other. An address is the one on the stack, which is behind the call that its name was looked up by.

use collector_common::record::{FrameFlags, ProcessId};

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

/// The process, the address, its mapping, whether it is that of an instruction and not where a call returns to, and its name, if it has one.
type Named = (Option<ProcessId>, u64, MappingNumber, bool, Option<NameId>);

/// Names for all places that were asked for, by mapping and address.
pub(super) fn ranges(Profile { machine, symbols }: Profile<'_>, places: &Places<'_>) -> Vec<Range> {
    let owner = |mapping: MappingNumber| {
        let mapping = mapping.position().and_then(|position| places.mappings().get(position));
        mapping.map(|mapping| mapping.process)
    };
    let mut named: Vec<Named> = places
        .known()
        .iter()
        .filter_map(|&(frame, place)| {
            let is_exact = !machine.frames().get(frame).flags.has(FrameFlags::RETURN_ADDRESS);
            let name = symbols.is_resolved(frame).then(|| symbols.name_id(frame));
            let mapping = place.mapping?;
            Some((owner(mapping), place.address, mapping, is_exact, name))
        })
        .collect();
    // A function that ends with a call returns to where the next one begins: one address with two names, of which there is
    // room for one. Returns are more often on stacks than the first byte of a function.
    named.sort_unstable();
    named.dedup_by_key(|&mut (_, address, mapping, ..)| (mapping, address));
    let mut ranges: Vec<Range> = Vec::new();
    for same in named.chunk_by(|a, b| (a.2, a.4) == (b.2, b.4)) {
        if let [(_, first, mapping, _, Some(name)), ..] = *same {
            let last = same.last().map_or(first, |&(_, address, ..)| address);
            ranges.push(Range { mapping, first, last, name });
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Svma};
    use collector_common::record::{ExportMachine, Frame, ModuleId};

    use super::*;
    use crate::symbolize::Symbols;

    /// `f` has three addresses, `g` lies between, the last call of `f` returns to where `h` begins, and a part of `h` has no name.
    #[test]
    fn a_name_ends_where_another_begins() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(1), "prog", None, Nanos(0));
        let (exact, ret) = (FrameFlags::KERNEL, FrameFlags::KERNEL | FrameFlags::RETURN_ADDRESS);
        let frames = [
            (0x10, exact, "f"),
            (0x18, ret, "f"),
            (0x20, exact, "g"),
            (0x30, ret, "f"),
            (0x30, exact, "h"),
            (0x34, exact, "h"),
            (0x38, exact, ""),
            (0x40, exact, "h"),
            (0x48, exact, "h"),
        ];
        let frames = frames.map(|(address, flags, name)| {
            let flags = FrameFlags(flags);
            (machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags }), name)
        });
        let mut symbols = Symbols::unresolved(&machine);
        let mut places = Places::of(&machine);
        for (frame, name) in frames {
            places.address(process, frame, Nanos(0));
            if !name.is_empty() {
                symbols.set(frame, name, name);
            }
        }
        let ranges = ranges(Profile { machine: &machine, symbols: &symbols }, &places);
        let ranges: Vec<_> =
            ranges.iter().map(|range| (range.first, range.last, symbols.function(range.name))).collect();
        assert_eq!(
            ranges,
            [(0x10, 0x18, "f"), (0x20, 0x20, "g"), (0x30, 0x30, "f"), (0x34, 0x34, "h"), (0x40, 0x48, "h")]
        );
    }
}
