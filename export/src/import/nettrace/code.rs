//! Events that tell of processes and code in; what lies at an address of a process, and what that is called, out.
//!
//! A file chooses the numbers by which it refers to things: they are kept under a hash that it can't foresee.

use std::collections::{BTreeMap, HashMap};

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::ModuleDetails;

use super::files::File;
use super::ranges::Ranges;
use super::{runtime, universal};
use crate::format::nettrace::Event;

/// The most names and mappings that are kept.
const MOST: u64 = 1 << 22;

/// The first address of the kernel's half.
pub(super) const KERNEL: u64 = 1 << 63;

/// What the whole of Linux's kernel is called, which may be said to be all over its half.
const LINUX: &str = "vmlinux";

/// A process, by what was told of it.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) name: Option<StringId>,
    pub(super) namespace_pid: Option<u32>,
    /// Its program and the program's arguments, as .NET's runtime tells them.
    pub(super) command: Option<StringId>,
    /// In ticks; `None` where it was there before.
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    /// By position in [`Code::mappings`].
    mappings: Ranges<u32>,
    /// The same of Linux's kernel, which is where nothing else is.
    linux: Ranges<u32>,
    methods: Ranges<Method>,
    /// .NET's modules by its number of them.
    modules: HashMap<u64, StringId>,
}

/// A mapping, as it was told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) process: u64,
    id: u64,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) file: StringId,
    metadata: u64,
    /// In ticks.
    pub(super) since: u64,
}

#[derive(Clone, Copy, Debug)]
struct Method {
    module: u64,
    name: StringId,
    signature: StringId,
}

/// What an address is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The mapping at this position.
    Mapping(u32),
    /// A method of .NET's.
    Method(MethodPlace),
    /// Nothing that was told of.
    Unknown,
}

/// Where a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MethodPlace {
    /// The file of its module, which may not have been told of.
    pub(super) file: Option<StringId>,
    pub(super) first: u64,
    /// The last address, not the one after it.
    pub(super) last: u64,
}

/// What a place is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: StringId,
    /// What it takes and returns, where that is told.
    pub(super) signature: Option<StringId>,
}

/// All that is known of code.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) strings: InternedStrings,
    /// By process id.
    pub(super) processes: BTreeMap<u64, Process>,
    pub(super) mappings: Vec<Mapping>,
    /// Names by the number of a mapping, which may be several processes'.
    names: HashMap<u64, Ranges<StringId>>,
    files: HashMap<u64, File>,
    /// How much is kept.
    kept: u64,
    /// Events that could not be understood.
    pub(super) not_understood: u64,
    /// What there was no room for.
    pub(super) no_room: u64,
    /// What there is of .NET's runtime.
    pub(super) heard: runtime::Heard,
}

impl Code {
    /// Takes what an event says of processes and code, if it says anything.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        let pid = event.thread.pid.unwrap_or_default();
        let of = event.event_type;
        if of.provider == universal::SYSTEM {
            match universal::told(event) {
                Some(told) => self.universal(pid, event.time, told),
                None => self.not_understood += 1,
            }
            return;
        }
        self.heard.take(&of.provider, of.id);
        let told = match of.field_names().next() {
            Some(_) => runtime::told_by_fields(&of.provider, of.id, event),
            None => runtime::told(&of.provider, of.id, event.payload),
        };
        match told {
            Ok(Some(told)) => self.runtime(pid, told),
            Ok(None) => {}
            Err(runtime::TooShort) => self.not_understood += 1,
        }
    }

    /// Whether one more thing may be kept.
    fn has_room(&mut self) -> bool {
        let has_room = self.kept < MOST;
        *(if has_room { &mut self.kept } else { &mut self.no_room }) += 1;
        has_room
    }

    fn universal(&mut self, pid: u64, time: u64, told: universal::Told) {
        use universal::Told;
        if !self.has_room() {
            return;
        }
        match told {
            Told::Process { name, namespace_pid, is_new } => {
                let name = self.strings.intern(&name);
                let process = self.processes.entry(pid).or_default();
                (process.name, process.start) = (Some(name), is_new.then_some(time));
                process.namespace_pid = namespace_pid;
            }
            Told::Exit => self.processes.entry(pid).or_default().end = Some(time),
            Told::Mapping { id, first, end, offset, file, metadata } => {
                let Some(last) = end.checked_sub(1).filter(|last| *last >= first) else {
                    self.not_understood += 1;
                    return;
                };
                let file = self.strings.intern(&file);
                let position = self.mappings.len() as u32;
                self.mappings.push(Mapping {
                    process: pid,
                    id,
                    first,
                    end,
                    offset,
                    file,
                    metadata,
                    since: time,
                });
                let is_linux = self.is_linux(first, file);
                let process = self.processes.entry(pid).or_default();
                let ranges = if is_linux { &mut process.linux } else { &mut process.mappings };
                ranges.insert(first, last, position);
            }
            Told::Symbol { mapping, first, last, name } => {
                let name = self.strings.intern(&name);
                self.names.entry(mapping).or_default().insert(first, last.max(first), name);
            }
            Told::Metadata { id, symbols, version } => {
                self.files.insert(id, File::of(&symbols, &version));
            }
        }
    }

    fn runtime(&mut self, pid: u64, told: runtime::Told) {
        if !self.has_room() {
            return;
        }
        let process = self.processes.entry(pid).or_default();
        match told {
            runtime::Told::Process(command) => process.command = Some(self.strings.intern(&command)),
            runtime::Told::Module(number, path) => {
                process.modules.insert(number, self.strings.intern(&path));
            }
            runtime::Told::Method(method) => {
                let (name, signature) =
                    (self.strings.intern(&method.name), self.strings.intern(&method.signature));
                let last = method.start.saturating_add(u64::from(method.size).saturating_sub(1));
                process.methods.insert(method.start, last, Method { module: method.module, name, signature });
            }
        }
    }

    /// What lies at an address, and what it is called. `lookup` is an address of the instruction that `address` stands for.
    pub(super) fn at(&self, pid: u64, address: u64, lookup: u64) -> (Place, Option<Called>) {
        let Some(process) = self.processes.get(&pid) else { return (Place::Unknown, None) };
        if let Some((first, last, Method { module, name, signature })) = process.methods.range_at(lookup) {
            let called = Called { name, signature: Some(signature) };
            let file = process.modules.get(&module).copied();
            return (Place::Method(MethodPlace { file, first, last }), Some(called));
        }
        let position = process.mappings.at(lookup).or_else(|| process.linux.at(lookup));
        let Some(position) = position else { return (Place::Unknown, None) };
        let names = self.mappings.get(position as usize).and_then(|mapping| self.names.get(&mapping.id));
        // Those who write such traces name addresses as they are on stacks.
        let name = names.and_then(|names| names.at(address));
        (Place::Mapping(position), name.map(|name| Called { name, signature: None }))
    }

    fn is_linux(&self, first: u64, file: StringId) -> bool {
        first >= KERNEL && self.strings.get(file) == LINUX
    }

    /// Whether the mapping at a position is a file in the kernel's half, as Windows's kernel and its drivers are. Linux's kernel and what was made
    /// there at run time are none.
    pub(super) fn is_kernel_file(&self, position: u32) -> bool {
        let Some(mapping) = self.mappings.get(position as usize) else { return false };
        let is_own =
            self.is_linux(mapping.first, mapping.file) || mapping.is_made(self.strings.get(mapping.file));
        mapping.first >= KERNEL && !is_own
    }

    /// Further facts of a mapping's file, for the first one who asks: what many mappings share is long.
    pub(super) fn take_details(&mut self, mapping: &Mapping) -> ModuleDetails {
        self.files
            .get_mut(&mapping.metadata)
            .map(|file| std::mem::take(&mut file.details))
            .unwrap_or_default()
    }

    /// What is known of a mapping's file.
    pub(super) fn file(&self, mapping: &Mapping) -> Option<&File> {
        self.files.get(&mapping.metadata)
    }
}

impl Mapping {
    /// Whether it is code that was made at run time: what is mapped has no path, or is where it would be in the file.
    pub(super) fn is_made(&self, path: &str) -> bool {
        self.metadata == 0
            && (!path.contains(['/', '\\']) || path.starts_with("//") || self.offset == self.first)
    }

    /// An address in the process minus the address as linked, wrapping; minus the place in the file, where it is not known for
    /// which address that is linked.
    pub(super) fn bias(&self, file: Option<&File>) -> u64 {
        let [linked, offset] = file.and_then(|file| file.linked).unwrap_or([0, 0]);
        self.first.wrapping_sub(self.offset).wrapping_add(offset).wrapping_sub(linked)
    }
}
