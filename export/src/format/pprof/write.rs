//! A [`Profile`] in, a compressed `profile.proto` out.
//!
//! Samples go out one by one while their locations and strings are collected, so that no copy of the profile is
//! made; the order of a message's fields is free. A sample has the labels `pid` and `tid` (numbers), `comm` (the
//! thread's name at the time), `process` (its main thread's), `frames` (`guessed`, where some of the stack's frames were
//! found by a heuristic), and the attributes it was recorded with. A frame without a symbol becomes a location without a
//! line: readers name it by its mapping, or look into the file. A frame in inlined functions has a line for each, innermost
//! first. A line's file is its function's, so that a function whose lines come from several files is one for each.

use std::cmp::Reverse;
use std::io::{self, Write};

use collector_common::intern::{InternedStrings, StringId};
use collector_common::record::{AttributeValue, FrameFlags, FrameId, ModuleId, ModuleKind, Thread, ThreadId};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::columns::Columns;
use super::proto::{Function, Label, Line, Location, Mapping, Sample, ValueType, field};
use super::rows::Rows;
use crate::format::account::account;
use crate::format::mappings::Mappings;
use crate::format::{ExportFormat, Holds, Part, Profile};
use crate::symbolize::{self, NameId};
use crate::table::Table;

/// Bytes that are collected before they are compressed.
const PIECE: usize = 64 << 10;

/// The pprof format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pprof;

impl ExportFormat for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn ending(&self) -> &'static str {
        ".pb.gz"
    }

    fn description(&self) -> &'static str {
        "profile.proto for go tool pprof and others: stacks added up by thread, with mappings and build ids"
    }

    fn holds(&self) -> Holds {
        Holds::everything()
            .without(&[
                Part::Times,
                Part::Cpus,
                Part::Unsampled,
                Part::Owners,
                Part::Programs,
                Part::Lives,
                Part::Parents,
                Part::ExitStatuses,
                Part::NamespacePids,
                Part::FileDetails,
                Part::Events,
                Part::Spans,
                Part::Tables,
            ])
            .with_some(&[Part::Mappings])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut fields = Fields { buffer: Vec::new(), out: GzEncoder::new(out, Compression::fast()) };
        Writer::new(profile).write(&mut fields)?;
        fields.flush()?;
        fields.out.finish()?.flush()
    }
}

/// Fields of the message `Profile` on their way out.
struct Fields<W: Write> {
    buffer: Vec<u8>,
    out: W,
}

impl<W: Write> Fields<W> {
    fn message(&mut self, tag: u32, message: &impl Message) -> io::Result<()> {
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(message.encoded_len() as u64, &mut self.buffer);
        message.encode_raw(&mut self.buffer);
        self.flush_if_full()
    }

    fn text(&mut self, tag: u32, text: &str) -> io::Result<()> {
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(text.len() as u64, &mut self.buffer);
        self.buffer.extend_from_slice(text.as_bytes());
        self.flush_if_full()
    }

    fn number(&mut self, tag: u32, number: i64) {
        encode_key(tag, WireType::Varint, &mut self.buffer);
        encode_varint(number as u64, &mut self.buffer);
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < PIECE { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// What is known of the locations in a mapping. Readers look up the rest themselves.
#[derive(Clone, Copy, Default)]
struct Known {
    names: bool,
    /// Then inlined functions are known, too: they are found together.
    lines: bool,
}

impl Known {
    fn add(&mut self, location: &Location) {
        self.names |= !location.line.is_empty();
        self.lines |= location.line.iter().any(|line| line.line != 0);
    }
}

struct Writer<'a> {
    profile: Profile<'a>,
    strings: InternedStrings,
    mappings: Mappings,
    /// By frame: its location's id, once it is used; 0 before.
    location_of: Vec<u64>,
    /// Frames at one address are one location: whether an address was returned to makes no difference here.
    locations: Vec<Location>,
    location_index: Table<(ModuleId, u64, bool), u64>,
    functions: Vec<Function>,
    function_index: Table<(NameId, NameId, NameId), u64>,
    /// By mapping: what was counted where it is the outermost of a main thread, which programs are.
    programs: Table<u64, i64>,
}

impl<'a> Writer<'a> {
    fn new(profile: Profile<'a>) -> Self {
        Self {
            profile,
            strings: InternedStrings::default(),
            mappings: Mappings::of(profile.machine),
            location_of: vec![0; profile.machine.frames().len()],
            locations: Vec::new(),
            location_index: Table::default(),
            functions: Vec::new(),
            function_index: Table::default(),
            programs: Table::default(),
        }
    }

    fn write<W: Write>(mut self, fields: &mut Fields<W>) -> io::Result<()> {
        let columns = Columns::of(self.profile.machine);
        self.describe(&columns, fields)?;
        self.samples(&columns, fields)?;
        let mut mappings = self.mapping_messages();
        // Readers take the first one for the program that the profile is about.
        let program = self.programs.iter().max_by_key(|(place, weight)| (**weight, Reverse(**place)));
        let program = program.map_or(0, |(place, _)| *place);
        mappings.sort_by_key(|mapping| (mapping.id != program, mapping.memory_start >= 1 << 63));
        for mapping in &mappings {
            fields.message(field::MAPPING, mapping)?;
        }
        for location in &self.locations {
            fields.message(field::LOCATION, location)?;
        }
        for function in &self.functions {
            fields.message(field::FUNCTION, function)?;
        }
        for string in self.strings.iter() {
            fields.text(field::STRING_TABLE, string)?;
        }
        Ok(())
    }

    fn describe<W: Write>(&mut self, columns: &Columns, fields: &mut Fields<W>) -> io::Result<()> {
        let types: Vec<ValueType> = columns
            .list
            .iter()
            .map(|column| ValueType { kind: self.string(&column.name), unit: self.string(column.unit) })
            .collect();
        for kind in &types {
            fields.message(field::SAMPLE_TYPE, kind)?;
        }
        let (period_column, period) = columns.period;
        if let Some(kind) = types.get(period_column) {
            fields.message(field::PERIOD_TYPE, kind)?;
            fields.number(field::PERIOD, period);
        }
        if let Some(kind) = types.get(columns.default) {
            fields.number(field::DEFAULT_SAMPLE_TYPE, kind.kind);
        }
        let system = self.profile.machine.system();
        for (tag, names) in
            [(field::DROP_FRAMES, &system.drop_frames), (field::KEEP_FRAMES, &system.keep_frames)]
        {
            if !names.is_empty() {
                let names = self.string(names);
                fields.number(tag, names);
            }
        }
        let unix = system.clocks.unix_at(system.start);
        let time = unix.and_then(|unix| i64::try_from(unix).ok()).unwrap_or(0);
        fields.number(field::TIME_NANOS, time);
        fields.number(field::DURATION_NANOS, system.end.0.saturating_sub(system.start.0) as i64);
        let cpus = if system.cpus == 0 { String::new() } else { format!("{} CPUs", system.cpus) };
        let memory = if system.memory == 0 { String::new() } else { format!("{} MiB", system.memory >> 20) };
        let described = [
            &system.host,
            &system.kernel,
            &system.architecture,
            &system.distribution,
            &system.processor,
            &cpus,
            &memory,
            &system.command,
        ];
        for comment in described.into_iter().chain(&account(self.profile.machine)) {
            if !comment.is_empty() {
                let comment = self.string(comment);
                fields.number(field::COMMENT, comment);
            }
        }
        Ok(())
    }

    fn samples<W: Write>(&mut self, columns: &Columns, fields: &mut Fields<W>) -> io::Result<()> {
        let machine = self.profile.machine;
        let rows = Rows::of(machine, columns)?;
        let threads: Vec<Vec<Label>> = machine.threads().iter().map(|thread| self.labels(thread)).collect();
        let guessed = self.text_label("frames", "guessed");
        let mut message = Sample::default();
        for (key, values) in rows.iter() {
            let stack = machine.stacks().get(key.stack);
            message.location_id.clear();
            for &frame in stack {
                let location = self.location(frame);
                message.location_id.push(location);
            }
            message.value.clear();
            message.value.extend_from_slice(values);
            let outermost = stack.last().filter(|_| self.is_main(key.thread));
            if let Some(outermost) = outermost.map(|&frame| machine.frames().get(frame))
                && machine.module(outermost.module).kind == ModuleKind::File
            {
                let program = self.mappings.id(machine, outermost);
                let sum = self.programs.entry(program).or_default();
                *sum = sum.saturating_add(values.first().copied().unwrap_or_default());
            }
            message.label.clear();
            message.label.extend(threads.get(key.thread.0 as usize).into_iter().flatten());
            let is_guess = |&frame: &FrameId| machine.frames().get(frame).flags.has(FrameFlags::HEURISTIC);
            message.label.extend(guessed.filter(|_| stack.iter().any(is_guess)));
            for &(name, value) in machine.attributes().get(key.attributes) {
                let name = machine.string(name);
                message.label.extend(match value {
                    AttributeValue::Label(text) => self.text_label(name, machine.string(text)),
                    AttributeValue::Number(number) => Some(self.number_label(name, number)),
                });
            }
            fields.message(field::SAMPLE, &message)?;
        }
        Ok(())
    }

    fn is_main(&self, thread: ThreadId) -> bool {
        let thread = self.profile.machine.thread(thread);
        self.profile.machine.process(thread.process).pid.0 == thread.tid.0
    }

    /// The labels of each sample of a thread; none where nothing was told of it.
    fn labels(&mut self, thread: &Thread) -> Vec<Label> {
        let machine = self.profile.machine;
        let process = machine.process(thread.process);
        if (process.pid.0, thread.tid.0) == (0, 0) && thread.name == StringId::EMPTY {
            return Vec::new();
        }
        let pid = Label { key: self.string("pid"), str: 0, num: process.pid.0.into(), num_unit: 0 };
        let tid = Label { key: self.string("tid"), str: 0, num: thread.tid.0.into(), num_unit: 0 };
        let comm = self.text_label("comm", machine.string(thread.name));
        let container = self.text_label("container", machine.string(process.container));
        let process = self.text_label("process", machine.string(process.name));
        [Some(pid), Some(tid), comm, process, container].into_iter().flatten().collect()
    }

    /// A label is a number unless it has text, so that an empty text can't be told.
    fn text_label(&mut self, key: &str, text: &str) -> Option<Label> {
        (!text.is_empty()).then(|| Label {
            key: self.string(key),
            str: self.string(text),
            num: 0,
            num_unit: 0,
        })
    }

    /// Readers leave out a number that is 0 without a unit, and take the key for that where none is told.
    fn number_label(&mut self, key: &str, num: i64) -> Label {
        let key = self.string(key);
        Label { key, str: 0, num, num_unit: if num == 0 { key } else { 0 } }
    }

    /// The id of a frame's location, which is added if it is new.
    fn location(&mut self, frame: FrameId) -> u64 {
        match self.location_of.get(frame.0 as usize) {
            Some(0) => {}
            Some(&known) => return known,
            None => return 0,
        }
        let Profile { machine, symbols } = self.profile;
        let found = *machine.frames().get(frame);
        let cut = found.flags.has(FrameFlags::CUT);
        let address = found.lookup_address().0;
        let next = self.locations.len() as u64 + 1;
        let id = *self.location_index.entry((found.module, address, cut)).or_insert(next);
        if id == next {
            let mapping_id = if cut { 0 } else { self.mappings.id(machine, &found) };
            let named = cut || symbols.is_resolved(frame);
            let lines = symbols.functions(frame).filter(|_| named).map(|function| Line {
                function_id: self.function(function),
                line: function.line.into(),
                column: function.column.into(),
            });
            let line = lines.collect();
            let address = if found.has_address() { address } else { 0 };
            self.locations.push(Location { id, mapping_id, address, line, is_folded: false });
        }
        self.location_of[frame.0 as usize] = id;
        id
    }

    fn function(&mut self, function: symbolize::Function) -> u64 {
        let symbols = self.profile.symbols;
        let next = self.functions.len() as u64 + 1;
        let key = (function.name, function.linkage, function.file);
        let id = *self.function_index.entry(key).or_insert(next);
        if id == next {
            let [name, system_name, filename] =
                [key.0, key.1, key.2].map(|string| self.string(symbols.function(string)));
            self.functions.push(Function { id, name, system_name, filename, start_line: 0 });
        }
        id
    }

    fn mapping_messages(&mut self) -> Vec<Mapping> {
        let machine = self.profile.machine;
        let mut known = vec![Known::default(); self.mappings.used().len() + 1];
        for location in &self.locations {
            known[location.mapping_id as usize].add(location);
        }
        let places = self.mappings.used().to_vec();
        let ids = 1_u64..;
        ids.zip(places)
            .map(|(id, place)| {
                let module = machine.module(place.module);
                let path = match place.module {
                    ModuleId::KERNEL => "[kernel.kallsyms]",
                    _ => machine.string(module.path),
                };
                let known = known[id as usize];
                let build_id = module.build_id.map(|id| id.to_string()).unwrap_or_default();
                Mapping {
                    id,
                    memory_start: place.start,
                    memory_limit: place.limit,
                    file_offset: place.offset,
                    filename: self.string(path),
                    build_id: self.string(&build_id),
                    has_functions: known.names,
                    has_filenames: known.lines,
                    has_line_numbers: known.lines,
                    has_inline_frames: known.lines,
                }
            })
            .collect()
    }

    fn string(&mut self, string: &str) -> i64 {
        i64::from(self.strings.intern(string).0)
    }
}

#[cfg(test)]
mod tests {
    use collector_common::record::ExportMachine;

    use super::*;

    /// The strings' table is only right if the empty string is its first.
    #[test]
    fn the_empty_string_is_the_first() {
        let machine = ExportMachine::default();
        let symbols = symbolize::Symbols::unresolved(&machine);
        let mut writer = Writer::new(Profile { machine: &machine, symbols: &symbols });
        assert_eq!(writer.string(""), 0);
        assert_eq!(writer.strings.iter().next(), Some(""));
    }
}
