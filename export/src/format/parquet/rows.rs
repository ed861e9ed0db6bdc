//! What a sample, a frame, a process, a program and a span are in columns. Rows are collected until there are enough for a group, of one
//! kind each, so that a reader of one kind need not look at the others.
//!
//! A frame is as many rows as functions that it is in, innermost first; depths count these.

use std::io::{self, Write};

use crate::table::Table;
use collector_common::ids::{BuildId, Nanos};
use collector_common::intern::{InternedStrings, StackId, StringId};
use collector_common::record::{
    AttributeListId, AttributeValue, Exit, ExportMachine, Frame, FrameFlags, FrameId, ProcessId, Program,
    Sample, ThreadId, TimelineOwner,
};

use super::columns::Columns;
use super::file::File;
use super::leaf::{Column as _, Leaf};
use super::values::{Integer, Integers, Texts};
use crate::format::{Profile, unique_keys};
use crate::symbolize::{Function, NameId};

/// Rows of a group: readers share out groups to processors, and hold one of them each.
const ROWS: u32 = 1 << 17;
/// Attributes, and bytes of distinct texts, with which a group is full.
const MANY_ENTRIES: u32 = 1 << 20;
const MANY_BYTES: usize = 16 << 20;
/// Rows after which it is looked at how long all texts are.
const SOME_ROWS: u32 = 64;
/// A sample's attributes beyond these are left out.
const MOST_ATTRIBUTES: usize = 1024;

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Sample,
    Frame,
    Process,
    Program,
    Span,
}

impl Record {
    const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Frame => "frame",
            Self::Process => "process",
            Self::Program => "program",
            Self::Span => "span",
        }
    }
}

/// Rows on their way into a file.
pub(super) struct Rows<'a> {
    profile: Profile<'a>,
    file: File<'a>,
    columns: Columns,
    /// Rows in the columns, and what they are of.
    count: u32,
    record: Record,
    /// By stack, whether a sample has it.
    is_used: Vec<bool>,
    build_ids: Table<BuildId, u64>,
    /// Texts that are no strings of the recording.
    made: InternedStrings,
}

impl<'a> Rows<'a> {
    pub(super) fn begin(profile: Profile<'a>, out: &'a mut dyn Write) -> io::Result<Self> {
        let mut columns = Columns::new();
        Ok(Self {
            profile,
            file: File::begin(out, columns.schema()?)?,
            columns,
            count: 0,
            record: Record::Sample,
            is_used: vec![false; profile.machine.stacks().len()],
            build_ids: Table::default(),
            made: InternedStrings::default(),
        })
    }

    /// Begins a row; what was collected is written first where it is enough, or of another kind.
    fn row(&mut self, record: Record) -> io::Result<u32> {
        let columns = &mut self.columns;
        let is_full = self.count >= ROWS
            || columns.attributes.count() >= MANY_ENTRIES
            || columns.attributes.size() >= MANY_BYTES
            || self.count.is_multiple_of(SOME_ROWS) && columns.size() >= MANY_BYTES;
        if is_full || record != self.record {
            self.end_group()?;
        }
        self.record = record;
        let row = self.count;
        self.columns.record.set(row, |texts| texts.push(record as u128, record.name()));
        self.count += 1;
        Ok(row)
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.count > 0 {
            self.file.group(|group| self.columns.write(self.count, group))?;
            self.count = 0;
        }
        Ok(())
    }

    /// Adds a sample.
    pub(super) fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        let row = self.row(Record::Sample)?;
        let machine = self.profile.machine;
        let columns = &mut self.columns;
        moment(machine, row, sample.time, (&mut columns.time, &mut columns.time_ns));
        number(&mut columns.cpu, row, sample.cpu);
        number(&mut columns.value, row, sample.value);
        if let Some(kind) = machine.kinds().get(usize::from(sample.kind.0)) {
            string(&mut columns.kind, row, machine, kind.name);
            columns.unit.set(row, |texts| texts.push(kind.unit as u128, kind.unit.name()));
            number(&mut columns.period, row, least(kind.period));
        }
        self.of_thread(row, sample.thread);
        if !machine.stacks().get(sample.stack).is_empty() {
            number(&mut self.columns.stack, row, sample.stack.0);
            if let Some(is_used) = self.is_used.get_mut(sample.stack.0 as usize) {
                *is_used = true;
            }
        }
        self.attributes(row, sample.attributes);
        Ok(())
    }

    fn of_thread(&mut self, row: u32, id: ThreadId) {
        let machine = self.profile.machine;
        let thread = machine.thread(id);
        number(&mut self.columns.tid, row, thread.tid.0);
        string(&mut self.columns.thread, row, machine, thread.name);
        self.of_process(row, thread.process, machine.process(thread.process).name);
    }

    /// What is told of a process wherever it is, with its name there.
    fn of_process(&mut self, row: u32, id: ProcessId, name: StringId) {
        let machine = self.profile.machine;
        let process = machine.process(id);
        let columns = &mut self.columns;
        number(&mut columns.process_id, row, id.0);
        number(&mut columns.pid, row, process.pid.0);
        string(&mut columns.process, row, machine, name);
        string(&mut columns.container, row, machine, process.container);
    }

    /// A map has each key once: one that was there before has its number behind it.
    fn attributes(&mut self, row: u32, list: AttributeListId) {
        let machine = self.profile.machine;
        let list = machine.attributes().get(list);
        let list = &list[..list.len().min(MOST_ATTRIBUTES)];
        let Columns { attributes, numbers, .. } = &mut self.columns;
        unique_keys::each(machine, list, &[], |key, value| {
            let key = (u128::from(key.number) << 32 | u128::from(key.name.0), key.text);
            let id = match value {
                AttributeValue::Label(text) => text.0.into(),
                AttributeValue::Number(number) => 1 << 64 | u128::from(number.cast_unsigned()),
            };
            attributes.add(row, key, |texts| texts.push(id, &machine.attribute_text(value)));
            if let AttributeValue::Number(number) = value {
                numbers.add(row, key, |integers| integers.push(number));
            }
        });
    }

    /// Adds the frames of all stacks that samples have.
    pub(super) fn stacks(&mut self) -> io::Result<()> {
        let machine = self.profile.machine;
        for at in 0..self.is_used.len() {
            if !self.is_used[at] {
                continue;
            }
            let stack = StackId(at as u32);
            let mut depth = 0;
            for &frame in machine.stacks().get(stack) {
                for function in self.profile.symbols.functions(frame) {
                    self.frame((stack, depth), frame, &function)?;
                    depth += 1;
                }
            }
        }
        Ok(())
    }

    fn frame(&mut self, place: (StackId, u32), id: FrameId, function: &Function) -> io::Result<()> {
        let row = self.row(Record::Frame)?;
        let Profile { machine, symbols } = self.profile;
        let frame = machine.frames().get(id);
        let columns = &mut self.columns;
        number(&mut columns.stack, row, place.0.0);
        number(&mut columns.depth, row, place.1);
        let name = |leaf: &mut Leaf<Texts>, id: NameId| {
            let text = symbols.function(id);
            if !text.is_empty() {
                leaf.set(row, |texts| texts.push(id.0.0.into(), text));
            }
        };
        name(&mut columns.function, function.name);
        if symbols.is_resolved(id) {
            name(&mut columns.symbol, function.linkage);
        }
        name(&mut columns.file, function.file);
        for (leaf, place) in [(&mut columns.line, function.line), (&mut columns.column, function.column)] {
            if place > 0 {
                number(leaf, row, place);
            }
        }
        columns.inlined.set(row, |flags| flags.push(function.is_inlined));
        columns.kernel.set(row, |flags| flags.push(frame.is_kernel()));
        columns.guessed.set(row, |flags| flags.push(frame.flags.has(FrameFlags::HEURISTIC)));
        if !frame.flags.has(FrameFlags::CUT) {
            self.place(row, frame);
        }
        Ok(())
    }

    /// The file that a frame is in, and where.
    fn place(&mut self, row: u32, frame: &Frame) {
        let machine = self.profile.machine;
        let module = machine.module(frame.module);
        string(&mut self.columns.module, row, machine, module.path);
        if let Some(build_id) = module.build_id {
            let next = self.build_ids.len() as u64;
            let id = *self.build_ids.entry(build_id).or_insert(next);
            self.columns.build_id.set(row, |texts| texts.push(id.into(), &build_id.to_string()));
        }
        if frame.has_address() {
            let address = frame.lookup_address().0;
            self.columns.address.set(row, |integers| integers.push(address.cast_signed()));
        }
    }

    /// Adds all processes.
    pub(super) fn processes(&mut self) -> io::Result<()> {
        for id in (0..self.profile.machine.processes().len() as u32).map(ProcessId) {
            self.process(id)?;
        }
        Ok(())
    }

    fn process(&mut self, id: ProcessId) -> io::Result<()> {
        let row = self.row(Record::Process)?;
        let machine = self.profile.machine;
        let process = machine.process(id);
        self.of_process(row, id, process.name);
        self.since(row, process.start);
        let columns = &mut self.columns;
        if let Some(end) = process.end {
            moment(machine, row, end, (&mut columns.end_time, &mut columns.end_ns));
        }
        if let Some(parent) = process.parent {
            number(&mut columns.parent_id, row, parent.0);
        }
        if let Some(pid) = process.namespace_pid {
            number(&mut columns.namespace_pid, row, pid.0);
        }
        match process.exit {
            None => {}
            Some(Exit::Code(status)) => number(&mut columns.exit_status, row, status),
            Some(Exit::Signal(signal)) => number(&mut columns.exit_signal, row, u32::from(signal)),
        }
        if let Some(user) = process.user {
            number(&mut columns.uid, row, user.0);
        }
        if let Some(name) = machine.user_name(process) {
            let id = self.made.intern(name);
            columns.user.set(row, |texts| texts.push(id.0.into(), name));
        }
        let program = machine.program_at(id, process.end.unwrap_or(Nanos(u64::MAX)));
        string(&mut columns.cgroup, row, machine, process.cgroup);
        if let Some(program) = program {
            self.command(row, machine.program(program));
        }
        Ok(())
    }

    /// Adds all programs that processes executed.
    pub(super) fn programs(&mut self) -> io::Result<()> {
        for program in self.profile.machine.programs() {
            let row = self.row(Record::Program)?;
            self.of_process(row, program.process, program.name);
            self.since(row, program.since);
            self.command(row, program);
        }
        Ok(())
    }

    /// Adds all spans.
    pub(super) fn spans(&mut self) -> io::Result<()> {
        let machine = self.profile.machine;
        for span in machine.spans() {
            let row = self.row(Record::Span)?;
            let columns = &mut self.columns;
            moment(machine, row, span.start, (&mut columns.time, &mut columns.time_ns));
            if let Some(end) = span.end {
                moment(machine, row, end, (&mut columns.end_time, &mut columns.end_ns));
            }
            string(&mut columns.span, row, machine, span.name);
            if let Some(timeline) = machine.timeline_of(span) {
                string(&mut columns.timeline, row, machine, timeline.name);
                match timeline.owner {
                    TimelineOwner::Recording => {}
                    TimelineOwner::Process(id) => self.of_process(row, id, machine.process(id).name),
                    TimelineOwner::Thread(id) => self.of_thread(row, id),
                }
            }
            self.attributes(row, span.attributes);
        }
        Ok(())
    }

    /// When something was made; of what was there before the recording that is not known.
    fn since(&mut self, row: u32, time: Nanos) {
        if time > Nanos(0) {
            let clocks = (&mut self.columns.time, &mut self.columns.time_ns);
            moment(self.profile.machine, row, time, clocks);
        }
    }

    fn command(&mut self, row: u32, program: &Program) {
        let command = self.profile.machine.command_line(program);
        if !command.is_empty() {
            let id = self.made.intern(&command);
            self.columns.command.set(row, |texts| texts.push(id.0.into(), &command));
        }
    }

    /// Writes what is left.
    pub(super) fn finish(mut self, facts: Vec<(&str, String)>) -> io::Result<()> {
        self.end_group()?;
        self.file.finish(facts)
    }
}

/// Gives a row a string, if there is one.
fn string(leaf: &mut Leaf<Texts>, row: u32, machine: &ExportMachine, id: StringId) {
    let text = machine.string(id);
    if !text.is_empty() {
        leaf.set(row, |texts| texts.push(id.0.into(), text));
    }
}

fn number<K: Integer>(leaf: &mut Leaf<Integers<K>>, row: u32, number: impl Into<i64>) {
    let number = number.into();
    leaf.set(row, |integers| integers.push(number));
}

/// A time, in the time of day, where that is known, and by the recording's clock.
fn moment<A: Integer, B: Integer>(
    machine: &ExportMachine,
    row: u32,
    time: Nanos,
    (day, clock): (&mut Leaf<Integers<A>>, &mut Leaf<Integers<B>>),
) {
    let unix = machine.system().clocks.unix_at(time).and_then(|unix| i64::try_from(unix).ok());
    if let Some(unix) = unix {
        number(day, row, unix);
    }
    number(clock, row, least(time.0));
}

/// A number, or the largest that there is room for.
fn least(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
