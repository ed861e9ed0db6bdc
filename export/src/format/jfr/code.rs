//! Frames in, methods of classes out, as JFR has code: of a library's function, the class is the library and its package the folder; of
//! one that was recorded in Java the class is the class again.

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{ExportMachine, FrameFlags, FrameId, ModuleId, ModuleKind};

use crate::file_name::split;
use crate::format::Profile;
use crate::lists::Lists;
use crate::symbolize::{Function, NameId};
use crate::table::Table;

/// What methods are called that nobody knows what they take and return of: readers want a descriptor.
pub(crate) const NO_DESCRIPTOR: &str = "()L;";

/// The module of methods that were recorded in Java.
pub(crate) const JAVA: &str = "[java]";

/// How a frame's function was compiled. The numbers are async-profiler's, which its readers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameType {
    JitCompiled = 1,
    Inlined = 2,
    Native = 3,
    Kernel = 5,
}

impl FrameType {
    pub(super) const ALL: [(Self, &str); 4] = [
        (Self::JitCompiled, "JIT compiled"),
        (Self::Inlined, "Inlined"),
        (Self::Native, "Native"),
        (Self::Kernel, "Kernel"),
    ];
}

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub(super) name: StringId,
    /// Empty where it has none.
    pub(super) package: StringId,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Method {
    /// A position among the classes.
    pub(super) class: u32,
    pub(super) name: StringId,
    pub(super) descriptor: StringId,
}

/// A frame as it is on stacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackFrame {
    /// A position among the methods.
    pub(super) method: u32,
    pub(super) line: u32,
    pub(super) frame_type: FrameType,
}

/// All code of a machine.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) strings: InternedStrings,
    pub(super) classes: Vec<Class>,
    class_index: Table<Class, u32>,
    pub(super) methods: Vec<Method>,
    method_index: Table<Method, u32>,
    /// By names and module, as methods are found faster so.
    of_functions: Table<(NameId, NameId, ModuleId), u32>,
    /// By frame, innermost first; nothing where a stack is cut.
    frames: Lists<StackFrame>,
}

impl Code {
    pub(super) fn of(profile: Profile<'_>) -> Self {
        let Profile { machine, symbols } = profile;
        let mut code = Self::default();
        for (id, frame) in (0..).map(FrameId).zip(machine.frames().iter()) {
            let is_code = !frame.flags.has(FrameFlags::CUT);
            let outermost = match machine.module(frame.module).kind {
                _ if frame.is_kernel() => FrameType::Kernel,
                ModuleKind::Kernel | ModuleKind::KernelCode => FrameType::Kernel,
                ModuleKind::Anonymous(_) => FrameType::JitCompiled,
                ModuleKind::File | ModuleKind::Vdso | ModuleKind::Unmapped(_) => FrameType::Native,
            };
            let functions = symbols.functions(id).filter(|_| is_code);
            let functions: Vec<StackFrame> = functions
                .map(|function| StackFrame {
                    method: code.method(profile, &function, frame.module),
                    line: function.line.min(i32::MAX.cast_unsigned()),
                    frame_type: if function.is_inlined { FrameType::Inlined } else { outermost },
                })
                .collect();
            code.frames.push(functions);
        }
        code
    }

    pub(super) fn frames(&self, frame: FrameId) -> &[StackFrame] {
        self.frames.get(frame.0 as usize)
    }

    /// The position of a class, which is added if it is new.
    pub(super) fn class(&mut self, name: &str, package: &str) -> u32 {
        let class = Class { name: self.strings.intern(name), package: self.strings.intern(package) };
        *self.class_index.entry(class).or_insert_with(|| {
            self.classes.push(class);
            self.classes.len() as u32 - 1
        })
    }

    fn method(&mut self, profile: Profile<'_>, function: &Function, module: ModuleId) -> u32 {
        let key = (function.name, function.linkage, module);
        if let Some(&method) = self.of_functions.get(&key) {
            return method;
        }
        let name = profile.symbols.function(function.name);
        let method = if profile.machine.string(profile.machine.module(module).path) == JAVA {
            self.of_java(name, profile.symbols.function(function.linkage))
        } else {
            let (package, class) = library(profile.machine, module);
            let class = self.class(class, package);
            let descriptor = self.strings.intern(NO_DESCRIPTOR);
            Method { class, name: self.strings.intern(name), descriptor }
        };
        let methods = &mut self.methods;
        let method = *self.method_index.entry(method).or_insert_with(|| {
            methods.push(method);
            methods.len() as u32 - 1
        });
        self.of_functions.insert(key, method);
        method
    }

    /// A method that is called `class.method`, of which the linkage name has what it takes and returns behind a space.
    fn of_java(&mut self, name: &str, linkage: &str) -> Method {
        let descriptor = linkage.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        let (class, method) = name.rsplit_once('.').unwrap_or((JAVA, name));
        let class = class.replace('.', "/");
        let package = class.rsplit_once('/').map_or("", |(package, _)| package);
        Method {
            class: self.class(&class, package),
            name: self.strings.intern(method),
            descriptor: self.strings.intern(descriptor.unwrap_or("()V")),
        }
    }
}

/// A module's folder and its name there.
fn library(machine: &ExportMachine, module: ModuleId) -> (&str, &str) {
    let module = machine.module(module);
    let path = machine.string(module.path);
    match module.kind {
        ModuleKind::File => match split(path) {
            (Some(""), name) => ("/", name),
            (folder, name) => (folder.unwrap_or_default(), name),
        },
        _ => ("", path),
    }
}
