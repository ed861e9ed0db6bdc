//! Stacks of methods in, frames and what they are called out.
//!
//! A frame of a machine is where code was compiled to. Methods that were inlined stand before the one that they were inlined into, and
//! are one frame with it. Where that lies is not told: frames have numbers for addresses.

use std::collections::HashMap;

use collector_common::ids::{BuildId, Svma};
use collector_common::intern::{InternedStrings, StackId, StringId};
use collector_common::record::{
    ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ProcessId,
};

use super::events::Value;
use crate::format::jfr::{JAVA, NO_DESCRIPTOR};
use crate::symbolize::{Function, Symbols};

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
    strings: InternedStrings,
    /// By path.
    pub(super) build_ids: HashMap<String, BuildId>,
    modules: HashMap<StringId, ModuleId>,
    frames: HashMap<Place, FrameId>,
    /// Of the chunk that is being read, by the numbers of their constants.
    stacks: HashMap<u64, StackId>,
    methods: HashMap<u64, Method>,
}

impl Code {
    /// Forgets what is known by number, as another chunk has others.
    pub(super) fn begin_chunk(&mut self) {
        self.stacks.clear();
        self.methods.clear();
    }

    /// The stack of an event.
    pub(super) fn stack(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        stack: &Value<'_>,
    ) -> StackId {
        let number = stack.fields().and_then(|stack| stack.constant());
        if let Some(&known) = number.and_then(|number| self.stacks.get(&number)) {
            return known;
        }
        let frames = self.frames(machine, process, stack);
        let id = machine.intern_stack(&frames);
        if let Some(number) = number {
            self.stacks.insert(number, id);
        }
        id
    }

    fn frames(&mut self, machine: &mut ExportMachine, process: ProcessId, stack: &Value<'_>) -> Vec<FrameId> {
        let mut frames = Vec::new();
        let mut inlined: Vec<(ModuleId, Line)> = Vec::new();
        if let Value::List(list) = stack.get("frames") {
            for frame in list {
                let frame_type = frame.get("type").text().unwrap_or_default();
                let is_kernel = frame_type == "Kernel";
                let method = self.method(machine, process, &frame.get("method"), is_kernel);
                let number = frame.get("lineNumber").integer().unwrap_or_default();
                let line = Line {
                    name: method.name,
                    linkage: method.linkage,
                    number: u32::try_from(number).unwrap_or_default(),
                };
                // What was inlined is in the same file as what it was inlined into.
                if inlined.last().is_some_and(|(module, _)| *module != method.module) {
                    frames.push(self.frame(machine, &inlined));
                    inlined.clear();
                }
                inlined.push((method.module, line));
                if frame_type != "Inlined" {
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
        frames
    }

    fn frame(&mut self, machine: &mut ExportMachine, lines: &[(ModuleId, Line)]) -> FrameId {
        let module = lines.first().map_or(ModuleId::KERNEL, |(module, _)| *module);
        let place = Place { module, lines: lines.iter().map(|(_, line)| *line).collect() };
        let next = self.frames.len() as u64 + 1;
        *self.frames.entry(place).or_insert_with(|| {
            let flags = if module == ModuleId::KERNEL { FrameFlags::KERNEL } else { 0 };
            machine.intern_frame(Frame { module, address: Svma(next), flags: FrameFlags(flags) })
        })
    }

    fn method(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        method: &Value<'_>,
        is_kernel: bool,
    ) -> Method {
        let number = method.fields().and_then(|method| method.constant());
        if let Some(&known) = number.and_then(|number| self.methods.get(&number)) {
            return known;
        }
        let text = |value: Value<'_>| value.text().unwrap_or_default().into_owned();
        let class = method.get("type");
        let (class_name, name) = (text(class.get("name")), text(method.get("name")));
        let descriptor = text(method.get("descriptor"));
        let (path, name, linkage) = if is_kernel {
            ("[kernel]".to_owned(), name.clone(), name)
        } else if descriptor == NO_DESCRIPTOR || descriptor.is_empty() {
            let path = match text(class.get("package").get("name")) {
                folder if folder.is_empty() && class_name.is_empty() => "[unknown]".to_owned(),
                folder if folder.is_empty() => class_name,
                folder if folder == "/" => format!("/{class_name}"),
                folder => format!("{folder}/{class_name}"),
            };
            (path, name.clone(), name)
        } else {
            let name =
                if class_name.is_empty() { name } else { format!("{}.{name}", java_class(&class_name)) };
            let linkage = format!("{name} {descriptor}");
            (JAVA.to_owned(), name, linkage)
        };
        let module = self.module(machine, process, &path);
        let method =
            Method { module, name: self.strings.intern(&name), linkage: self.strings.intern(&linkage) };
        if let Some(number) = number {
            self.methods.insert(number, method);
        }
        method
    }

    fn module(&mut self, machine: &mut ExportMachine, process: ProcessId, path: &str) -> ModuleId {
        let kind = match path {
            "[kernel]" => return ModuleId::KERNEL,
            "[vdso]" => ModuleKind::Vdso,
            "[unmapped]" | "[unknown]" => ModuleKind::Unmapped(process),
            path if path.starts_with('[') => ModuleKind::Anonymous(process),
            _ => ModuleKind::File,
        };
        *self.modules.entry(self.strings.intern(path)).or_insert_with(|| {
            let build_id = self.build_ids.get(path).copied();
            let path = machine.intern_string(path);
            machine.add_module(Module { kind, path, build_id })
        })
    }

    /// Names of all frames.
    pub(super) fn symbols(&self, machine: &ExportMachine) -> Symbols {
        let mut symbols = Symbols::unresolved(machine);
        let mut functions = Vec::new();
        for (place, frame) in &self.frames {
            functions.clear();
            for line in &place.lines {
                let name = symbols.intern(self.strings.get(line.name));
                let linkage = symbols.intern(self.strings.get(line.linkage));
                functions.push(Function { name, linkage, line: line.number, ..Function::default() });
            }
            symbols.set_functions(*frame, &functions);
        }
        symbols
    }
}

/// A class's name as people write it.
pub(super) fn java_class(name: &str) -> String {
    name.replace('/', ".")
}
