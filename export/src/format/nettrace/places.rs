//! A frame in, its address in a process out, and the mapping that it is in.
//!
//! A frame has the address that its file is linked for; what lies between that and the process's is the same for all of a
//! file's mappings until the file is unloaded and loaded anew. The kernel is one mapping, which all processes share.

use std::ops::Range;

use collector_common::ids::Nanos;
use collector_common::record::{
    ExportMachine, Frame, FrameId, ModuleId, ModuleKind, ModuleMapping, ProcessId,
};
use rustc_hash::FxHashMap;

/// Names a mapping in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MappingNumber(pub(super) u64);

impl MappingNumber {
    /// The kernel's: the upper half of the addresses, where each 64-bit kernel lives.
    pub(super) const KERNEL: Self = Self(1);

    /// That of the mapping at a position.
    pub(super) const fn at(position: u32) -> Self {
        Self(position as u64 + 2)
    }

    /// The position of the mapping, unless it is the kernel's.
    pub(super) const fn position(self) -> Option<usize> {
        match self.0.checked_sub(2) {
            Some(position) => Some(position as usize),
            None => None,
        }
    }
}

/// Where a frame is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// None where nothing is known to have been mapped.
    pub(super) mapping: Option<MappingNumber>,
    /// As it was on the stack.
    pub(super) address: u64,
}

/// Which of several places of one module in a process is meant: how often any was added by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Epoch(u32);

/// A frame in a process in a span of time.
type Key = (ProcessId, Epoch, FrameId);

/// Places of modules, and those of frames as far as they were asked for.
#[derive(Debug)]
pub(super) struct Places<'a> {
    machine: &'a ExportMachine,
    /// Positions of mappings by process, module and time.
    order: Vec<u32>,
    of_modules: FxHashMap<(ProcessId, ModuleId), Range<usize>>,
    /// When a module was mapped at another place than before, by process.
    moves: FxHashMap<ProcessId, Vec<Nanos>>,
    known: FxHashMap<Key, Place>,
}

impl<'a> Places<'a> {
    pub(super) fn of(machine: &'a ExportMachine) -> Self {
        let mappings = machine.mappings();
        let module = |mapping: &ModuleMapping| (mapping.process, mapping.module);
        let mut order: Vec<u32> = (0..).take(mappings.len()).collect();
        order.sort_by_key(|&at| (module(&mappings[at as usize]), mappings[at as usize].since));
        let mut of_modules = FxHashMap::default();
        let mut moves: FxHashMap<ProcessId, Vec<Nanos>> = FxHashMap::default();
        let mut start = 0;
        for group in order.chunk_by(|&a, &b| module(&mappings[a as usize]) == module(&mappings[b as usize])) {
            let first = &mappings[group[0] as usize];
            of_modules.insert(module(first), start..start + group.len());
            start += group.len();
            let each = || group.iter().map(|&at| &mappings[at as usize]);
            if each().any(|mapping| mapping.bias != first.bias) {
                moves.entry(first.process).or_default().extend(each().map(|mapping| mapping.since));
            }
        }
        for times in moves.values_mut() {
            times.sort_unstable();
            times.dedup();
        }
        Self { machine, order, of_modules, moves, known: FxHashMap::default() }
    }

    /// The span of time that a time is in.
    pub(super) fn epoch(&self, process: ProcessId, time: Nanos) -> Epoch {
        let moves = self.moves.get(&process);
        Epoch(moves.map_or(0, |moves| moves.partition_point(|&since| since <= time) as u32))
    }

    /// Where a frame is in a process.
    pub(super) fn find(&mut self, process: ProcessId, epoch: Epoch, id: FrameId, time: Nanos) -> Place {
        let key = (process, epoch, id);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let place = self.search(process, self.machine.frames().get(id), time);
        self.known.insert(key, place);
        place
    }

    /// All that was asked for.
    pub(super) fn known(&self) -> impl Iterator<Item = (FrameId, Place)> + '_ {
        self.known.iter().map(|(&(_, _, frame), &place)| (frame, place))
    }

    fn search(&self, process: ProcessId, frame: &Frame, time: Nanos) -> Place {
        let own = frame.address.0;
        let is_linked = match self.machine.module(frame.module).kind {
            ModuleKind::Kernel | ModuleKind::KernelCode => {
                return Place { mapping: Some(MappingNumber::KERNEL), address: own };
            }
            ModuleKind::File | ModuleKind::Vdso => true,
            ModuleKind::Anonymous(_) | ModuleKind::Unmapped(_) => false,
        };
        let bias = |mapping: &ModuleMapping| if is_linked { mapping.bias } else { 0 };
        let looked_up = frame.lookup_address().0;
        let holds = |mapping: &ModuleMapping| {
            let address = looked_up.wrapping_add(bias(mapping));
            mapping.start.0 <= address && address < mapping.end.0
        };
        let range = self.of_modules.get(&(process, frame.module)).cloned().unwrap_or_default();
        let candidates = self.order.get(range).unwrap_or_default();
        let mapping = |at: u32| &self.machine.mappings()[at as usize];
        let begun = candidates.partition_point(|&at| mapping(at).since <= time);
        let (begun, later) = candidates.split_at(begun);
        // What was mapped last is what is there; a mapping may be told of after the first sample in it.
        let by_time = || begun.iter().rev().chain(later);
        let found =
            by_time().find(|&&at| holds(mapping(at))).or_else(|| by_time().next().filter(|_| is_linked));
        match found {
            None => Place { mapping: None, address: own },
            Some(&at) => {
                let address = own.wrapping_add(bias(mapping(at)));
                Place { mapping: Some(MappingNumber::at(at)), address }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Avma, FileOffset, Pid, Svma};
    use collector_common::record::{FrameFlags, Module};

    use super::*;

    /// A library that is loaded at 0x10000, unloaded, and loaded at 0x20000 at time 100.
    #[test]
    fn a_library_that_is_loaded_anew_is_at_its_new_place() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
        let path = machine.intern_string("/lib/a.so");
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        for (base, since) in [(0x1_0000, 0), (0x2_0000, 100)] {
            let (start, end) = (Avma(base + 0x1000), Avma(base + 0x2000));
            let file_offset = FileOffset(0x1000);
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start,
                end,
                file_offset,
                bias: base,
                since: Nanos(since),
            });
        }
        let frame = |address, flags| Frame { module, address: Svma(address), flags: FrameFlags(flags) };
        let inside = machine.intern_frame(frame(0x1800, 0));
        let last = machine.intern_frame(frame(0x2000, FrameFlags::RETURN_ADDRESS));
        let outside = machine.intern_frame(frame(0x9000, 0));
        let mut places = Places::of(&machine);
        let mut find = |frame, time| {
            let place = places.find(process, places.epoch(process, Nanos(time)), frame, Nanos(time));
            (place.mapping.and_then(MappingNumber::position), place.address)
        };
        assert_eq!(find(inside, 99), (Some(0), 0x1_1800));
        assert_eq!(find(inside, 100), (Some(1), 0x2_1800));
        assert_eq!(find(inside, 50), (Some(0), 0x1_1800));
        assert_eq!(find(last, 50), (Some(0), 0x1_2000));
        assert_eq!(find(outside, 50), (Some(0), 0x1_9000));
        let mut elsewhere = Places::of(&machine);
        let epoch = elsewhere.epoch(ProcessId(9), Nanos(5));
        let place = elsewhere.find(ProcessId(9), epoch, inside, Nanos(5));
        assert_eq!(place, Place { mapping: None, address: 0x1800 });
    }
}
