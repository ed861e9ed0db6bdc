//! Names for the HTML page: strings, modules, functions and frames, each once and only those that are used.
//!
//! Frames of one function are one frame here, whatever their address: the viewer shows functions. A frame found
//! by a heuristic stays apart, because it is drawn apart.

use std::collections::HashMap;
use std::hash::Hash;

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleKind};

use crate::format::Profile;

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

/// A function as it stands on stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewFrame {
    /// Its function, in the functions.
    pub(super) function: u32,
    /// Whether a heuristic found it.
    pub(super) heuristic: bool,
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
    frames: Distinct<ViewFrame>,
    /// By [`FrameId`]: the position in `frames`, once it is known.
    known: Vec<Option<u32>>,
}

impl<'a> Tables<'a> {
    /// Tables that hold the frame above all at position 0 and nothing else.
    pub(super) fn new(profile: Profile<'a>) -> Self {
        let mut tables = Self {
            profile,
            strings: InternedStrings::default(),
            modules: Distinct::new(),
            functions: Distinct::new(),
            frames: Distinct::new(),
            known: vec![None; profile.machine.frames().len()],
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

    /// The position of a frame; the frame above all for an id of another machine.
    pub(super) fn frame(&mut self, id: FrameId) -> u32 {
        match self.known.get(id.0 as usize) {
            Some(&Some(known)) => known,
            Some(None) => {
                let added = self.add(id);
                self.known[id.0 as usize] = Some(added);
                added
            }
            None => 0,
        }
    }

    fn add(&mut self, id: FrameId) -> u32 {
        let Profile { machine, symbols } = self.profile;
        let frame = *machine.frames().get(id);
        let name = symbols.name(id).function;
        let category = category(machine, &frame, name);
        let path = self.string(machine.string(machine.module(frame.module).path));
        let module = if category == Category::Cut { 0 } else { self.modules.add(path) + 1 };
        let name = self.string(name);
        let function = self.functions.add(Function { name, module, category });
        self.frames.add(ViewFrame { function, heuristic: frame.flags.has(FrameFlags::HEURISTIC) })
    }

    fn named(&mut self, name: &str, category: Category) -> u32 {
        let name = self.string(name);
        let function = self.functions.add(Function { name, module: 0, category });
        self.frames.add(ViewFrame { function, heuristic: false })
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
    if name.is_empty() || name.ends_with(&format!("+{:#x}", frame.address.0)) {
        return Category::Unknown;
    }
    match machine.module(frame.module).kind {
        ModuleKind::Kernel | ModuleKind::KernelCode => Category::Kernel,
        ModuleKind::File | ModuleKind::Vdso => Category::User,
        ModuleKind::Anonymous(_) => Category::Jit,
        ModuleKind::Unmapped(_) => Category::Unknown,
    }
}
