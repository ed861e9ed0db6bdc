//! A profile of the crate in, parts of its JSON out: what is before its threads, some of the threads, and what is after them.
//!
//! All of the profile is made into JSON each time, and what is not wanted goes nowhere.

use std::cell::Cell;
use std::io::{self, Write};

use fxprof_processed_profile::Profile;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Writes all up to the beginning of the list of threads.
pub(super) fn write_before_threads(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    write(profile, Part::Before, out)
}

/// Writes the threads at some positions, each with a comma before it but for the first one.
pub(super) fn write_threads(
    profile: &Profile,
    is_written: impl Fn(usize) -> bool,
    is_first: &mut bool,
    out: &mut impl Write,
) -> io::Result<()> {
    write(profile, Part::Threads { is_written: &is_written, is_first }, out)
}

/// Writes all from the end of the list of threads on.
pub(super) fn write_after_threads(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    write(profile, Part::After, out)
}

fn write<W: Write>(profile: &Profile, part: Part<'_>, out: &mut W) -> io::Result<()> {
    let is_open = Cell::new(matches!(part, Part::Before));
    let gate = Gate { out, is_open: &is_open };
    let cut = Cut { part, is_open: &is_open, depth: 0, is_key: false, is_threads: false, next: 0 };
    Ok(profile.serialize(&mut Serializer::with_formatter(gate, cut))?)
}

enum Part<'a> {
    Before,
    Threads { is_written: &'a dyn Fn(usize) -> bool, is_first: &'a mut bool },
    After,
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

/// Opens and closes the gate as the JSON goes by.
struct Cut<'a> {
    part: Part<'a>,
    is_open: &'a Cell<bool>,
    /// In how many lists and objects the next value is.
    depth: usize,
    /// Whether a key of the outermost object is being written.
    is_key: bool,
    /// Whether the last one of these was that of the threads.
    is_threads: bool,
    /// The position of the next thread.
    next: usize,
}

impl Cut<'_> {
    fn is_in_threads(&self) -> bool {
        self.is_threads && self.depth == 2
    }
}

impl Formatter for Cut<'_> {
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_key = self.depth == 1;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if self.is_key {
            self.is_threads = text == "threads";
        }
        CompactFormatter.write_string_fragment(writer, text)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.is_key = false;
        CompactFormatter.begin_object_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
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
            if let Part::Threads { is_written, is_first } = &mut self.part
                && is_written(position)
            {
                self.is_open.set(true);
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
