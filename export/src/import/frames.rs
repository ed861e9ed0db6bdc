//! Frames as files have them in, with names and perhaps an address; frames of a machine out, and its symbols at the end.
//!
//! A file may have no address for a name, or several names for an address. A frame is one address, so that the first of an address's
//! names has it; for any other a number stands that is no address ([`WITHOUT_ADDRESS`]).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use collector_common::ids::{Avma, FileOffset, Nanos, Svma};
use collector_common::intern::{InternedStrings, Seeded, StringId};
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, FrameId, ModuleId, ModuleMapping, ProcessId, WITHOUT_ADDRESS,
};

use super::room::{DEEPEST, Size};
use crate::symbolize::{Function, NameId, STACK_CUT, Symbols};

/// How far numbers of one name are from those of the next.
pub(super) const STEP: u64 = 16;

/// Numbers of one module.
pub(super) const WINDOW: u64 = 1 << 32;

/// Where the kernel's begin.
const KERNEL: u64 = 1 << 63;

/// The most places of such modules in processes.
const MOST_MAPPINGS: usize = 1 << 16;

/// A function, by strings of [`Frames`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Named {
    pub(super) name: StringId,
    /// As the file that was recorded has it.
    pub(super) linkage: StringId,
    pub(super) file: StringId,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// What is known of a frame's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) module: ModuleId,
    /// In the module, where it is known.
    pub(super) address: Option<u64>,
    pub(super) flags: FrameFlags,
}

/// Frames of one machine. All of its frames come from here.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) strings: InternedStrings,
    /// By frame, innermost first.
    functions: Vec<Box<[Named]>>,
    without_address: HashMap<(ModuleId, u8, Box<[Named]>), FrameId, Seeded>,
    /// By module: where its numbers begin, and how many there are.
    windows: BTreeMap<ModuleId, (u64, u64)>,
}

impl Frames {
    /// The frame of a place in these functions, innermost first; none where it has no name.
    pub(super) fn intern(
        &mut self,
        machine: &mut ExportMachine,
        place: Place,
        functions: &[Named],
    ) -> FrameId {
        let Place { module, address, flags } = place;
        if let [only] = functions
            && self.strings.get(only.name) == STACK_CUT
        {
            let cut = Place { module, address: Some(0), flags: FrameFlags(FrameFlags::CUT) };
            return self.intern(machine, cut, &[]);
        }
        if let Some(address) = address.filter(|address| !WITHOUT_ADDRESS.contains(address)) {
            let frame = machine.intern_frame(Frame { module, address: Svma(address), flags });
            match self.functions.get(frame.0 as usize) {
                None => self.functions.push(functions.into()),
                Some(known) if **known == *functions => {}
                Some(_) => return self.without_address(machine, place, functions),
            }
            return frame;
        }
        self.without_address(machine, place, functions)
    }

    /// What a stack of them has, as far as it is not too large.
    pub(super) fn size(&self, stack: &[FrameId]) -> Size {
        let mut size = Size::default();
        for functions in stack.iter().filter_map(|frame| self.functions.get(frame.0 as usize)) {
            let bytes = functions.iter().map(|function| self.strings.get(function.name).len() as u64);
            size.add(Size { functions: functions.len().max(1) as u64, bytes: bytes.sum() });
            if size.functions > DEEPEST {
                break;
            }
        }
        size
    }

    fn without_address(
        &mut self,
        machine: &mut ExportMachine,
        Place { module, flags, .. }: Place,
        functions: &[Named],
    ) -> FrameId {
        let next_window = match module {
            ModuleId::KERNEL => KERNEL,
            _ => WITHOUT_ADDRESS.start + self.windows.len() as u64 * WINDOW,
        };
        *self.without_address.entry((module, flags.0, functions.into())).or_insert_with(|| {
            let (start, count) = self.windows.entry(module).or_insert((next_window, 0));
            // Behind the window's start, as a place that is returned to is behind its function's.
            *count += 1;
            let address = Svma(*start + *count * STEP);
            self.functions.push(functions.into());
            machine.intern_frame(Frame { module, address, flags })
        })
    }

    /// The names of the machine's frames. Those without an address get places in processes, since some formats tell names by these.
    pub(super) fn finish(self, machine: &mut ExportMachine) -> Symbols {
        let windows = self.windows.iter().filter(|(module, _)| **module != ModuleId::KERNEL);
        let windows = windows.map(|(&module, &(start, count))| (module, start..start + (count + 1) * STEP));
        map_windows(machine, windows);
        let mut symbols = Symbols::unresolved(machine);
        let names: Vec<NameId> = self.strings.iter().map(|string| symbols.intern(string)).collect();
        let name = |id: StringId| names.get(id.0 as usize).copied().unwrap_or_default();
        for (functions, frame) in self.functions.iter().zip((0..).map(FrameId)) {
            let functions: Vec<Function> = functions
                .iter()
                .map(|named| Function {
                    name: name(named.name),
                    linkage: name(named.linkage),
                    file: name(named.file),
                    line: named.line,
                    column: named.column,
                    is_inlined: false,
                })
                .collect();
            symbols.set_functions(frame, &functions);
        }
        symbols
    }
}

/// Maps modules where their numbers are that stand for addresses, in all processes; of very many the first ones.
pub(super) fn map_windows(
    machine: &mut ExportMachine,
    windows: impl Iterator<Item = (ModuleId, Range<u64>)>,
) {
    let processes = machine.processes().len();
    for (module, window) in windows.take(MOST_MAPPINGS / processes.max(1)) {
        for process in (0..processes as u32).map(ProcessId) {
            machine.add_mapping(ModuleMapping {
                process,
                module,
                start: Avma(window.start),
                end: Avma(window.end),
                file_offset: FileOffset(0),
                bias: 0,
                since: Nanos(0),
            });
        }
    }
}
