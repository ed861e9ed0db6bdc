//! A frame in, its address in a process out, and the mapping that it is in.
//!
//! A frame has the address that its file is linked for; what lies between that and the process's is the same for all of a
//! file's mappings until the file is unloaded and loaded anew. The kernel is one mapping, which all processes share; where its parts
//! are files, as those of Windows are, these are mapped like any other. Where numbers stand for addresses, these are mapped, too, as they are.

use std::borrow::Cow;
use std::num::NonZeroU64;

use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{
    ExportMachine, Frame, FrameId, ModuleId, ModuleKind, ModuleMapping, ProcessId, WITHOUT_ADDRESS,
};

use super::homeless;
use crate::over_time::OverTime;
use crate::table::Table;

/// Names a mapping in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MappingNumber(NonZeroU64);

impl MappingNumber {
    /// The kernel's: the upper half of the addresses, where each 64-bit kernel lives.
    pub(super) const KERNEL: Self = Self(NonZeroU64::MIN);

    /// That of the mapping at a position.
    pub(super) const fn at(position: u32) -> Self {
        Self(NonZeroU64::MIN.saturating_add(position as u64 + 1))
    }

    /// As it is in the file.
    pub(super) const fn number(self) -> u64 {
        self.0.get()
    }

    /// The position of the mapping, unless it is the kernel's.
    pub(super) const fn position(self) -> Option<usize> {
        match self.number().checked_sub(2) {
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

/// Which of several places is meant, of a module or of all those on a stack: how often any was mapped by then. It is 0 for ever
/// where none was ever mapped at another place than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Epoch(u32);

/// Places of modules, and those of frames as far as they were asked for.
#[derive(Debug)]
pub(super) struct Places<'a> {
    machine: &'a ExportMachine,
    /// Those of the machine, and behind them those of files that are at no place that is told.
    mappings: Cow<'a, [ModuleMapping]>,
    /// By process; the last one is any that the machine does not have.
    processes: Vec<Process>,
    known: Vec<(FrameId, Place)>,
}

/// What is known of a process.
#[derive(Debug, Default)]
struct Process {
    modules: Table<ModuleId, OverTime>,
    /// Mappings of numbers that stand for addresses.
    numbers: Table<ModuleId, u32>,
    /// What lies between the addresses that a file is linked for and those of the process, of each that never moved.
    biases: Table<ModuleId, u64>,
    /// When it was mapped, of each module that moved.
    moves: Table<ModuleId, Vec<Nanos>>,
    /// By stack: modules in it that moved.
    moved: Table<StackId, Box<[ModuleId]>>,
    /// Frames that were asked for, of modules that never moved: by a part of their number, bits of the rest.
    asked: Table<u32, u64>,
    /// Addresses of frames of modules that moved.
    addresses: Table<(Epoch, FrameId), u64>,
}

impl<'a> Places<'a> {
    pub(super) fn of(machine: &'a ExportMachine) -> Self {
        let mut mappings = Cow::Borrowed(machine.mappings());
        let homeless = homeless::mappings(machine);
        if !homeless.is_empty() {
            mappings.to_mut().extend(homeless);
        }
        let mut processes: Vec<Process> = Vec::new();
        processes.resize_with(machine.processes().len() + 1, Process::default);
        let owned = |at: u32| (mappings[at as usize].process, mappings[at as usize].module);
        let is_of_numbers = |at: &u32| WITHOUT_ADDRESS.contains(&mappings[*at as usize].start.0);
        let (numbers, mut order): (Vec<u32>, Vec<u32>) = (0..).take(mappings.len()).partition(is_of_numbers);
        for at in numbers {
            let (process, module) = owned(at);
            if let Some(process) = processes.get_mut(process.0 as usize) {
                process.numbers.insert(module, at);
            }
        }
        order.sort_by_key(|&at| (owned(at), mappings[at as usize].since));
        for group in order.chunk_by(|&a, &b| owned(a) == owned(b)) {
            let (process, module) = owned(group[0]);
            let Some(process) = processes.get_mut(process.0 as usize) else { continue };
            let is_linked = is_linked(machine, module);
            let addresses = |at: u32| {
                let mapping = &mappings[at as usize];
                let start = mapping.start.0.wrapping_sub(if is_linked { mapping.bias } else { 0 });
                [start, start.saturating_add(mapping.end.0.saturating_sub(mapping.start.0))]
            };
            process.modules.insert(module, OverTime::of(group.to_vec(), addresses));
            let bias = mappings[group[0] as usize].bias;
            let each = || group.iter().map(|&at| &mappings[at as usize]);
            if is_linked && each().any(|mapping| mapping.bias != bias) {
                let mut times: Vec<Nanos> = each().map(|mapping| mapping.since).collect();
                times.dedup();
                process.moves.insert(module, times);
            } else if is_linked {
                process.biases.insert(module, bias);
            }
        }
        Self { machine, mappings, processes, known: Vec::new() }
    }

    /// All mappings, by number.
    pub(super) fn mappings(&self) -> &[ModuleMapping] {
        &self.mappings
    }

    fn process(&self, process: ProcessId) -> usize {
        (process.0 as usize).min(self.processes.len() - 1)
    }

    /// The span of time that a time is in for a stack: as long as no module in it moves.
    pub(super) fn epoch(&mut self, process: ProcessId, stack: StackId, time: Nanos) -> Epoch {
        let machine = self.machine;
        let process = self.process(process);
        let Process { moves, moved, .. } = &mut self.processes[process];
        if moves.is_empty() {
            return Epoch(0);
        }
        let moved = moved.entry(stack).or_insert_with(|| {
            let frames = machine.stacks().get(stack).iter();
            let mut modules: Vec<ModuleId> = frames.map(|&id| machine.frames().get(id).module).collect();
            modules.sort_unstable();
            modules.dedup();
            modules.retain(|module| moves.contains_key(module));
            modules.into()
        });
        // None of them ever goes back, so that the sum is another one as soon as one of them is.
        let epochs = moved.iter().map(|&module| epoch(moves, module, time).0);
        Epoch(epochs.fold(0, u32::saturating_add))
    }

    /// The address of a frame in a process, as it was on the stack.
    pub(super) fn address(&mut self, process: ProcessId, id: FrameId, time: Nanos) -> u64 {
        let machine = self.machine;
        let process = self.process(process);
        let process = &mut self.processes[process];
        let frame = machine.frames().get(id);
        if process.moves.contains_key(&frame.module) {
            let key = (epoch(&process.moves, frame.module, time), id);
            if let Some(&address) = process.addresses.get(&key) {
                return address;
            }
            let place = process.search(machine, &self.mappings, frame, time);
            process.addresses.insert(key, place.address);
            self.known.push((id, place));
            return place.address;
        }
        if process.is_new(id) {
            self.known.push((id, process.search(machine, &self.mappings, frame, time)));
        }
        // A number that stands for an address is the same everywhere.
        let bias = if frame.has_address() { process.biases.get(&frame.module) } else { None };
        frame.address.0.wrapping_add(bias.copied().unwrap_or(0))
    }

    /// All that was asked for, each once for each process and each place that its module was at.
    pub(super) fn known(&self) -> &[(FrameId, Place)] {
        &self.known
    }
}

impl Process {
    /// Whether a frame is asked for the first time.
    fn is_new(&mut self, FrameId(frame): FrameId) -> bool {
        let bits = self.asked.entry(frame / u64::BITS).or_default();
        let bit = 1 << (frame % u64::BITS);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    fn search(
        &self,
        machine: &ExportMachine,
        mappings: &[ModuleMapping],
        frame: &Frame,
        time: Nanos,
    ) -> Place {
        let own = frame.address.0;
        if is_kernel(machine, frame.module) {
            return Place { mapping: Some(MappingNumber::KERNEL), address: own };
        }
        if !frame.has_address() {
            let mapping = self.numbers.get(&frame.module).map(|&at| MappingNumber::at(at));
            return Place { mapping, address: own };
        }
        let is_linked = is_linked(machine, frame.module);
        let ranges = self.modules.get(&frame.module);
        let found = ranges.and_then(|ranges| {
            let holding =
                ranges.holding(mappings, frame.lookup_address().0, time.0).map(|holding| holding.at);
            holding.or_else(|| is_linked.then(|| ranges.current(mappings, time)).flatten())
        });
        match found {
            None => Place { mapping: None, address: own },
            Some(at) => {
                let bias = if is_linked { mappings[at as usize].bias } else { 0 };
                Place { mapping: Some(MappingNumber::at(at)), address: own.wrapping_add(bias) }
            }
        }
    }
}

pub(super) fn is_kernel(machine: &ExportMachine, module: ModuleId) -> bool {
    matches!(machine.module(module).kind, ModuleKind::Kernel | ModuleKind::KernelCode)
}

/// Whether frames of a module have the addresses that it is linked for, not those of the process.
fn is_linked(machine: &ExportMachine, module: ModuleId) -> bool {
    matches!(machine.module(module).kind, ModuleKind::File | ModuleKind::Vdso)
}

fn epoch(moves: &Table<ModuleId, Vec<Nanos>>, module: ModuleId, time: Nanos) -> Epoch {
    let times = moves.get(&module);
    Epoch(times.map_or(0, |times| times.partition_point(|&since| since <= time) as u32))
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Avma, FileOffset, Pid, Svma};
    use collector_common::record::{FrameFlags, Module, ModuleMapping};

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
            let address = places.address(process, frame, Nanos(time));
            let mut known = places.known().iter();
            let (_, place) = known.find(|known| (known.0, known.1.address) == (frame, address)).unwrap();
            (place.mapping.and_then(MappingNumber::position), address)
        };
        assert_eq!(find(inside, 99), (Some(0), 0x1_1800));
        assert_eq!(find(inside, 100), (Some(1), 0x2_1800));
        assert_eq!(find(inside, 50), (Some(0), 0x1_1800));
        assert_eq!(find(last, 50), (Some(0), 0x1_2000));
        assert_eq!(find(outside, 50), (Some(0), 0x1_9000));
        assert_eq!(places.known().len(), 4, "each once");
        let mut elsewhere = Places::of(&machine);
        for _ in 0..2 {
            assert_eq!(elsewhere.address(ProcessId(9), inside, Nanos(5)), 0x1800);
            assert_eq!(elsewhere.known(), [(inside, Place { mapping: None, address: 0x1800 })]);
        }
    }

    /// One file moves, another is mapped in two parts of one place, and the kernel stays.
    #[test]
    fn only_stacks_with_a_module_that_moved_are_told_again() {
        let mut machine = ExportMachine::default();
        let process = machine.add_process(Pid(7), "prog", None, Nanos(0));
        let path = machine.intern_string("/lib/a.so");
        let [moving, staying] =
            [0, 1].map(|_| machine.add_module(Module { kind: ModuleKind::File, path, build_id: None }));
        for (module, bias, since) in
            [(moving, 0x1_0000, 0), (staying, 0x9_0000, 0), (moving, 0x2_0000, 100), (staying, 0x9_0000, 200)]
        {
            let (start, end) = (Avma(bias + since), Avma(bias + since + 100));
            let file_offset = FileOffset(since);
            let since = Nanos(since);
            machine.add_mapping(ModuleMapping { process, module, start, end, file_offset, bias, since });
        }
        let mut frame =
            |module| machine.intern_frame(Frame { module, address: Svma(10), flags: FrameFlags(0) });
        let [kernel, moving, staying] = [ModuleId::KERNEL, moving, staying].map(&mut frame);
        let stays = machine.intern_stack(&[kernel, staying]);
        let moves = machine.intern_stack(&[kernel, moving, staying]);
        let mut places = Places::of(&machine);
        let mut epochs = |stack| [0, 99, 100, 300].map(|time| places.epoch(process, stack, Nanos(time)));
        assert_eq!(epochs(stays), [Epoch(0); 4]);
        let [first, before, then, later] = epochs(moves);
        assert!(first == before && before != then && then == later);
    }
}
