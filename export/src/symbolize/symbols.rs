//! The result of symbolization: for every frame of a machine a name, or none, and the functions it is in, with lines of
//! their source where these were found.

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleId, ModuleKind};

use super::elf::SymbolError;
use super::jit::Language;
use crate::file_name::file_name;

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

/// A function that a frame is in: the one it was compiled into, or one that was inlined there. The strings are behind
/// [`Symbols::function`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, demangled.
    pub name: NameId,
    /// Its name as the file has it.
    pub linkage: NameId,
    /// The source file that the frame is at in it; an empty string where not known.
    pub file: NameId,
    /// The line in that file, from 1; 0 where not known. Where only that is told of code that was made at run time, it is the
    /// line where the function begins.
    pub line: u32,
    /// The column in that line, from 1; 0 where not known.
    pub column: u32,
    /// Whether it was inlined into the next function outward.
    pub is_inlined: bool,
}

/// A module whose symbols could not be read, or not all of them.
#[derive(Debug)]
pub struct Unreadable {
    /// The module.
    pub module: ModuleId,
    /// Why.
    pub error: SymbolError,
    /// Whether names were found for some of its frames.
    pub has_names: bool,
}

impl Unreadable {
    /// What to tell the user, in one line.
    pub fn message(&self, machine: &ExportMachine) -> String {
        let path = machine.string(machine.module(self.module).path);
        let lacking = match self.error {
            SymbolError::Lines(_) => "no source lines and inlined functions",
            _ if self.has_names => "not all names",
            _ => "no names",
        };
        format!("{lacking} for {path}: {}", self.error)
    }
}

/// What a frame is called.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) function: NameId,
    pub(super) linkage: NameId,
    from_symbol: bool,
    language: Option<Language>,
    /// Where its functions begin; 0 where no lines were found.
    functions: u32,
}

impl Entry {
    /// Of a frame without lines.
    pub(super) fn of_symbol(function: NameId, linkage: NameId, language: Option<Language>) -> Self {
        Self { function, linkage, from_symbol: true, language, functions: 0 }
    }

    /// Says what the function was written in.
    pub(super) fn set_language(&mut self, language: Language) {
        self.language = Some(language);
    }
}

/// Names of the frames of one machine. A frame without a symbol is called `module+0xoffset`: by the address that it was looked up by,
/// which formats with addresses have, too ([`Frame::lookup_address`]).
#[derive(Debug, Default)]
pub struct Symbols {
    strings: InternedStrings,
    /// By frame.
    names: Vec<Entry>,
    /// Distinct lists of functions, innermost first, each up to the first one that is not inlined. Of the latter only the
    /// place counts: what it is called is in `names`. The first is nobody's.
    functions: Vec<Function>,
    unreadable: Vec<Unreadable>,
    failures: Vec<String>,
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
        let functions = vec![Function::default()];
        Self { strings: InternedStrings::default(), names, functions, ..Self::default() }
    }

    /// Names the frames that have no symbol.
    pub(super) fn name_the_rest(&mut self, machine: &ExportMachine) {
        for (frame, entry) in machine.frames().iter().zip(&mut self.names) {
            if !entry.from_symbol {
                let name = NameId(self.strings.intern(&fallback(machine, frame)));
                (entry.function, entry.linkage) = (name, name);
            }
        }
    }

    /// Names a frame after its symbol.
    pub fn set(&mut self, frame: FrameId, function: &str, linkage: &str) {
        let (function, linkage) = (self.intern(function), self.intern(linkage));
        self.set_interned(frame, Entry::of_symbol(function, linkage, None));
    }

    /// Names a frame after the functions it is in, innermost first; the last of them is the one that is not inlined.
    pub fn set_functions(&mut self, frame: FrameId, functions: &[Function]) {
        let Some(outermost) = functions.last() else { return };
        let at = self.add_functions(functions.iter().copied());
        let Function { name: function, linkage, .. } = *outermost;
        self.set_interned(frame, Entry { functions: at, ..Entry::of_symbol(function, linkage, None) });
    }

    /// Adds a list of functions, innermost first, and gives its position for [`Self::set_list`].
    pub(super) fn add_functions(&mut self, functions: impl ExactSizeIterator<Item = Function>) -> u32 {
        let at = self.functions.len() as u32;
        let last = functions.len().saturating_sub(1);
        let listed = functions.enumerate();
        self.functions.extend(listed.map(|(index, it)| Function { is_inlined: index < last, ..it }));
        at
    }

    /// Says which functions a frame is in.
    pub(super) fn set_list(&mut self, frame: FrameId, list: u32) {
        if let Some(entry) = self.names.get_mut(frame.0 as usize) {
            entry.functions = list;
        }
    }

    /// Entries for function and linkage names.
    pub(super) fn intern_all<'a>(&mut self, names: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Entry> {
        names
            .map(|(function, linkage)| Entry::of_symbol(self.intern(function), self.intern(linkage), None))
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

    pub(super) fn set_failures(&mut self, failures: Vec<String>) {
        self.failures = failures;
    }

    /// What kept files from being found, as a server that does not answer, a line each.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// An id for a string.
    pub fn intern(&mut self, name: &str) -> NameId {
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

    /// The functions that a frame is in, innermost first: those inlined there, if any, and always the one that they were
    /// compiled into, which is called what [`Self::name`] says.
    pub fn functions(&self, frame: FrameId) -> impl DoubleEndedIterator<Item = Function> + '_ {
        let Entry { function: name, linkage, functions, .. } = self.entry(frame);
        let list = self.functions.get(functions as usize..).unwrap_or_default();
        let inlined = list.iter().take_while(|function| function.is_inlined).count();
        let place = list.get(inlined).copied().unwrap_or_default();
        let outermost = Function { name, linkage, ..place };
        list.iter().take(inlined).copied().chain([outermost])
    }

    /// An id that is equal for frames with equal function names.
    pub fn name_id(&self, frame: FrameId) -> NameId {
        self.entry(frame).function
    }

    /// An id of the name as the file has it.
    pub fn linkage_id(&self, frame: FrameId) -> NameId {
        self.entry(frame).linkage
    }

    /// The language that a frame's function was written in, where what made its code tells: see [`Language`].
    pub fn language(&self, frame: FrameId) -> Option<Language> {
        self.entry(frame).language
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

/// As file systems have it (`NAME_MAX`).
const LONGEST_FILE_NAME: usize = 255;

/// What a frame without a symbol is called.
fn fallback(machine: &ExportMachine, frame: &Frame) -> String {
    let module = machine.module(frame.module);
    if frame.flags.has(FrameFlags::CUT) {
        return STACK_CUT.to_owned();
    }
    let path = machine.string(module.path);
    let name = match module.kind {
        ModuleKind::File => file_name(path),
        _ => path,
    };
    // Many frames may be called after one module.
    let name = &name[..name.floor_char_boundary(LONGEST_FILE_NAME)];
    format!("{name}{}", offset(frame))
}

/// What the name of a frame without a symbol ends with.
pub(crate) fn offset(frame: &Frame) -> String {
    format!("+{:#x}", frame.lookup_address().0)
}
