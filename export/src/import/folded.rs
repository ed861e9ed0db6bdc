//! Folded stacks, as scripts for flame graphs take them: lines of `thread;root;...;leaf count`, one kind of sample out.
//!
//! The first name of a line is the thread's, as [our own](crate::format::folded) and `stackcollapse-perf` have it. `_[k]` behind a name
//! tells the kernel's, `_[i]` what was inlined into the name before it. There are no addresses, and no times: each sample is at 0.
//! Lines that begin with `#` tell nothing.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read};

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

/// The most lines: more of what is compressed well would be read for long.
const MOST_LINES: u64 = 1 << 27;

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

    fn endings(&self) -> &'static str {
        ".folded .txt"
    }

    fn signature(&self) -> &'static [u8] {
        b""
    }

    fn mark(&self) -> &'static str {
        "lines of `a;b;c COUNT`, perhaps in gzip"
    }

    fn begins(&self, begin: &Begin<'_>) -> bool {
        let mut lines = begin.plain.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_empty(line));
        lines.next().is_some_and(|line| {
            let is_cut = line.len() == begin.plain.len() && begin.bytes.len() >= super::BEGIN;
            let text = str::from_utf8(line).ok().filter(|text| !text.trim_end().contains(char::is_control));
            text.is_some_and(|text| is_cut || split(text).is_some())
        })
    }

    fn most_bytes(&self) -> u64 {
        MOST_BYTES
    }

    fn import_into(
        &self,
        machine: ExportMachine,
        input: &mut dyn Input,
        _: u64,
    ) -> Result<Imported, ImportError> {
        checked(read(machine, input, MOST_LINES)?)
    }
}

/// Reads a file of so many lines at most.
fn read(machine: ExportMachine, input: impl Read, most: u64) -> Result<Imported, ImportError> {
    let mut reader = Reader::of(machine);
    let mut input = BufReader::new(unpacked(input, MOST_BYTES)?);
    let (mut line, mut last) = (Vec::new(), Vec::new());
    for number in 1_u64.. {
        line.clear();
        if input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if number > most {
            return Err(ImportError::TooMuch { what: "lines", limit: most });
        }
        if line.len() > LONGEST {
            return Err(ImportError::TooMuch { what: "bytes in a line", limit: LONGEST as u64 });
        }
        if is_empty(&line) || (line == last && reader.again()) {
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let Some((stack, count)) = split(&text) else {
            let what = format!("line {number} has no count behind its last space, as in `a;b;c 12`");
            let is_last = line.last() != Some(&b'\n') && (number > 1 || line.contains(&b';'));
            return Err(if is_last {
                ImportError::Cut(format!("{what}, and no end"))
            } else {
                ImportError::Malformed { format: FORMAT, what }
            });
        };
        reader.line(stack, count, number)?;
        std::mem::swap(&mut line, &mut last);
    }
    Ok(reader.finish())
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
    /// What the last line is, and the ones before it that are the same; and what one of them counts.
    last: Option<(Sample, i64)>,
}

impl Reader {
    fn of(mut machine: ExportMachine) -> Self {
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
            last: None,
        }
    }

    /// Takes the last line once more, if the sum has room for it.
    fn again(&mut self) -> bool {
        let Some((sample, count)) = &mut self.last else { return false };
        let Some(sum) = sample.value.checked_add(*count) else { return false };
        sample.value = sum;
        true
    }

    fn add_last(&mut self) {
        if let Some((sample, _)) = self.last.take() {
            self.machine.add_sample(&sample);
        }
    }

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
        self.add_last();
        let attributes = AttributeListId::NONE;
        let sample =
            Sample { time: Nanos(0), thread, stack, cpu: 0, kind: self.kind, value: count, attributes };
        self.last = Some((sample, count));
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
        self.add_last();
        let symbols = self.frames.finish(&mut self.machine);
        Imported { machine: self.machine, symbols, left_out: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_a_sum_and_lines_are_limited() {
        let lines = "a;f 2\n".repeat(50) + &"a;f 3\n".repeat(49) + "\n";
        let machine = read(ExportMachine::default(), lines.as_bytes(), 100).unwrap().machine;
        let values: Vec<i64> = machine.samples().iter().map(|sample| sample.value).collect();
        assert_eq!(values, [100, 147]);
        let error = read(ExportMachine::default(), lines.as_bytes(), 99).unwrap_err();
        assert!(error.to_string().contains("more than 99 lines"), "{error}");
        // What has no room in a sum is another sample.
        let lines = format!("a;f {}\n", i64::MAX).repeat(3);
        let machine = read(ExportMachine::default(), lines.as_bytes(), 3).unwrap().machine;
        assert_eq!(machine.samples().len(), 3);
    }
}
