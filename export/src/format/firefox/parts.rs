//! A profile of the crate in, parts of its JSON out: what is before its threads, some of the threads, and what is after them.
//!
//! All of the profile is made into JSON each time, and what is not wanted goes nowhere. In threads lines and files take the place of what the
//! crate writes there, which is that they are not known. Left out is what the crate always writes and the application takes for known: how
//! long threads were on CPUs, where no clock told, and addresses of allocations, where it looks for those that are not freed. What it shows of
//! a counter is added: of memory it takes each for what is in use.

use std::cell::Cell;
use std::io::{self, Write};

use fxprof_processed_profile::Profile;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

use super::lines::Lines;
use crate::table::Table;

/// A profile of which parts are written.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) profile: &'a Profile,
    /// Whether it is known how long threads were on CPUs.
    pub(super) has_clock: bool,
}

impl Parts<'_> {
    /// Writes all up to the beginning of the list of threads.
    pub(super) fn write_before_threads(self, out: &mut impl Write) -> io::Result<()> {
        self.write(Part::Before, out)
    }

    /// Writes the threads at some positions with their lines, each with a comma before it but for the first one.
    pub(super) fn write_threads<'a>(
        self,
        is_written: impl Fn(usize) -> bool,
        lines: &dyn Fn(usize) -> Option<&'a Lines>,
        is_first: &mut bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.write(Part::Threads { is_written: &is_written, lines, is_first }, out)
    }

    /// Writes all from the end of the list of threads on.
    pub(super) fn write_after_threads(self, out: &mut impl Write) -> io::Result<()> {
        self.write(Part::After, out)
    }

    fn write<W: Write>(self, part: Part<'_, '_>, out: &mut W) -> io::Result<()> {
        let is_open = Cell::new(matches!(part, Part::Before));
        let gate = Gate { out, is_open: &is_open };
        let cut = Cut {
            part,
            has_clock: self.has_clock,
            is_open: &is_open,
            depth: 0,
            key: Key::None,
            left_out: None,
            section: Section::Others,
            next: 0,
            lines: None,
            table: TableOf::Others,
            column: Column::Others,
            functions: Vec::new(),
            names: Vec::new(),
            files: Table::default(),
            row: 0,
        };
        Ok(self.profile.serialize(&mut Serializer::with_formatter(gate, cut))?)
    }
}

enum Part<'a, 'l> {
    Before,
    Threads {
        is_written: &'a dyn Fn(usize) -> bool,
        lines: &'a dyn Fn(usize) -> Option<&'l Lines>,
        is_first: &'a mut bool,
    },
    After,
}

/// What is in the outermost object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Meta,
    Threads,
    Counters,
    Others,
}

/// Tables of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableOf {
    Frames,
    Functions,
    Samples,
    Allocations,
    Others,
}

/// Columns of these.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Functions of frames.
    Functions,
    /// Lines of frames.
    Lines,
    /// Names of functions.
    Names,
    /// Files of functions.
    Files,
    Others,
}

/// In how many lists and objects names in the first object, in the second, of tables, of columns, and values of columns are.
const OF_SECTIONS: usize = 1;
const OF_META: usize = 2;
const OF_TABLES: usize = 3;
const OF_COLUMNS: usize = 4;
const OF_VALUES: usize = 5;

/// In how many lists and objects counters are.
const OF_COUNTERS: usize = 2;

/// What is shown of a counter: bytes that were allocated until then, as a line, called after it.
const DISPLAY: &[u8] = br#","display":{"graphType":"line-accumulated","unit":"bytes","color":"orange","markerSchemaLocation":null,"sortWeight":20,"label":"","tooltipRows":[{"type":"value","source":"accumulated","format":{"unit":"bytes"},"label":"allocated until then"},{"type":"value","source":"count-range","format":{"unit":"bytes"},"label":"allocated in the visible range"}]}"#;

/// Where a key is that is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// It is none that matters.
    None,
    /// Nothing of it is written, and whether it follows another.
    Begun {
        is_first: bool,
    },
    Named,
}

/// Lets bytes through while it is open.
struct Gate<'a, W> {
    out: &'a mut W,
    is_open: &'a Cell<bool>,
}

impl<W: Write> Write for Gate<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_open.get() { self.out.write(bytes) } else { Ok(bytes.len()) }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_open.get() { self.out.write_all(bytes) } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Opens and closes the gate as the JSON goes by, and puts lines and files into it.
struct Cut<'a, 'l> {
    part: Part<'a, 'l>,
    has_clock: bool,
    is_open: &'a Cell<bool>,
    /// In how many lists and objects the next value is.
    depth: usize,
    /// Of the objects whose keys matter.
    key: Key,
    /// Where something is being left out: in how many lists and objects, and whether the gate was open before.
    left_out: Option<(usize, bool)>,
    section: Section,
    /// The position of the next thread.
    next: usize,
    /// Those of the thread that is being written, where it has some.
    lines: Option<&'l Lines>,
    table: TableOf,
    column: Column,
    /// Functions of its frames, and names of its functions.
    functions: Vec<u32>,
    names: Vec<u32>,
    /// By function, the frame that is called after its file.
    files: Table<u32, usize>,
    /// The row of the next value of a column.
    row: usize,
}

impl<'l> Cut<'_, 'l> {
    fn is_in_threads(&self) -> bool {
        self.section == Section::Threads && self.depth == 2
    }

    fn has_keys(&self) -> bool {
        match self.section {
            _ if self.depth == OF_SECTIONS => true,
            Section::Meta => self.depth == OF_META,
            Section::Threads => [OF_TABLES, OF_COLUMNS].contains(&self.depth),
            Section::Counters | Section::Others => false,
        }
    }

    /// Whether a key, which is never an object's first one, is left out with its value.
    fn is_left_out(&self, key: &str) -> bool {
        match (self.section, self.depth, self.table) {
            (Section::Meta, OF_META, _) => key == "sampleUnits" && !self.has_clock,
            (Section::Threads, OF_COLUMNS, TableOf::Samples) => key == "threadCPUDelta" && !self.has_clock,
            (Section::Threads, OF_COLUMNS, TableOf::Allocations) => {
                ["memoryAddress", "threadId"].contains(&key)
            }
            _ => false,
        }
    }

    /// Writes what is before a key's name.
    fn begin_key<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Key::Begun { is_first } = self.key {
            self.key = Key::Named;
            CompactFormatter.begin_object_key(writer, is_first)?;
            CompactFormatter.begin_string(writer)?;
        }
        Ok(())
    }

    /// Takes the name of a section, a table or a column.
    fn named(&mut self, text: &str) {
        match self.depth {
            OF_SECTIONS => {
                self.section = match text {
                    "meta" => Section::Meta,
                    "threads" => Section::Threads,
                    "counters" => Section::Counters,
                    _ => Section::Others,
                }
            }
            OF_TABLES => {
                self.table = match text {
                    "frameTable" => TableOf::Frames,
                    "funcTable" => TableOf::Functions,
                    "samples" => TableOf::Samples,
                    "nativeAllocations" => TableOf::Allocations,
                    _ => TableOf::Others,
                }
            }
            OF_COLUMNS => {
                self.column = match (self.table, text) {
                    (TableOf::Frames, "func") => Column::Functions,
                    (TableOf::Frames, "line") => Column::Lines,
                    (TableOf::Functions, "name") => Column::Names,
                    (TableOf::Functions, "fileName") => Column::Files,
                    _ => Column::Others,
                };
                self.row = 0;
                if let (Column::Files, Some(lines)) = (self.column, self.lines) {
                    self.files = lines.files(&self.functions);
                }
            }
            _ => {}
        }
    }

    /// The next value's row and column, if it is one of a thread with lines.
    fn value(&mut self) -> Option<(&'l Lines, Column, usize)> {
        let lines = self.lines.filter(|_| self.section == Section::Threads && self.depth == OF_VALUES)?;
        let row = self.row;
        self.row += 1;
        Some((lines, self.column, row))
    }
}

impl Formatter for Cut<'_, '_> {
    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let number = match self.value() {
            Some((lines, Column::Lines, row)) => lines.line(row),
            Some((_, Column::Files, row)) => {
                let frame = u32::try_from(row).ok().and_then(|row| self.files.get(&row).copied());
                let function = frame.and_then(|frame| self.functions.get(frame));
                function.and_then(|function| self.names.get(*function as usize).copied())
            }
            _ => None,
        };
        match number {
            Some(number) => CompactFormatter.write_u32(writer, number),
            None => CompactFormatter.write_null(writer),
        }
    }

    fn write_u32<W: ?Sized + Write>(&mut self, writer: &mut W, number: u32) -> io::Result<()> {
        let mut number = number;
        match self.value() {
            Some((lines, Column::Functions, row)) => {
                let named = lines.named(row);
                number = named.and_then(|named| self.functions.get(named).copied()).unwrap_or(number);
                self.functions.push(number);
            }
            Some((_, Column::Names, _)) => self.names.push(number),
            _ => {}
        }
        CompactFormatter.write_u32(writer, number)
    }

    /// What is before a key is written as soon as it is known which one it is.
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if self.has_keys() {
            self.key = Key::Begun { is_first: first };
            return Ok(());
        }
        CompactFormatter.begin_object_key(writer, first)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if matches!(self.key, Key::Begun { .. }) { Ok(()) } else { CompactFormatter.begin_string(writer) }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if matches!(self.key, Key::Begun { .. }) {
            self.named(text);
            if self.is_left_out(text) {
                self.left_out = Some((self.depth, self.is_open.replace(false)));
            }
            self.begin_key(writer)?;
        }
        CompactFormatter.write_string_fragment(writer, text)
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.begin_key(writer)?;
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin_key(writer)?;
        CompactFormatter.end_string(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.key = Key::None;
        CompactFormatter.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        CompactFormatter.end_object_value(writer)?;
        if let Some((_, was_open)) = self.left_out.take_if(|(depth, _)| *depth == self.depth) {
            self.is_open.set(was_open);
        }
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.section == Section::Counters && self.depth == OF_COUNTERS {
            writer.write_all(DISPLAY)?;
        }
        CompactFormatter.end_object(writer)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        CompactFormatter.begin_array(writer)?;
        if self.is_in_threads() && matches!(self.part, Part::Before) {
            self.is_open.set(false);
        }
        Ok(())
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        CompactFormatter.begin_array_value(writer, first)?;
        if self.is_in_threads() {
            let position = self.next;
            self.next += 1;
            if let Part::Threads { is_written, lines, is_first } = &mut self.part
                && is_written(position)
            {
                self.is_open.set(true);
                self.lines = lines(position).filter(|lines| !lines.is_empty());
                self.functions.clear();
                self.names.clear();
                if !**is_first {
                    writer.write_all(b",")?;
                }
                **is_first = false;
            }
        }
        Ok(())
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_in_threads() && matches!(self.part, Part::Threads { .. }) {
            self.is_open.set(false);
            self.lines = None;
        }
        CompactFormatter.end_array_value(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_in_threads() && matches!(self.part, Part::After) {
            self.is_open.set(true);
        }
        self.depth -= 1;
        CompactFormatter.end_array(writer)
    }
}
