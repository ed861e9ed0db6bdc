//! Folded stacks, as scripts for flame graphs take them: lines of `thread;root;...;leaf count`, one kind of sample out.
//!
//! The first name of a line is the thread's, as [our own](crate::format::folded) and `stackcollapse-perf` have it. `_[k]` behind a name
//! tells the kernel's, `_[i]` what was inlined into the name before it. There are no addresses, and no times: each sample is at 0.
//! Lines that begin with `#` tell nothing.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _};

use collector_common::ids::{Nanos, Pid, Tid};
use collector_common::intern::Seeded;
use collector_common::record::{
    AttributeListId, ExportMachine, FrameFlags, FrameId, Module, ModuleId, ModuleKind, ProcessId, Sample,
    SampleKindId, ThreadId, Unit,
};

use super::frames::{Frames, Named, Place};
use super::room::{DEEPEST, checked, name};
use super::unpack::unpacked;
use super::{Begin, ImportError, ImportFormat, Imported, Input};

/// The most bytes, uncompressed.
const MOST_BYTES: u64 = 4 << 30;

/// The longest line.
const LONGEST: usize = 1 << 20;

/// What is read.
const FORMAT: &str = "folded profile";

/// The reader of folded stacks.
#[derive(Clone, Copy, Debug)]
pub struct Folded;

impl ImportFormat for Folded {
    fn name(&self) -> &'static str {
        "folded"
    }

    fn description(&self) -> &'static str {
        "folded stacks"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        let mut lines = begin.plain.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_empty(line));
        lines.next().is_some_and(|line| {
            let is_cut = line.len() == begin.plain.len() && begin.bytes.len() >= super::BEGIN;
            let text = str::from_utf8(line).ok().filter(|text| !text.trim_end().contains(char::is_control));
            text.is_some_and(|text| is_cut || split(text).is_some())
        })
    }

    fn import(&self, input: &mut dyn Input) -> Result<Imported, ImportError> {
        let mut reader = Reader::default();
        let mut input = BufReader::new(unpacked(input, MOST_BYTES)?);
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            if input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.len() > LONGEST {
                return Err(ImportError::TooMuch { what: "bytes in a line", limit: LONGEST as u64 });
            }
            if is_empty(&line) {
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            let Some((stack, count)) = split(&text) else {
                let what = format!("line {number} has no count behind its last space");
                return Err(ImportError::Malformed { format: FORMAT, what });
            };
            reader.line(stack, count, number)?;
        }
        checked(reader.finish())
    }
}

fn is_empty(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b"#")
}

/// A line's stack and count.
fn split(line: &str) -> Option<(&str, i64)> {
    let (stack, count) = line.trim_end().rsplit_once(' ')?;
    Some((stack, count.parse().ok()?))
}

struct Reader {
    machine: ExportMachine,
    frames: Frames,
    kind: SampleKindId,
    process: ProcessId,
    code: ModuleId,
    threads: HashMap<String, ThreadId, Seeded>,
    /// A frame's functions, outermost first.
    functions: Vec<Named>,
    stack: Vec<FrameId>,
}

impl Default for Reader {
    fn default() -> Self {
        let mut machine = ExportMachine::default();
        let kind = machine.add_kind_of_sums("samples", Unit::Count);
        let process = machine.add_process(Pid(0), "", None, Nanos(0));
        let path = machine.intern_string("[unknown]");
        let code = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        Self {
            machine,
            frames: Frames::default(),
            kind,
            process,
            code,
            threads: HashMap::default(),
            functions: Vec::new(),
            stack: Vec::new(),
        }
    }
}

impl Reader {
    fn line(&mut self, stack: &str, count: i64, number: u64) -> Result<(), ImportError> {
        let mut names = stack.split(';');
        let thread = self.thread(names.next().unwrap_or_default());
        self.stack.clear();
        let mut is_kernel = false;
        for (text, before) in names.zip(0_u64..) {
            if before >= DEEPEST {
                let place = format!("line {number}");
                return Err(ImportError::TooLarge { place, what: "functions on its stack", limit: DEEPEST });
            }
            let inlined = text.strip_suffix("_[i]").filter(|_| !self.functions.is_empty());
            if inlined.is_none() {
                self.push(is_kernel);
            }
            let name = match (inlined, text.strip_suffix("_[k]")) {
                (Some(inlined), _) => inlined,
                (None, kernel) => {
                    is_kernel = kernel.is_some();
                    kernel.unwrap_or(text)
                }
            };
            let name = self.frames.strings.intern(name);
            self.functions.push(Named { name, linkage: name, ..Named::default() });
        }
        self.push(is_kernel);
        self.stack.reverse();
        let stack = self.machine.intern_stack(&self.stack);
        self.machine.add_sample(&Sample {
            time: Nanos(0),
            thread,
            stack,
            cpu: 0,
            kind: self.kind,
            value: count,
            attributes: AttributeListId::NONE,
        });
        Ok(())
    }

    /// Adds the frame of the functions that were collected, if there are any.
    fn push(&mut self, is_kernel: bool) {
        if self.functions.is_empty() {
            return;
        }
        let (module, flags) = if is_kernel { (ModuleId::KERNEL, FrameFlags::KERNEL) } else { (self.code, 0) };
        self.functions.reverse();
        let place = Place { module, address: None, flags: FrameFlags(flags) };
        self.stack.push(self.frames.intern(&mut self.machine, place, &self.functions));
        self.functions.clear();
    }

    fn thread(&mut self, text: &str) -> ThreadId {
        let name = name(text);
        if let Some(&known) = self.threads.get(name) {
            return known;
        }
        let id = self.machine.intern_string(name);
        // Formats tell threads apart by these.
        let tid = Tid(self.threads.len() as u32 + 1);
        let thread = self.machine.intern_thread(self.process, tid, id);
        self.threads.insert(name.to_owned(), thread);
        thread
    }

    fn finish(mut self) -> Imported {
        let symbols = self.frames.finish(&mut self.machine);
        Imported { machine: self.machine, symbols, left_out: Vec::new() }
    }
}
