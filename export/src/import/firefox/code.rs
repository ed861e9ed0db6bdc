//! Tables of frames and stacks in, frames and stacks of a machine out.

use std::collections::{HashMap, HashSet};

use collector_common::ids::BuildId;
use collector_common::intern::{Seeded, StackId, StringId};
use collector_common::record::{ExportMachine, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ProcessId};

use super::columns::Strings;
use super::json::{File, FrameTable, FuncTable, ResourceTable, Shared, Sources, StackTable, Thread};
use super::malformed;
use crate::format::firefox::{GUESSED, INLINED};
use crate::import::ImportError;
use crate::import::digits::build_id;
use crate::import::frames::{Frames, Named, Place};
use crate::import::room::{DEEPEST, name};

/// The most frames on all distinct stacks, inlined ones included, and how many more for each row of a table of stacks: each stack has
/// all of its own, where the file has its last one and what that was called from.
const MOST_FRAMES: [u64; 2] = [1 << 24, 16];

/// The same of the stacks of each thread together, which may be the same ones as another's, and are gone through again.
const MOST_STEPS: [u64; 2] = [1 << 26, 16];

/// The most functions that are one frame with others, of all such frames of each thread: each has all of its own, too.
const MOST_INLINED: [u64; 2] = [1 << 21, 4];

/// The most bytes of names.
const MOST_NAMES: u64 = 1 << 30;

/// Bits of a frame's flags, and of a function's.
const IS_INLINED: u32 = 1;
const HAS_ADDRESS: u32 = 2;
const HAS_CATEGORY: u32 = 4;
const HAS_LINE: u32 = 16;
const HAS_COLUMN: u32 = 32;
const HAS_RESOURCE: u32 = 4;
const HAS_SOURCE: u32 = 8;

const NONE: u32 = u32::MAX;

/// The tables that a thread's stacks are in.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) strings: &'a Strings,
    stacks: &'a StackTable,
    frames: &'a FrameTable,
    functions: &'a FuncTable,
    resources: Option<&'a ResourceTable>,
    sources: Option<&'a Sources>,
    /// Whether they are all threads'.
    pub(super) are_shared: bool,
}

impl<'a> Tables<'a> {
    pub(super) fn of(thread: &'a Thread, shared: &'a Shared) -> Result<Self, ImportError> {
        let missing = |what: &str| malformed(format!("a thread has no {what}"));
        let stacks = thread.stack_table.as_ref().or(shared.stack_table.as_ref());
        let frames = thread.frame_table.as_ref().or(shared.frame_table.as_ref());
        let functions = thread.func_table.as_ref().or(shared.func_table.as_ref());
        let strings = thread.string_array.as_ref().or(shared.string_array.as_ref());
        Ok(Self {
            strings: strings.ok_or_else(|| missing("strings"))?,
            stacks: stacks.ok_or_else(|| missing("table of stacks"))?,
            frames: frames.ok_or_else(|| missing("table of frames"))?,
            functions: functions.ok_or_else(|| missing("table of functions"))?,
            resources: thread.resource_table.as_ref().or(shared.resource_table.as_ref()),
            sources: shared.sources.as_ref(),
            are_shared: thread.stack_table.is_none()
                && thread.frame_table.is_none()
                && thread.func_table.is_none()
                && thread.string_array.is_none(),
        })
    }

    /// What a stack was called from. It stands before it, so that nothing is called from itself.
    fn prefix(&self, stack: u32) -> Result<Option<u32>, ImportError> {
        let offset = self.stacks.prefix_offset.get(stack);
        let prefix = match (self.stacks.prefix.get(stack), offset) {
            (NONE, NONE | 0) => return Ok(None),
            (NONE, offset) => stack.checked_sub(offset),
            (prefix, _) => Some(prefix).filter(|prefix| *prefix < stack),
        };
        match prefix {
            Some(prefix) => Ok(Some(prefix)),
            None => Err(malformed(format!("stack {stack} is called from one that does not stand before it"))),
        }
    }

    /// Whether a column of a frame has something; all do where nothing is told of it.
    fn has(&self, frame: u32, flag: u32) -> bool {
        self.frames.flags.len() == 0 || self.frames.flags.get(frame) & flag != 0
    }

    /// Whether a frame is of one of these pairs of a category and a subcategory.
    fn is_of(&self, frame: u32, pairs: &HashSet<(u32, u32), Seeded>) -> bool {
        let pair = || (self.frames.category.get(frame), self.frames.subcategory.get(frame));
        self.has(frame, HAS_CATEGORY) && pairs.contains(&pair())
    }

    /// Whether a frame says so itself, or in ours by its category, of which these pairs do.
    fn is_inlined(&self, frame: u32, of_ours: &HashSet<(u32, u32), Seeded>) -> bool {
        if self.is_of(frame, of_ours) {
            return true;
        }
        match self.frames.flags.len() {
            0 => !matches!(self.frames.inline_depth.get(frame), 0 | NONE),
            _ => self.has(frame, IS_INLINED),
        }
    }

    fn category(&self, stack: u32, frame: u32) -> u32 {
        match self.frames.category.len() {
            0 => self.stacks.category.get(stack),
            _ if self.has(frame, HAS_CATEGORY) => self.frames.category.get(frame),
            _ => NONE,
        }
    }

    fn address(&self, frame: u32) -> Option<u64> {
        let address = self.frames.address.get(frame);
        (self.has(frame, HAS_ADDRESS) && address >= 0.0).then_some(address as u64)
    }

    fn lib(&self, frame: u32) -> Option<u32> {
        let has_function = |flag| {
            let function = self.frames.func.get(frame);
            self.functions.flags.len() == 0 || self.functions.flags.get(function) & flag != 0
        };
        let lib = if self.frames.lib.len() > 0 {
            if self.has(frame, HAS_ADDRESS) { self.frames.lib.get(frame) } else { NONE }
        } else if has_function(HAS_RESOURCE) {
            let resource = self.functions.resource.get(self.frames.func.get(frame));
            self.resources.map_or(NONE, |resources| resources.lib.get(resource))
        } else {
            NONE
        };
        Some(lib).filter(|lib| *lib != NONE)
    }

    /// The strings that are the name of a frame's function, and its file.
    fn names(&self, frame: u32) -> Result<[u32; 2], ImportError> {
        let function = self.frames.func.get(frame);
        let name = self.functions.name.get(function);
        if self.strings.get(name).is_none() {
            return Err(malformed(format!("frame {frame} has no function with a name")));
        }
        let has_source =
            self.functions.flags.len() == 0 || self.functions.flags.get(function) & HAS_SOURCE != 0;
        let file = match self.sources {
            Some(sources) if has_source => sources.filename.get(self.functions.source.get(function)),
            _ => self.functions.file_name.get(function),
        };
        Ok([name, file])
    }
}

/// What is told by the category of a frame, and by the subcategory of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Role {
    of: Of,
    is_guessed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Of {
    #[default]
    Code,
    Kernel,
    Jit,
}

/// What stacks of one set of tables have become.
#[derive(Debug, Default)]
pub(super) struct Known {
    stacks: HashMap<u32, StackId, Seeded>,
    /// By frame and what its category tells: of one by itself, and of several at one place, innermost first.
    single: HashMap<(u32, Role), FrameId, Seeded>,
    frames: HashMap<(Box<[u32]>, Role), FrameId, Seeded>,
    /// By string, as one that is long may be used often.
    strings: HashMap<u32, StringId, Seeded>,
}

/// All code of a profile.
pub(super) struct Code {
    pub(super) frames: Frames,
    /// By category.
    of: Vec<Of>,
    /// Categories with those subcategories of them that are of what was inlined, and of what was guessed.
    inlined_categories: HashSet<(u32, u32), Seeded>,
    guessed_categories: HashSet<(u32, u32), Seeded>,
    libs: Vec<ModuleId>,
    named: ModuleId,
    jit: ModuleId,
    /// Rows of tables of stacks so far.
    rows: u64,
    /// Frames of distinct stacks, of each thread's stacks, functions of several at one place, and bytes of names so far.
    taken: u64,
    steps: u64,
    inlined: u64,
    names: u64,
    stack: Vec<FrameId>,
    group: Vec<u32>,
    functions: Vec<Named>,
}

impl Code {
    pub(super) fn of(file: &File, machine: &mut ExportMachine) -> Self {
        let categories = file.meta.categories.iter().flat_map(|list| &list.0);
        let of = categories.map(|category| match &*category.name.0 {
            "Kernel" => Of::Kernel,
            "JIT" => Of::Jit,
            _ => Of::Code,
        });
        let pairs_of = |subcategory: &str| {
            let categories = file.meta.categories.iter().flat_map(|list| list.0.iter().zip(0..));
            let pairs = categories
                .flat_map(|(category, at)| category.subcategories.0.iter().zip(0..).map(move |it| (at, it)));
            let pairs = pairs.filter(|(_, (name, _))| name.0 == subcategory);
            pairs.map(|(category, (_, at))| (category, at)).collect()
        };
        let (inlined_categories, guessed_categories) = (pairs_of(INLINED), pairs_of(GUESSED));
        let mut modules: HashMap<(StringId, Option<BuildId>), ModuleId, Seeded> = HashMap::default();
        let libs = file.libs.0.iter().map(|lib| {
            let path = if lib.path.0.is_empty() { &lib.name.0 } else { &lib.path.0 };
            let path = machine.intern_string(name(path));
            let build_id = build_id(&lib.code_id.0);
            let add = || {
                let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id });
                machine.set_relative(module);
                module
            };
            *modules.entry((path, build_id)).or_insert_with(add)
        });
        let (of, libs) = (of.collect(), libs.collect());
        let mut module = |path, kind| {
            let path = machine.intern_string(path);
            machine.add_module(Module { kind, path, build_id: None })
        };
        Self {
            frames: Frames::default(),
            of,
            inlined_categories,
            guessed_categories,
            libs,
            named: module("", ModuleKind::File),
            jit: module("[jit]", ModuleKind::Anonymous(ProcessId(0))),
            rows: 0,
            taken: 0,
            steps: 0,
            inlined: 0,
            names: 0,
            stack: Vec::new(),
            group: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Adds a table that stacks will be of.
    pub(super) fn add_rows(&mut self, table: Option<&StackTable>) {
        self.rows += table.map_or(0, |table| table.frame.len() as u64);
    }

    /// Whether there is room for so much, where there may be `fixed` and `more` for each row.
    fn check(
        &self,
        count: u64,
        [fixed, more]: [u64; 2],
        stack: u32,
        what: &'static str,
    ) -> Result<(), ImportError> {
        let limit = more.saturating_mul(self.rows).saturating_add(fixed);
        if count > limit {
            return Err(ImportError::TooLarge { place: format!("up to stack {stack} it"), what, limit });
        }
        Ok(())
    }

    /// A stack of a thread; the empty one where there is none.
    pub(super) fn stack(
        &mut self,
        machine: &mut ExportMachine,
        tables: &Tables<'_>,
        known: &mut Known,
        stack: u32,
    ) -> Result<StackId, ImportError> {
        if stack == NONE {
            return Ok(StackId::EMPTY);
        }
        if let Some(&known) = known.stacks.get(&stack) {
            return Ok(known);
        }
        self.stack.clear();
        self.group.clear();
        let (mut next, mut depth) = (Some(stack), 0);
        while let Some(at) = next {
            depth += 1;
            if depth > DEEPEST {
                let (place, what) = (format!("stack {stack}"), "frames");
                return Err(ImportError::TooLarge { place, what, limit: DEEPEST });
            }
            let frame = tables.stacks.frame.get(at);
            if frame == NONE {
                return Err(malformed(format!("stack {at} has no frame")));
            }
            next = tables.prefix(at)?;
            self.group.push(frame);
            if tables.is_inlined(frame, &self.inlined_categories) && next.is_some() {
                continue;
            }
            let role = Role {
                of: self.of.get(tables.category(at, frame) as usize).copied().unwrap_or_default(),
                is_guessed: tables.is_of(frame, &self.guessed_categories),
            };
            let frame = self.frame(machine, tables, known, role, stack)?;
            self.stack.push(frame);
            self.group.clear();
        }
        self.steps += depth;
        self.check(self.steps, MOST_STEPS, stack, "frames on its threads' stacks")?;
        let before = machine.stacks().len();
        let id = machine.intern_stack(&self.stack);
        if machine.stacks().len() > before {
            self.taken += depth;
            self.check(self.taken, MOST_FRAMES, stack, "frames on its stacks")?;
        }
        known.stacks.insert(stack, id);
        Ok(id)
    }

    /// The frame of those in `group`.
    fn frame(
        &mut self,
        machine: &mut ExportMachine,
        tables: &Tables<'_>,
        known: &mut Known,
        role: Role,
        stack: u32,
    ) -> Result<FrameId, ImportError> {
        if let [only] = *self.group {
            if let Some(&known) = known.single.get(&(only, role)) {
                return Ok(known);
            }
            let frame = self.new_frame(machine, tables, known, role)?;
            known.single.insert((only, role), frame);
            return Ok(frame);
        }
        let key = (Box::from(&*self.group), role);
        if let Some(&known) = known.frames.get(&key) {
            return Ok(known);
        }
        self.inlined += key.0.len() as u64;
        self.check(self.inlined, MOST_INLINED, stack, "functions inlined together")?;
        let frame = self.new_frame(machine, tables, known, role)?;
        known.frames.insert(key, frame);
        Ok(frame)
    }

    fn new_frame(
        &mut self,
        machine: &mut ExportMachine,
        tables: &Tables<'_>,
        known: &mut Known,
        role: Role,
    ) -> Result<FrameId, ImportError> {
        let Some(&outermost) = self.group.last() else {
            return Err(malformed("a stack of nothing".to_owned()));
        };
        let address = tables.address(outermost);
        self.functions.clear();
        for &frame in &self.group {
            let [name, file] = tables.names(frame)?.map(|string| {
                let text = tables.strings.get(string).unwrap_or_default();
                let before = self.frames.strings.len();
                let id = *known.strings.entry(string).or_insert_with(|| self.frames.strings.intern(text));
                self.names += if self.frames.strings.len() > before { text.len() as u64 } else { 0 };
                id
            });
            if self.names > MOST_NAMES {
                return Err(ImportError::TooMuch { what: "bytes of names", limit: MOST_NAMES });
            }
            let number =
                |column: u32, flag| if column == NONE || !tables.has(frame, flag) { 0 } else { column };
            self.functions.push(Named {
                name,
                linkage: name,
                file,
                line: number(tables.frames.line.get(frame), HAS_LINE),
                column: number(tables.frames.column.get(frame), HAS_COLUMN),
            });
        }
        // What has no name is called after its address.
        if let ([only], Some(address)) = (&*self.functions, address)
            && self.frames.strings.get(only.name) == format!("{address:#x}")
        {
            self.functions.clear();
        }
        let lib = tables.lib(outermost).and_then(|lib| self.libs.get(lib as usize).copied());
        // Linux's kernel is no file, as `[kernel.kallsyms]`; that of Windows, and its drivers, are.
        let is_file = |lib: &ModuleId| !machine.string(machine.module(*lib).path).starts_with('[');
        let guessed = if role.is_guessed { FrameFlags::HEURISTIC } else { 0 };
        let (module, address, flags) = match (role.of, lib) {
            (Of::Kernel, Some(lib)) if is_file(&lib) => (lib, address, FrameFlags::KERNEL),
            (Of::Kernel, _) => (ModuleId::KERNEL, None, FrameFlags::KERNEL),
            (Of::Jit, None) => (self.jit, None, guessed),
            (Of::Code, None) => (self.named, None, guessed),
            (_, Some(lib)) => (lib, address, guessed),
        };
        let place = Place { module, address, flags: FrameFlags(flags) };
        Ok(self.frames.intern(machine, place, &self.functions))
    }
}
