//! Names for the HTML page: strings, modules, functions and frames, each once and only those that are used.
//!
//! Frames of one function are one frame here, whatever their address: the viewer shows functions. A frame found
//! by a heuristic stays apart, because it is drawn apart, and so does one of a function where it was inlined.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleKind};

use crate::format::Profile;
use crate::symbolize::offset;

/// What kind of code a function is; the viewer colours by it. The numbers are part of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Category {
    /// The node above all.
    All = 0,
    /// A process's name.
    Process = 1,
    /// User code from a file or the vDSO.
    User = 2,
    /// Kernel code.
    Kernel = 3,
    /// Code made at run time.
    Jit = 4,
    /// An address without a name.
    Unknown = 5,
    /// The mark of a stack that ends before its root.
    Cut = 6,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    /// Its name, in the strings.
    pub(super) name: u32,
    /// Its module, in the modules, plus 1; 0 for none.
    pub(super) module: u32,
    /// What kind of code it is.
    pub(super) category: Category,
}

/// Where the source of a function is, as far as frames in it tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// The file, in the strings; an empty string where not known.
    pub(super) file: u32,
    /// The first and the last line of a frame in it; 0 where not known.
    pub(super) lines: (u32, u32),
}

impl Source {
    /// A frame is at a line of a file.
    fn add(&mut self, file: u32, line: u32) {
        if self.lines == (0, 0) && line > 0 {
            *self = Self { file, lines: (line, line) };
        } else if self.file == file && line > 0 {
            self.lines = (self.lines.0.min(line), self.lines.1.max(line));
        }
    }
}

/// A function as it stands on stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewFrame {
    /// Its function, in the functions.
    pub(super) function: u32,
    /// Whether a heuristic found it.
    pub(super) heuristic: bool,
    /// Whether it was inlined there.
    pub(super) inlined: bool,
}

/// A list of distinct things.
#[derive(Debug)]
struct Distinct<T> {
    items: Vec<T>,
    index: HashMap<T, u32>,
}

impl<T: Copy + Eq + Hash> Distinct<T> {
    fn new() -> Self {
        Self { items: Vec::new(), index: HashMap::new() }
    }

    fn add(&mut self, item: T) -> u32 {
        let items = &mut self.items;
        *self.index.entry(item).or_insert_with(|| {
            items.push(item);
            items.len() as u32 - 1
        })
    }
}

/// The tables.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    profile: Profile<'a>,
    strings: InternedStrings,
    modules: Distinct<u32>,
    functions: Distinct<Function>,
    /// By function.
    sources: Vec<Source>,
    frames: Distinct<ViewFrame>,
    /// By [`FrameId`]: where in `lists` it is, once it is known.
    known: Vec<Option<Range<usize>>>,
    /// Positions in `frames`, outermost first.
    lists: Vec<u32>,
}

impl<'a> Tables<'a> {
    /// Tables that hold the frame above all at position 0 and nothing else.
    pub(super) fn new(profile: Profile<'a>) -> Self {
        let mut tables = Self {
            profile,
            strings: InternedStrings::default(),
            modules: Distinct::new(),
            functions: Distinct::new(),
            sources: Vec::new(),
            frames: Distinct::new(),
            known: vec![None; profile.machine.frames().len()],
            lists: Vec::new(),
        };
        tables.named("all", Category::All);
        tables
    }

    /// All strings.
    pub(super) fn strings(&self) -> &InternedStrings {
        &self.strings
    }

    /// Paths of modules, in the strings.
    pub(super) fn modules(&self) -> &[u32] {
        &self.modules.items
    }

    /// All functions.
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions.items
    }

    /// Where the functions' sources are.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// All frames.
    pub(super) fn frames(&self) -> &[ViewFrame] {
        &self.frames.items
    }

    /// The position of a string.
    pub(super) fn string(&mut self, string: &str) -> u32 {
        self.strings.intern(string).0
    }

    /// The position of the frame that stands for a process above its stacks.
    pub(super) fn process(&mut self, name: StringId) -> u32 {
        let name = match self.profile.machine.string(name) {
            "" => "[unnamed]",
            name => name,
        };
        self.named(name, Category::Process)
    }

    /// The positions of the functions that a frame is in, outermost first; none for an id of another machine.
    pub(super) fn frame(&mut self, id: FrameId) -> &[u32] {
        let range = match self.known.get(id.0 as usize) {
            Some(Some(range)) => range.clone(),
            Some(None) => {
                let start = self.lists.len();
                self.add(id);
                let range = start..self.lists.len();
                self.known[id.0 as usize] = Some(range.clone());
                range
            }
            None => return &[],
        };
        &self.lists[range]
    }

    fn add(&mut self, id: FrameId) {
        let Profile { machine, symbols } = self.profile;
        let frame = *machine.frames().get(id);
        let category = category(machine, &frame, symbols.name(id).function);
        let path = self.string(machine.string(machine.module(frame.module).path));
        let module = if category == Category::Cut { 0 } else { self.modules.add(path) + 1 };
        for place in symbols.functions(id).rev() {
            let name = self.string(symbols.function(place.name));
            let function = self.function(Function { name, module, category });
            let file = self.string(symbols.function(place.file));
            self.sources[function as usize].add(file, place.line);
            let heuristic = frame.flags.has(FrameFlags::HEURISTIC);
            let added = self.frames.add(ViewFrame { function, heuristic, inlined: place.is_inlined });
            self.lists.push(added);
        }
    }

    fn function(&mut self, function: Function) -> u32 {
        let function = self.functions.add(function);
        self.sources.resize(self.functions.items.len(), Source::default());
        function
    }

    fn named(&mut self, name: &str, category: Category) -> u32 {
        let name = self.string(name);
        let function = self.function(Function { name, module: 0, category });
        self.frames.add(ViewFrame { function, heuristic: false, inlined: false })
    }
}

/// A frame without a symbol is called `module+0xaddress`: see [`crate::symbolize::Symbols`].
fn category(machine: &ExportMachine, frame: &Frame, name: &str) -> Category {
    if frame.flags.has(FrameFlags::CUT) {
        return Category::Cut;
    }
    if frame.is_kernel() {
        return Category::Kernel;
    }
    if name.is_empty() || name.ends_with(&offset(frame)) {
        return Category::Unknown;
    }
    match machine.module(frame.module).kind {
        ModuleKind::Kernel | ModuleKind::KernelCode => Category::Kernel,
        ModuleKind::File | ModuleKind::Vdso => Category::User,
        ModuleKind::Anonymous(_) => Category::Jit,
        ModuleKind::Unmapped(_) => Category::Unknown,
    }
}
