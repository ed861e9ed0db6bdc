//! Stacks of methods in, frames and what they are called out.
//!
//! A frame of a machine is where code was compiled to. Methods that were inlined stand before the one that they were inlined into, and
//! are one frame with it. Where that lies is not told: frames have numbers for addresses ([`WITHOUT_ADDRESS`]), those of the kernel in the
//! upper half of what these are, where formats look for it.

use std::collections::{BTreeSet, HashMap};

use collector_common::ids::{BuildId, Svma};
use collector_common::intern::{StackId, StringId};
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ProcessId, WITHOUT_ADDRESS,
};

use super::events::{Constant, Struct, Value};
use super::texts::Texts;
use crate::format::jfr::{JAVA, NO_DESCRIPTOR};
use crate::import::frames::{STEP, WINDOW, map_windows};
use crate::import::room::DEEPEST;
use crate::symbolize::{Function, Symbols};

/// Bytes of names that may be made of any chunk, and more for each of its bytes.
const LEAST_BUDGET: usize = 1 << 16;
const BUDGET_PER_BYTE: usize = 32;

/// Where numbers of the kernel's frames begin.
const KERNEL: u64 = 1 << 63;

/// Where numbers of a module's frames begin.
fn window(module: ModuleId) -> u64 {
    WITHOUT_ADDRESS.start + u64::from(module.0) % (WITHOUT_ADDRESS.start / WINDOW) * WINDOW
}

/// A function that a frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line {
    name: StringId,
    linkage: StringId,
    number: u32,
}

/// A method, as it is known in the chunk.
#[derive(Clone, Copy, Debug)]
struct Method {
    module: ModuleId,
    name: StringId,
    linkage: StringId,
}

/// What frames with equal code have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    module: ModuleId,
    /// Innermost first.
    lines: Box<[Line]>,
}

/// All code of a file.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) texts: Texts,
    /// By path.
    pub(super) build_ids: HashMap<StringId, BuildId>,
    /// How many bytes of names may be made yet: a few long texts may be part of any number of them.
    budget: usize,
    /// Names that there was no room for.
    pub(super) names_left_out: u64,
    modules: HashMap<StringId, ModuleId>,
    frames: HashMap<Place, FrameId>,
    /// Of the chunk that is being read, by the numbers of their constants.
    stacks: HashMap<Constant, StackId>,
    methods: HashMap<Constant, Method>,
    lines: HashMap<Constant, Compiled>,
}

/// A frame of a stack: a method with a line of it, and how it was compiled.
#[derive(Clone, Copy, Debug)]
struct Compiled {
    module: ModuleId,
    line: Line,
    /// Into the one behind it.
    is_inlined: bool,
}

/// A stack has more than [`DEEPEST`] functions.
pub(super) struct TooDeep;

impl Code {
    /// Forgets what is known by number, as another chunk has others.
    pub(super) fn begin_chunk(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_add(LEAST_BUDGET + bytes * BUDGET_PER_BYTE);
        self.texts.begin_chunk();
        self.stacks.clear();
        self.methods.clear();
        self.lines.clear();
    }

    /// The stack of an event.
    pub(super) fn stack(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        stack: &Value<'_>,
    ) -> Result<StackId, TooDeep> {
        let constant = stack.fields().and_then(|stack| stack.constant());
        if let Some(&known) = constant.and_then(|constant| self.stacks.get(&constant)) {
            return Ok(known);
        }
        let frames = self.frames(machine, process, stack)?;
        let id = machine.intern_stack(&frames);
        if let Some(constant) = constant {
            self.stacks.insert(constant, id);
        }
        Ok(id)
    }

    fn frames(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        stack: &Value<'_>,
    ) -> Result<Vec<FrameId>, TooDeep> {
        let mut frames = Vec::new();
        let mut inlined: Vec<(ModuleId, Line)> = Vec::new();
        if let Value::List(list) = stack.get("frames")
            && list.is_of_structs()
        {
            for (frame, before) in list.into_iter().zip(0_u64..) {
                if before >= DEEPEST {
                    return Err(TooDeep);
                }
                let compiled = self.compiled(machine, process, &frame);
                // What was inlined is in the same file as what it was inlined into.
                if inlined.last().is_some_and(|(module, _)| *module != compiled.module) {
                    frames.push(self.frame(machine, &inlined));
                    inlined.clear();
                }
                inlined.push((compiled.module, compiled.line));
                if !compiled.is_inlined {
                    frames.push(self.frame(machine, &inlined));
                    inlined.clear();
                }
            }
        }
        if !inlined.is_empty() {
            frames.push(self.frame(machine, &inlined));
        }
        if stack.get("truncated").integer() == Some(1) {
            let flags = FrameFlags(FrameFlags::CUT);
            frames.push(machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(0), flags }));
        }
        Ok(frames)
    }

    /// What a frame tells. One that is a constant may be on any number of stacks.
    fn compiled(&mut self, machine: &mut ExportMachine, process: ProcessId, frame: &Value<'_>) -> Compiled {
        let fields = frame.fields();
        let constant = fields.and_then(|frame| frame.constant());
        if let Some(&known) = constant.and_then(|constant| self.lines.get(&constant)) {
            return known;
        }
        let frame_type = fields.map_or(StringId::EMPTY, |frame| self.texts.of(&frame, "type"));
        let [is_kernel, is_inlined] = ["Kernel", "Inlined"].map(|of| self.texts.get(frame_type) == of);
        let Method { module, name, linkage } = self.method(machine, process, &frame.get("method"), is_kernel);
        let number = frame.get("lineNumber").integer().unwrap_or_default();
        let line = Line { name, linkage, number: u32::try_from(number).unwrap_or_default() };
        let compiled = Compiled { module, line, is_inlined };
        if let Some(constant) = constant {
            self.lines.insert(constant, compiled);
        }
        compiled
    }

    fn frame(&mut self, machine: &mut ExportMachine, lines: &[(ModuleId, Line)]) -> FrameId {
        let module = lines.first().map_or(ModuleId::KERNEL, |(module, _)| *module);
        let place = Place { module, lines: lines.iter().map(|(_, line)| *line).collect() };
        let next = self.frames.len() as u64 + 1;
        *self.frames.entry(place).or_insert_with(|| {
            let (first, flags) = match module {
                ModuleId::KERNEL => (KERNEL, FrameFlags::KERNEL),
                _ => (window(module), 0),
            };
            let address = Svma(first + next % (WINDOW / STEP) * STEP);
            machine.intern_frame(Frame { module, address, flags: FrameFlags(flags) })
        })
    }

    fn method(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        method: &Value<'_>,
        is_kernel: bool,
    ) -> Method {
        let constant = method.fields().and_then(|method| method.constant());
        if let Some(&known) = constant.and_then(|constant| self.methods.get(&constant)) {
            return known;
        }
        let [class, folder, name, descriptor] =
            method.fields().map_or([StringId::EMPTY; 4], |method| self.parts(&method));
        let lengths = [class, folder, name, descriptor].map(|part| self.texts.get(part).len());
        let cost = lengths.iter().sum::<usize>() * 2;
        let method = if cost > self.budget {
            self.names_left_out += 1;
            let name = self.texts.intern("[left out]");
            let module = self.module(machine, process, name, is_kernel);
            Method { module, name, linkage: name }
        } else {
            self.budget -= cost;
            let parts = [class, folder, name, descriptor].map(|part| self.texts.get(part));
            let (path, name, linkage) = called(parts);
            let [path, name, linkage] = [path, name, linkage].map(|text| self.texts.intern(&text));
            let module = self.module(machine, process, path, is_kernel);
            Method { module, name, linkage }
        };
        if let Some(constant) = constant {
            self.methods.insert(constant, method);
        }
        method
    }

    /// A method's class and that one's package, its name, and what it takes and returns.
    fn parts(&mut self, method: &Struct<'_>) -> [StringId; 4] {
        let class = method.get("type").fields();
        let (class, folder) = class.map_or_else(Default::default, |class| {
            (self.texts.of(&class, "name"), self.texts.within(&class, "package", "name"))
        });
        [class, folder, self.texts.of(method, "name"), self.texts.of(method, "descriptor")]
    }

    /// The file of a path, or what a name in brackets says.
    pub(super) fn module(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        path: StringId,
        is_kernel: bool,
    ) -> ModuleId {
        let kind = match self.texts.get(path) {
            _ if is_kernel => return ModuleId::KERNEL,
            "[kernel]" => return ModuleId::KERNEL,
            "[vdso]" => ModuleKind::Vdso,
            "[unmapped]" | "[unknown]" => ModuleKind::Unmapped(process),
            path if path.starts_with('[') => ModuleKind::Anonymous(process),
            _ => ModuleKind::File,
        };
        *self.modules.entry(path).or_insert_with(|| {
            let build_id = self.build_ids.get(&path).copied();
            let path = machine.intern_string(self.texts.name(path));
            machine.add_module(Module { kind, path, build_id })
        })
    }

    /// Names of all frames, which get places in processes, since some formats tell names by these.
    pub(super) fn finish(&self, machine: &mut ExportMachine) -> Symbols {
        let modules: BTreeSet<ModuleId> = self.frames.keys().map(|place| place.module).collect();
        let modules = modules.into_iter().filter(|module| *module != ModuleId::KERNEL);
        map_windows(machine, modules.map(|module| (module, window(module)..window(module) + WINDOW)));
        let mut symbols = Symbols::unresolved(machine);
        let mut functions = Vec::new();
        for (place, frame) in &self.frames {
            functions.clear();
            for line in &place.lines {
                let name = symbols.intern(self.texts.get(line.name));
                let linkage = symbols.intern(self.texts.get(line.linkage));
                functions.push(Function { name, linkage, line: line.number, ..Function::default() });
            }
            symbols.set_functions(*frame, &functions);
        }
        symbols
    }
}

/// The module's path, the name, and the name with what is known beside it.
fn called([class, folder, name, descriptor]: [&str; 4]) -> (String, String, String) {
    if descriptor == NO_DESCRIPTOR || descriptor.is_empty() {
        let path = match (folder, class) {
            ("", "") => "[unknown]".to_owned(),
            ("", class) => class.to_owned(),
            ("/", class) => format!("/{class}"),
            (folder, class) => format!("{folder}/{class}"),
        };
        return (path, name.to_owned(), name.to_owned());
    }
    let name = if class.is_empty() { name.to_owned() } else { format!("{}.{name}", java_class(class)) };
    let linkage = format!("{name} {descriptor}");
    (JAVA.to_owned(), name, linkage)
}

/// A class's name as people write it.
pub(super) fn java_class(name: &str) -> String {
    name.replace('/', ".")
}
