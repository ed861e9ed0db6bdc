//! Strings, functions, mappings and locations of a profile in, frames of a machine out.

use std::collections::HashMap;
use std::fmt::Display;

use collector_common::ids::{Avma, BuildId, FileOffset, Nanos};
use collector_common::intern::{Seeded, StringId};
use collector_common::record::{
    ExportMachine, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ModuleMapping, ProcessId,
};

use super::read::malformed;
use crate::format::pprof::proto;
use crate::import::ImportError;
use crate::import::digits::build_id;
use crate::import::frames::{Frames, Named, Place};
use crate::import::room::name;

/// The most functions that are inlined at one place.
const MAX_LINES: usize = 1 << 12;

/// The most bytes of strings.
const MOST_TEXT: usize = 512 << 20;

/// A table of the profile, by the ids that its writer chose.
type Table<T> = HashMap<u64, T, Seeded>;

#[derive(Clone, Copy, Debug)]
struct Function {
    name: i64,
    linkage: i64,
    file: i64,
}

/// All that samples refer to.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Text and the end of each string in it.
    text: String,
    ends: Vec<usize>,
    /// By string: what it is to the frames, and to the machine, once it has been used. One that is long may be used often.
    of_frames: Vec<Option<StringId>>,
    of_machine: Vec<Option<StringId>>,
    functions: Table<Function>,
    mappings: Table<proto::Mapping>,
    modules: Table<ModuleId>,
    /// By path and build id.
    known: HashMap<(StringId, Option<BuildId>), ModuleId, Seeded>,
    locations: Table<FrameId>,
    pub(super) frames: Frames,
    /// The first mapping, which is the program's.
    pub(super) program: Option<u64>,
    unmapped: Option<ModuleId>,
    /// Functions of which it is told where they begin, and places that are of several functions.
    pub(super) starts: u64,
    pub(super) folded: u64,
    /// Names of which not all is kept.
    pub(super) cut: u64,
    lines: Vec<Named>,
}

impl Tables {
    /// Adds a string, as far as there is room.
    pub(super) fn add_string(&mut self, string: &[u8]) -> Result<(), ImportError> {
        self.text.push_str(&String::from_utf8_lossy(string));
        self.ends.push(self.text.len());
        if self.text.len() > MOST_TEXT {
            return Err(ImportError::TooMuch { what: "bytes of strings", limit: MOST_TEXT as u64 });
        }
        Ok(())
    }

    pub(super) fn string(&self, index: i64) -> Result<&str, ImportError> {
        let missing = || not_there("string", index);
        let index = usize::try_from(index).map_err(|_| missing())?;
        let end = *self.ends.get(index).ok_or_else(missing)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or_default()..end).ok_or_else(missing)
    }

    /// The machine's id of a string, of which as much is kept as of a name.
    pub(super) fn machine_string(
        &mut self,
        machine: &mut ExportMachine,
        index: i64,
    ) -> Result<StringId, ImportError> {
        if let Some(Some(known)) = self.of_machine.get(index as usize) {
            return Ok(*known);
        }
        let whole = self.string(index)?;
        let (kept, is_cut) = (name(whole), name(whole).len() < whole.len());
        let id = machine.intern_string(kept);
        self.cut += u64::from(is_cut);
        self.of_machine.resize(self.ends.len(), None);
        self.of_machine[index as usize] = Some(id);
        Ok(id)
    }

    fn frame_string(&mut self, index: i64) -> Result<StringId, ImportError> {
        if let Some(Some(known)) = self.of_frames.get(index as usize) {
            return Ok(*known);
        }
        let string = self.string(index)?.to_owned();
        let id = self.frames.strings.intern(&string);
        self.of_frames.resize(self.ends.len(), None);
        self.of_frames[index as usize] = Some(id);
        Ok(id)
    }

    pub(super) fn add_mapping(&mut self, mapping: proto::Mapping) {
        self.program.get_or_insert(mapping.id);
        self.mappings.insert(mapping.id, mapping);
    }

    pub(super) fn add_function(&mut self, function: &proto::Function) {
        let name = if function.name == 0 { function.system_name } else { function.name };
        self.starts += u64::from(function.start_line != 0);
        let linkage = if function.system_name == 0 { name } else { function.system_name };
        self.functions.insert(function.id, Function { name, linkage, file: function.filename });
    }

    /// The path of the program.
    pub(super) fn program_path(&self) -> &str {
        let mapping = self.program.and_then(|id| self.mappings.get(&id));
        mapping.and_then(|mapping| self.string(mapping.filename).ok()).unwrap_or_default()
    }

    /// Makes modules of the mappings, in the order of their ids.
    pub(super) fn map(&mut self, machine: &mut ExportMachine, process: ProcessId) -> Result<(), ImportError> {
        let mut mappings: Vec<proto::Mapping> = self.mappings.values().copied().collect();
        mappings.sort_unstable_by_key(|mapping| mapping.id);
        for mapping in mappings {
            let path = self.string(mapping.filename)?;
            let build_id = build_id(self.string(mapping.build_id)?);
            let module = if path.starts_with("[kernel") {
                ModuleId::KERNEL
            } else {
                let kind = match path {
                    "[vdso]" => ModuleKind::Vdso,
                    path if path.starts_with('[') => ModuleKind::Anonymous(process),
                    _ => ModuleKind::File,
                };
                let path = self.machine_string(machine, mapping.filename)?;
                *self
                    .known
                    .entry((path, build_id))
                    .or_insert_with(|| machine.add_module(Module { kind, path, build_id }))
            };
            self.modules.insert(mapping.id, module);
            if module != ModuleId::KERNEL && mapping.memory_start < mapping.memory_limit {
                machine.add_mapping(ModuleMapping {
                    process,
                    module,
                    start: Avma(mapping.memory_start),
                    end: Avma(mapping.memory_limit),
                    file_offset: FileOffset(mapping.file_offset),
                    bias: 0,
                    since: Nanos(0),
                });
            }
        }
        Ok(())
    }

    pub(super) fn add_location(
        &mut self,
        machine: &mut ExportMachine,
        process: ProcessId,
        location: &proto::Location,
    ) -> Result<(), ImportError> {
        if location.line.len() > MAX_LINES {
            return Err(ImportError::TooMuch { what: "lines at a location", limit: MAX_LINES as u64 });
        }
        self.folded += u64::from(location.is_folded);
        let module = match self.modules.get(&location.mapping_id) {
            Some(module) => *module,
            None => *self.unmapped.get_or_insert_with(|| {
                let path = machine.intern_string("[unmapped]");
                machine.add_module(Module { kind: ModuleKind::Unmapped(process), path, build_id: None })
            }),
        };
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        for line in &location.line {
            let named = self.line(line)?;
            lines.push(named);
        }
        let has_address = location.address != 0 || lines.is_empty();
        let place = Place {
            module,
            address: has_address.then_some(location.address),
            flags: FrameFlags(if module == ModuleId::KERNEL { FrameFlags::KERNEL } else { 0 }),
        };
        let frame = self.frames.intern(machine, place, &lines);
        self.lines = lines;
        self.locations.insert(location.id, frame);
        Ok(())
    }

    fn line(&mut self, line: &proto::Line) -> Result<Named, ImportError> {
        let missing = || not_there("function", line.function_id);
        let function = *self.functions.get(&line.function_id).ok_or_else(missing)?;
        let mut names = [StringId::EMPTY; 3];
        for (name, index) in names.iter_mut().zip([function.name, function.linkage, function.file]) {
            *name = self.frame_string(index)?;
        }
        let number = |number: i64| u32::try_from(number).unwrap_or_default();
        let [name, linkage, file] = names;
        Ok(Named { name, linkage, file, line: number(line.line), column: number(line.column) })
    }

    pub(super) fn location(&self, id: u64) -> Result<FrameId, ImportError> {
        self.locations.get(&id).copied().ok_or_else(|| not_there("location", id))
    }
}

/// An entry of a table is referred to and is not there. A file that is cut between two of its fields has nothing else that tells it.
fn not_there(what: &str, number: impl Display) -> ImportError {
    malformed(&format!("{what} {number} is not there, as where its end is missing"))
}
