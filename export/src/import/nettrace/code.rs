//! Events that tell of processes and code in; what lies at an address of a process, and what that is called, out.
//!
//! A file chooses the numbers by which it refers to things: they are kept under a hash that it can't foresee.

use std::collections::{BTreeMap, HashMap};

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::ModuleDetails;

use super::by_time::{ALWAYS, ByTime, Named};
use super::files::File;
use super::lives::Lives;
use super::ranges::Ranges;
use super::{runtime, universal};
use crate::format::nettrace::Event;
use crate::over_time::Begins;

/// The most names and mappings that are kept.
const MOST: u64 = 1 << 22;

/// Mappings of code that was made at run time that are laid over one at most: beyond that, the last ones are one.
const MOST_LAYERS: u32 = 1000;

/// The first address of the kernel's half.
pub(super) const KERNEL: u64 = 1 << 63;

/// What the whole of Linux's kernel is called, which may be said to be all over its half.
const LINUX: &str = "vmlinux";

/// A process, which is one life of a process id, by what was told of it.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) name: Option<StringId>,
    pub(super) namespace_pid: Option<u32>,
    /// Its program and the program's arguments, as .NET's runtime tells them.
    pub(super) command: Option<StringId>,
    /// In ticks; `None` where it was there before.
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    /// By position in [`Code::mappings`]: what was told last.
    mappings: Ranges<u32>,
    /// Whether some of its addresses were told to hold one thing after another.
    is_remapped: bool,
    /// What they held when, then.
    by_time: Option<Box<ByTime>>,
    /// The same as `mappings` of Linux's kernel, which is where nothing else is.
    linux: Ranges<u32>,
    methods: Ranges<Method>,
    /// .NET's modules by its number of them.
    modules: HashMap<u64, StringId>,
}

/// A mapping, as it was told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    /// By position in [`Code::lives`].
    pub(super) life: u32,
    pub(super) id: u64,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) file: StringId,
    metadata: u64,
    /// In ticks.
    pub(super) since: u64,
}

impl Begins for Mapping {
    fn since(&self) -> u64 {
        self.since
    }
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

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) called: Option<Called>,
    /// The ticks, the last one excluded, at which that is so.
    pub(super) times: [u64; 2],
}

impl Found {
    const UNKNOWN: Self = Self { place: Place::Unknown, called: None, times: ALWAYS };
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
    pub(super) lives: Lives,
    pub(super) mappings: Vec<Mapping>,
    /// Names by the number of a mapping, which may be several processes'.
    names: HashMap<u64, Ranges<StringId>>,
    /// Where several mappings are of one thing, the number by which all their names are.
    alike: HashMap<u64, u64>,
    /// By position of a mapping: on how many others of its kind it lies, where these have other names at its addresses.
    layers: HashMap<u32, u32>,
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
                self.lives.told(pid, time, is_new, (name, namespace_pid));
            }
            Told::Exit => self.lives.ended(pid, time),
            Told::Mapping { id, first, end, offset, file, metadata } => {
                let Some(last) = end.checked_sub(1).filter(|last| *last >= first) else {
                    self.not_understood += 1;
                    return;
                };
                let file = self.strings.intern(&file);
                let position = self.mappings.len() as u32;
                let life = self.lives.last(pid);
                self.mappings.push(Mapping { life, id, first, end, offset, file, metadata, since: time });
                let is_linux = self.is_linux(first, file);
                let process = self.lives.process_mut(life);
                if is_linux {
                    process.linux.insert(first, last, position);
                } else {
                    process.is_remapped |= process.mappings.insert(first, last, position);
                }
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
        let life = self.lives.last(pid);
        let process = self.lives.process_mut(life);
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

    /// What lies at an address at a time, and what it is called. `lookup` is an address of the instruction that `address` stands for.
    pub(super) fn at(&self, life: u32, address: u64, lookup: u64, time: u64) -> Found {
        let Some(process) = self.lives.process(life) else { return Found::UNKNOWN };
        if let Some((first, last, Method { module, name, signature })) = process.methods.range_at(lookup) {
            let called = Some(Called { name, signature: Some(signature) });
            let file = process.modules.get(&module).copied();
            return Found { place: Place::Method(MethodPlace { file, first, last }), called, times: ALWAYS };
        }
        let (position, times) = match &process.by_time {
            Some(by_time) => by_time.mapping(&self.mappings, lookup, time),
            None => (process.mappings.at(lookup), ALWAYS),
        };
        let Some(position) = position.or_else(|| process.linux.at(lookup)) else { return Found::UNKNOWN };
        let of = |position, name: Option<StringId>, times| {
            let called = name.map(|name| Called { name, signature: None });
            Found { place: Place::Mapping(position), called, times }
        };
        let Some(mapping) = self.mappings.get(position as usize) else { return Found::UNKNOWN };
        // Those who write such traces name addresses as they are on stacks.
        let name = self.names_of(mapping).and_then(|names| names.at(address));
        let below = process.by_time.as_ref().filter(|_| name.is_none() && self.is_made(mapping));
        let Some(below) = below else { return of(position, name, times) };
        // Memory for code may be mapped anew where there is code already, and code be told of by the mapping that it was met in first.
        let (named, since) = below.named(address, time);
        let times = [times[0].max(since[0]), times[1].min(since[1])];
        let is_same = |position: u32| {
            self.mappings.get(position as usize).is_some_and(|below| below.file == mapping.file)
        };
        match named.filter(|&(below, _)| is_same(below)) {
            Some((below, name)) => of(below, Some(name), times),
            None => of(position, None, times),
        }
    }

    fn names_of(&self, mapping: &Mapping) -> Option<&Ranges<StringId>> {
        self.names.get(self.alike.get(&mapping.id).unwrap_or(&mapping.id))
    }

    fn is_made(&self, mapping: &Mapping) -> bool {
        mapping.is_made(self.strings.get(mapping.file))
    }

    /// The number of the mapping at a position, among those of code that was made at run time, from 0 on: those that have other names for the
    /// same addresses have several.
    pub(super) fn layer(&self, position: u32) -> u32 {
        self.layers.get(&position).copied().unwrap_or(0)
    }

    /// Sets in order what is known when all was taken: what lay where at which time.
    pub(super) fn settle(&mut self) {
        let mut remapped: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (mapping, position) in self.mappings.iter().zip(0..) {
            let is_remapped = self.lives.process(mapping.life).is_some_and(|process| process.is_remapped);
            if is_remapped && !self.is_linux(mapping.first, mapping.file) {
                remapped.entry(mapping.life).or_default().push(position);
            }
        }
        let mut room = MOST as usize;
        for (life, mut positions) in remapped {
            positions.sort_by_key(|&position| self.mappings[position as usize].since);
            self.join_names(&positions);
            let named = self.lay(&positions, &mut room);
            let by_time = ByTime::of(&self.mappings, positions, named);
            self.lives.process_mut(life).by_time = Some(Box::new(by_time));
        }
    }

    /// Has mappings of one file to one place the same names: of what was mapped again and again a name may be told once.
    fn join_names(&mut self, positions: &[u32]) {
        let mut first = HashMap::new();
        for mapping in positions.iter().map(|&position| self.mappings[position as usize]) {
            if self.is_made(&mapping) {
                continue;
            }
            let bias = mapping.bias(self.file(&mapping));
            let first = *first.entry((mapping.file, mapping.metadata, bias)).or_insert(mapping.id);
            let all = *self.alike.entry(first).or_insert(first);
            // A number that is another mapping's, too, stays what it is.
            if self.alike.contains_key(&mapping.id) {
                continue;
            }
            self.alike.insert(mapping.id, all);
            let Some(own) = self.names.remove(&mapping.id) else { continue };
            let names = self.names.entry(all).or_default();
            for (first, last, name) in own.iter() {
                names.insert(first, last, name);
            }
        }
    }

    /// Lays mappings of code that was made at run time over each other, as far as they have other names for the same addresses. Out: the
    /// names, in the order of time. There is room for so many of them.
    fn lay(&mut self, positions: &[u32], room: &mut usize) -> Vec<Named> {
        let mut lying: HashMap<StringId, Ranges<u32>> = HashMap::new();
        let mut named = Vec::new();
        for &position in positions {
            let mapping = &self.mappings[position as usize];
            let names = self.names.get(&mapping.id).filter(|_| self.is_made(mapping));
            let Some(names) = names.filter(|names| names.len() <= *room) else { continue };
            *room -= names.len();
            let lying = lying.entry(mapping.file).or_default();
            let below = names.iter().flat_map(|(first, last, _)| lying.within(first, last));
            let layer = below.max().map_or(0, |below| (below + 1).min(MOST_LAYERS));
            for (first, last, name) in names.iter() {
                lying.insert(first, last, layer);
                named.push(Named { first, last, since: mapping.since, mapping: position, name });
            }
            if layer > 0 {
                self.layers.insert(position, layer);
            }
        }
        named
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
