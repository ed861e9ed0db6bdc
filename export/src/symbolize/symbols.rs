//! The result of symbolization: for every frame of a machine a name, or none.

use std::borrow::Cow;

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleId, ModuleKind};

use super::elf::SymbolError;

/// What the mark of a stack that ends before its root is called.
pub const STACK_CUT: &str = "[stack cut]";

/// Names a function of one [`Symbols`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub StringId);

/// A function that a frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The function's name, demangled.
    pub function: &'a str,
    /// The name as the file has it; equal to `function` where nothing was demangled.
    pub linkage: &'a str,
}

/// A module whose symbols could not be read, or not all of them.
#[derive(Debug)]
pub struct Unreadable {
    /// The module.
    pub module: ModuleId,
    /// Why.
    pub error: SymbolError,
}

impl Unreadable {
    /// What to tell the user, in one line.
    pub fn message(&self, machine: &ExportMachine) -> String {
        let path = machine.string(machine.module(self.module).path);
        format!("no names for {path}: {}", self.error)
    }
}

/// What a frame is called.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    function: NameId,
    linkage: NameId,
    from_symbol: bool,
}

/// Names of the frames of one machine. A frame without a symbol is called `module+0xoffset`.
#[derive(Debug, Default)]
pub struct Symbols {
    strings: InternedStrings,
    /// By frame.
    names: Vec<Entry>,
    unreadable: Vec<Unreadable>,
}

impl Symbols {
    /// No frame of `machine` has a symbol yet.
    pub fn unresolved(machine: &ExportMachine) -> Self {
        let mut symbols = Self::unnamed(machine);
        symbols.name_the_rest(machine);
        symbols
    }

    /// No frame of `machine` has a name yet.
    pub(super) fn unnamed(machine: &ExportMachine) -> Self {
        let names = vec![Entry::default(); machine.frames().len()];
        Self { strings: InternedStrings::default(), names, unreadable: Vec::new() }
    }

    /// Names the frames that have no symbol.
    pub(super) fn name_the_rest(&mut self, machine: &ExportMachine) {
        for (frame, entry) in machine.frames().iter().zip(&mut self.names) {
            if !entry.from_symbol {
                let name = NameId(self.strings.intern(&fallback(machine, frame)));
                *entry = Entry { function: name, linkage: name, from_symbol: false };
            }
        }
    }

    /// Names a frame after its symbol.
    pub fn set(&mut self, frame: FrameId, function: &str, linkage: &str) {
        let (function, linkage) = (self.intern(function), self.intern(linkage));
        self.set_interned(frame, Entry { function, linkage, from_symbol: true });
    }

    /// Entries for function and linkage names.
    pub(super) fn intern_all<'a>(
        &mut self,
        names: impl Iterator<Item = (Cow<'a, str>, &'a str)>,
    ) -> Vec<Entry> {
        names
            .map(|(function, linkage)| Entry {
                function: self.intern(&function),
                linkage: self.intern(linkage),
                from_symbol: true,
            })
            .collect()
    }

    pub(super) fn set_interned(&mut self, frame: FrameId, entry: Entry) {
        if let Some(slot) = self.names.get_mut(frame.0 as usize) {
            *slot = entry;
        }
    }

    pub(super) fn add_unreadable(&mut self, unreadable: Unreadable) {
        self.unreadable.push(unreadable);
    }

    fn intern(&mut self, name: &str) -> NameId {
        NameId(self.strings.intern(name))
    }

    fn entry(&self, frame: FrameId) -> Entry {
        self.names.get(frame.0 as usize).copied().unwrap_or_default()
    }

    /// The name of a frame: its function, or `module+0xoffset`.
    pub fn name(&self, frame: FrameId) -> Name<'_> {
        let Entry { function, linkage, .. } = self.entry(frame);
        Name { function: self.function(function), linkage: self.function(linkage) }
    }

    /// An id that is equal for frames with equal function names.
    pub fn name_id(&self, frame: FrameId) -> NameId {
        self.entry(frame).function
    }

    /// An id of the name as the file has it.
    pub fn linkage_id(&self, frame: FrameId) -> NameId {
        self.entry(frame).linkage
    }

    /// Whether the name is that of a symbol, not `module+0xoffset`.
    pub fn is_resolved(&self, frame: FrameId) -> bool {
        self.entry(frame).from_symbol
    }

    /// The name behind an id of this set.
    pub fn function(&self, id: NameId) -> &str {
        self.strings.get(id.0)
    }

    /// Modules whose symbols could not be read, or not all of them.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }
}

/// What a frame without a symbol is called.
fn fallback(machine: &ExportMachine, frame: &Frame) -> String {
    let module = machine.module(frame.module);
    if frame.flags.has(FrameFlags::CUT) {
        return STACK_CUT.to_owned();
    }
    let path = machine.string(module.path);
    let name = match module.kind {
        ModuleKind::File => path.rsplit('/').next().unwrap_or(path),
        _ => path,
    };
    format!("{name}+{:#x}", frame.address.0)
}
