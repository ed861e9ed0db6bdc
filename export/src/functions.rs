//! The distinct functions that a machine's frames are in, by name and module: several at a frame where some were inlined.

use collector_common::intern::StringId;
use collector_common::record::{ExportMachine, Frame, FrameId, Module, ModuleId, ModuleKind};

use crate::format::Profile;
use crate::lists::Lists;
use crate::symbolize::NameId;
use crate::table::Table;

/// By module: itself, but the first of those that have what lay in one process's memory at different times.
fn first_of_kind(machine: &ExportMachine) -> Vec<ModuleId> {
    let mut first: Table<(ModuleKind, StringId), ModuleId> = Table::default();
    let modules = machine.modules().iter().zip((0..).map(ModuleId));
    let of = |(module, id): (&Module, ModuleId)| match module.kind {
        ModuleKind::Anonymous(_) | ModuleKind::Unmapped(_) => {
            *first.entry((module.kind, module.path)).or_insert(id)
        }
        _ => id,
    };
    modules.map(of).collect()
}

/// Functions, and which of them each frame is in.
#[derive(Debug)]
pub(crate) struct Functions {
    list: Vec<(NameId, ModuleId)>,
    /// By frame: positions in `list`, innermost first.
    of_frames: Lists<u32>,
}

impl Functions {
    /// Those of the frames that count.
    pub(crate) fn of(profile: Profile<'_>, counts: impl Fn(&Frame) -> bool) -> Self {
        let mut list = Vec::new();
        let mut of_frames = Lists::default();
        let mut index: Table<(NameId, ModuleId), u32> = Table::default();
        let modules = first_of_kind(profile.machine);
        for (id, frame) in (0..).zip(profile.machine.frames().iter()) {
            let counts = counts(frame);
            let functions = profile.symbols.functions(FrameId(id)).filter(|_| counts);
            let module = modules.get(frame.module.0 as usize).copied().unwrap_or(frame.module);
            of_frames.push(functions.map(|function| {
                let function = (function.name, module);
                *index.entry(function).or_insert_with(|| {
                    list.push(function);
                    list.len() as u32 - 1
                })
            }));
        }
        Self { list, of_frames }
    }

    /// All functions.
    pub(crate) fn list(&self) -> &[(NameId, ModuleId)] {
        &self.list
    }

    /// Positions in the list of a frame's functions, innermost first.
    pub(crate) fn of_frame(&self, frame: FrameId) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.of_frames.get(frame.0 as usize).iter().copied()
    }

    /// The name of a function and the path of its module.
    pub(crate) fn named<'a>(&self, profile: Profile<'a>, function: u32) -> (&'a str, &'a str) {
        let Some(&(name, module)) = self.list.get(function as usize) else { return Default::default() };
        let path = profile.machine.string(profile.machine.module(module).path);
        (profile.symbols.function(name), path)
    }
}
