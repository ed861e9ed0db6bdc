//! `PerfView`: `StackSource` XML in a zip archive, as `PerfView` itself saves a view of stacks. Samples of one kind
//! ([`ExportMachine::shown_kind`](collector_common::record::ExportMachine::shown_kind)), each with its time.
//!
//! Source of the format: `XmlStackSourceWriter` and `XmlStackSource` of microsoft/perfview. A stack is a node with its caller, from the
//! process (`Process64 NAME (PID)`) and the thread (`Thread (TID) NAME`) on, so that `PerfView` groups by these as it does with its own
//! recordings; a function is `MODULE!NAME`, and an inlined one has a node of its own. Times are milliseconds since the recording began,
//! 0 for what began before. A metric is milliseconds of sampling clocks and times, else the value as it is; `PerfView` holds it in 32
//! bits of floating point.

use std::fmt;
use std::io::{self, BufWriter, Write};

use collector_common::ids::Nanos;
use collector_common::intern::{Seeded, StackId};
use collector_common::record::{ExportMachine, Process, SampleKind, Thread, ThreadId, Unit};
use quick_xml::escape::escape;
use zip::System;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::paths::Paths;
use super::printable::printable;
use crate::format::{ExportFormat, Holds, Part, Profile};
use crate::functions::Functions;
use crate::table::{KeySet, Table};

/// The format.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfView;

impl ExportFormat for PerfView {
    fn name(&self) -> &'static str {
        "perfview"
    }

    fn ending(&self) -> &'static str {
        ".perfview.xml.zip"
    }

    fn description(&self) -> &'static str {
        "samples of one kind with their times and stacks, for PerfView"
    }

    fn holds(&self) -> Holds {
        Holds::nothing().with(&[
            Part::NotPositive,
            Part::Times,
            Part::Processes,
            Part::ThreadIds,
            Part::Renames,
            Part::Files,
            Part::Inlined,
            Part::Periods,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut archive = ZipWriter::new_stream(out);
        // Of Linux on every system, so that one recording is one archive.
        let options = SimpleFileOptions::default().system(System::Unix).unix_permissions(MODE);
        let options = options.large_file(true).compression_level(Some(LEVEL));
        archive.start_file("collector.perfView.xml", options)?;
        let mut xml = BufWriter::with_capacity(1 << 16, &mut archive);
        View::of(profile).write(&mut xml)?;
        xml.flush()?;
        drop(xml);
        archive.finish()?.into_inner().flush()
    }
}

/// Who may read and write the file that is unpacked.
const MODE: u32 = 0o644;

/// How hard is tried to compress well.
const LEVEL: i64 = 2;

/// Nanoseconds, shown as milliseconds.
struct Milliseconds(i128);

impl fmt::Display for Milliseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const IN_ONE: u128 = 1_000_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanoseconds = self.0.unsigned_abs();
        write!(out, "{sign}{}.{:06}", nanoseconds / IN_ONE, nanoseconds % IN_ONE)
    }
}

/// A number's digits.
fn number(out: &mut impl Write, number: impl itoa::Integer) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}

/// What is written.
struct View<'a> {
    machine: &'a ExportMachine,
    /// Functions, then processes, then threads.
    frames: Vec<String>,
    /// How many of the frames are functions.
    functions: u32,
    /// Of functions.
    paths: Paths,
    /// The stacks of threads, by thread and path.
    stacks: Vec<Stack>,
    /// Positions of samples, by time.
    samples: Vec<u32>,
    /// What a value of 1 means, where it is time.
    period: Option<Nanos>,
}

/// A thread's stack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stack {
    thread: ThreadId,
    path: u32,
    /// Several may have one path.
    id: StackId,
}

impl<'a> View<'a> {
    fn of(profile: Profile<'a>) -> Self {
        let machine = profile.machine;
        let kind = machine.shown_kind();
        let chosen = machine.samples().iter().zip(0..).filter(|(sample, _)| Some(sample.kind) == kind);
        let chosen = chosen.filter(|(sample, _)| (sample.thread.0 as usize) < machine.threads().len());
        let mut samples: Vec<(Nanos, u32)> = chosen.map(|(sample, at)| (sample.time, at)).collect();
        samples.sort_unstable();
        let samples: Vec<u32> = samples.into_iter().map(|(_, at)| at).collect();

        let functions = Functions::of(profile, |_| true);
        let mut frames: Vec<String> = (0..)
            .take(functions.list().len())
            .map(|function| {
                let (name, module) = functions.named(profile, function);
                format!("{module}!{name}")
            })
            .collect();
        let named =
            |process: &Process| format!("Process64 {} ({})", machine.string(process.name), process.pid);
        frames.extend(machine.processes().iter().map(named));
        let named = |thread: &Thread| format!("Thread ({}) {}", thread.tid, machine.string(thread.name));
        frames.extend(machine.threads().iter().map(named));

        let chosen = samples.iter().map(|at| machine.samples().at(*at as usize));
        let known: KeySet<(ThreadId, StackId)> = chosen.map(|sample| (sample.thread, sample.stack)).collect();
        let paths = Paths::of(machine, known.iter().map(|&(_, stack)| stack), |frames, path| {
            path.extend(frames.iter().rev().flat_map(|frame| functions.of_frame(*frame).rev()));
        });
        let stack = |(thread, id)| Stack { thread, path: paths.of_stack(id), id };
        let mut stacks: Vec<Stack> = known.into_iter().map(stack).collect();
        stacks.sort_unstable();
        let kind = kind.and_then(|kind| machine.kinds().get(usize::from(kind.0)));
        let (functions, period) = (functions.list().len() as u32, kind.and_then(period));
        Self { machine, frames, functions, paths, stacks, samples, period }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<StackWindow>\n <StackSource>")?;
        writeln!(out, "  <Frames Count=\"{}\">", self.frames.len())?;
        for (id, name) in self.frames.iter().enumerate() {
            writeln!(out, "   <Frame ID=\"{id}\">{}</Frame>", escape(printable(name)))?;
        }
        writeln!(out, "  </Frames>")?;
        let leaves = self.write_stacks(out)?;
        self.write_samples(&leaves, out)?;
        writeln!(out, " </StackSource>\n</StackWindow>")
    }

    /// Writes the nodes of stacks, each with its caller, and gives those that stacks end in.
    fn write_stacks(&self, out: &mut impl Write) -> io::Result<Table<(ThreadId, StackId), u32>> {
        let processes = self.machine.processes().len() as u32;
        let threads = self.machine.threads();
        let below_threads: usize =
            self.new_frames().map(|(stack, shared)| self.path(stack).len() - shared).sum();
        let count = processes as usize + threads.len() + below_threads;
        if i32::try_from(count).is_err() {
            let message = format!("PerfView numbers stacks in 31 bits; of this recording there are {count}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        writeln!(out, "  <Stacks Count=\"{count}\">")?;
        for (process, id) in (0..processes).zip(0..) {
            node(out, id, None, self.functions + process)?;
        }
        for (thread, id) in threads.iter().zip(processes..) {
            // Their frames are in the order of their nodes.
            node(
                out,
                id,
                Some(thread.process.0).filter(|process| *process < processes),
                self.functions + id,
            )?;
        }
        let mut next = processes + threads.len() as u32;
        let mut leaves = Table::with_capacity_and_hasher(self.stacks.len(), Seeded::default());
        // From the thread on.
        let mut open: Vec<u32> = Vec::new();
        for (stack, shared) in self.new_frames() {
            open.truncate(shared + 1);
            if shared == 0 {
                open.clear();
                open.push(processes + stack.thread.0);
            }
            for &frame in &self.path(stack)[shared..] {
                node(out, next, open.last().copied(), frame)?;
                open.push(next);
                next += 1;
            }
            if let Some(&leaf) = open.last() {
                leaves.insert((stack.thread, stack.id), leaf);
            }
        }
        writeln!(out, "  </Stacks>")?;
        Ok(leaves)
    }

    fn path(&self, stack: &Stack) -> &[u32] {
        self.paths.get(stack.path)
    }

    /// All stacks, and how many of the frames of each are those of the one before, in the same thread.
    fn new_frames(&self) -> impl Iterator<Item = (&Stack, usize)> {
        let before = [None].into_iter().chain(self.stacks.iter().map(Some));
        self.stacks.iter().zip(before).map(|(stack, before)| {
            let before =
                before.filter(|before| before.thread == stack.thread).map(|before| self.path(before));
            let same = self.path(stack).iter().zip(before.unwrap_or_default()).take_while(|(a, b)| a == b);
            (stack, same.count())
        })
    }

    fn write_samples(
        &self,
        leaves: &Table<(ThreadId, StackId), u32>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        writeln!(out, "  <Samples Count=\"{}\">", self.samples.len())?;
        for (id, &at) in self.samples.iter().enumerate() {
            let sample = self.machine.samples().at(at as usize);
            let Some(node) = leaves.get(&(sample.thread, sample.stack)) else { continue };
            let time = Milliseconds(i128::from(sample.time.0.saturating_sub(self.machine.system().start.0)));
            write!(out, "   <Sample ID=\"{id}\" Time=\"{time}\" StackID=\"{node}\" Metric=\"")?;
            match self.period {
                Some(period) => {
                    write!(out, "{}", Milliseconds(i128::from(sample.value) * i128::from(period.0)))?;
                }
                None => write!(out, "{}", sample.value)?,
            }
            writeln!(out, "\" />")?;
        }
        writeln!(out, "  </Samples>")
    }
}

/// Writes a node. There are more of them than of all else.
fn node(out: &mut impl Write, id: u32, caller: Option<u32>, frame: u32) -> io::Result<()> {
    out.write_all(b"   <Stack ID=\"")?;
    number(out, id)?;
    out.write_all(b"\" CallerID=\"")?;
    match caller {
        Some(caller) => number(out, caller)?,
        None => number(out, -1)?,
    }
    out.write_all(b"\" FrameID=\"")?;
    number(out, frame)?;
    out.write_all(b"\" />\n")
}

fn period(kind: &SampleKind) -> Option<Nanos> {
    match kind.unit {
        Unit::Nanoseconds => Some(Nanos(1)),
        Unit::Count if kind.period > 1 => Some(Nanos(kind.period)),
        Unit::Count | Unit::Bytes => None,
    }
}
