//! What samples refer to: stacks, locations, functions, mappings, strings and attributes, each once, and only those that are used.
//!
//! Addresses are as linked, and so are those of mappings (`super::super::mappings` tells why). A frame without a symbol is a location
//! without a line.

use std::hash::Hash;

use collector_common::intern::{InternedStrings, StackId};
use collector_common::record::{ExportMachine, Frame, FrameFlags, FrameId, ModuleKind};
use prost::Message;
use prost::encoding::encoded_len_varint;

use super::proto::{
    AnyValue, Function, KeyValueAndUnit, Line, Link, Location, Mapping, ProfilesDictionary, Stack,
};
use crate::format::Profile;
use crate::format::mappings::Mappings;
use crate::symbolize;
use crate::table;

/// Distinct entries, of which the first is what 0 means: nothing.
struct Table<T> {
    list: Vec<T>,
    index: table::Table<T, i32>,
    /// What the entries take as fields of the dictionary.
    bytes: usize,
}

/// What an entry of so many bytes takes as a field of the dictionary, whose numbers all take one byte.
fn entry_len(bytes: usize) -> usize {
    1 + encoded_len_varint(bytes as u64) + bytes
}

impl<T: Clone + Default + Eq + Hash + Message> Table<T> {
    fn new() -> Self {
        let index = table::Table::from_iter([(T::default(), 0)]);
        Self { list: vec![T::default()], index, bytes: entry_len(0) }
    }

    fn intern(&mut self, entry: T) -> i32 {
        let Self { list, index, bytes } = self;
        *index.entry(entry).or_insert_with_key(|entry| {
            *bytes += entry_len(entry.encoded_len());
            list.push(entry.clone());
            list.len() as i32 - 1
        })
    }
}

/// The tables, as far as they are filled.
pub(super) struct Dictionary<'a> {
    profile: Profile<'a>,
    strings: InternedStrings,
    string_bytes: usize,
    places: Mappings,
    mappings: Table<Mapping>,
    locations: Table<Location>,
    functions: Table<Function>,
    stacks: Table<Stack>,
    attributes: Table<KeyValueAndUnit>,
    /// By frame and by stack: the entry, once it is used.
    location_of: Vec<Option<i32>>,
    stack_of: Vec<Option<i32>>,
}

impl<'a> Dictionary<'a> {
    pub(super) fn new(profile: Profile<'a>) -> Self {
        let machine = profile.machine;
        Self {
            profile,
            strings: InternedStrings::default(),
            string_bytes: entry_len(0),
            places: Mappings::of(machine),
            mappings: Table::new(),
            locations: Table::new(),
            functions: Table::new(),
            stacks: Table::new(),
            attributes: Table::new(),
            location_of: vec![None; machine.frames().len()],
            stack_of: vec![None; machine.stacks().len()],
        }
    }

    /// A string.
    pub(super) fn string(&mut self, string: &str) -> i32 {
        let known = self.strings.len();
        let id = self.strings.intern(string).0 as i32;
        if self.strings.len() > known {
            self.string_bytes += entry_len(string.len());
        }
        id
    }

    /// The length of all tables as they are.
    pub(super) fn encoded_len(&self) -> usize {
        let Self { mappings, locations, functions, stacks, attributes, .. } = self;
        let places = mappings.bytes + locations.bytes + functions.bytes + stacks.bytes;
        let links = entry_len(0);
        places + links + attributes.bytes + self.string_bytes
    }

    /// A stack; the one without frames is nothing.
    pub(super) fn stack(&mut self, id: StackId) -> i32 {
        if let Some(known) = self.stack_of.get(id.0 as usize).copied().flatten() {
            return known;
        }
        let frames = self.profile.machine.stacks().get(id);
        let location_indices = frames.iter().map(|&frame| self.location(frame)).collect();
        let stack = self.stacks.intern(Stack { location_indices });
        if let Some(slot) = self.stack_of.get_mut(id.0 as usize) {
            *slot = Some(stack);
        }
        stack
    }

    fn location(&mut self, id: FrameId) -> i32 {
        if let Some(known) = self.location_of.get(id.0 as usize).copied().flatten() {
            return known;
        }
        let Profile { machine, symbols } = self.profile;
        let frame = *machine.frames().get(id);
        let is_cut = frame.flags.has(FrameFlags::CUT);
        let address = if frame.has_address() { frame.lookup_address().0 } else { 0 };
        let is_named = is_cut || symbols.is_resolved(id);
        let lines = symbols.functions(id).filter(|_| is_named).map(|function| self.line(function)).collect();
        let frame_type = frame_type(machine, &frame).map(|it| self.text("profile.frame.type", it));
        let is_guessed = frame.flags.has(FrameFlags::HEURISTIC);
        let guessed = is_guessed.then(|| self.text("frame", "guessed"));
        let mapping_index = if is_cut { 0 } else { self.mapping(&frame) };
        let attribute_indices = frame_type.into_iter().chain(guessed).collect();
        let location = self.locations.intern(Location { mapping_index, address, lines, attribute_indices });
        if let Some(slot) = self.location_of.get_mut(id.0 as usize) {
            *slot = Some(location);
        }
        location
    }

    fn line(&mut self, function: symbolize::Function) -> Line {
        let symbols = self.profile.symbols;
        let [name_strindex, system_name_strindex, filename_strindex] =
            [function.name, function.linkage, function.file].map(|id| self.string(symbols.function(id)));
        let entry = Function { name_strindex, system_name_strindex, filename_strindex };
        Line {
            function_index: self.functions.intern(entry),
            line: function.line.into(),
            column: function.column.into(),
        }
    }

    /// The mapping that holds a frame; nothing for memory that is no module's.
    fn mapping(&mut self, frame: &Frame) -> i32 {
        let machine = self.profile.machine;
        let Some(place) = self.places.id(machine, frame).checked_sub(1) else { return 0 };
        let place = self.places.used()[place as usize];
        let module = machine.module(place.module);
        let build_id =
            module.build_id.map(|id| self.text("process.executable.build_id.gnu", &id.to_string()));
        let path = match module.kind {
            ModuleKind::Kernel => "[kernel.kallsyms]",
            _ => machine.string(module.path),
        };
        let mapping = Mapping {
            memory_start: place.start,
            memory_limit: place.limit,
            file_offset: place.offset,
            filename_strindex: self.string(path),
            attribute_indices: build_id.into_iter().collect(),
        };
        self.mappings.intern(mapping)
    }

    /// An attribute that is a text.
    pub(super) fn text(&mut self, key: &str, text: &str) -> i32 {
        self.attribute(key, text.into())
    }

    /// An attribute that is a number.
    pub(super) fn number(&mut self, key: &str, number: i64) -> i32 {
        self.attribute(key, number.into())
    }

    /// An attribute that is a list of texts.
    pub(super) fn texts(&mut self, key: &str, texts: &[String]) -> i32 {
        let values: Vec<AnyValue> = texts.iter().map(|text| text.as_str().into()).collect();
        self.attribute(key, values.into())
    }

    fn attribute(&mut self, key: &str, value: AnyValue) -> i32 {
        let key_strindex = self.string(key);
        self.attributes.intern(KeyValueAndUnit { key_strindex, value: Some(value) })
    }

    /// All tables.
    pub(super) fn finish(self) -> ProfilesDictionary {
        ProfilesDictionary {
            mapping_table: self.mappings.list,
            location_table: self.locations.list,
            function_table: self.functions.list,
            link_table: vec![Link::default()],
            string_table: self.strings.iter().map(ToOwned::to_owned).collect(),
            attribute_table: self.attributes.list,
            stack_table: self.stacks.list,
        }
    }
}

/// By the semantic conventions; of what a JIT compiled the language is not known.
fn frame_type(machine: &ExportMachine, frame: &Frame) -> Option<&'static str> {
    match machine.module(frame.module).kind {
        _ if frame.flags.has(FrameFlags::CUT) => None,
        _ if frame.is_kernel() => Some("kernel"),
        ModuleKind::File | ModuleKind::Vdso => Some("native"),
        _ => None,
    }
}
