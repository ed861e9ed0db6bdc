//! `PerfView`: `StackSource` XML in a zip archive, as `PerfView` itself saves a view of stacks. Samples of one kind, each with its time:
//! of the first kind that there are samples of, in the order of
//! [`ExportMachine::kinds`](collector_common::record::ExportMachine::kinds).
//!
//! Source of the format: `XmlStackSourceWriter` and `XmlStackSource` of microsoft/perfview. A stack is a node with its caller, from the
//! process (`Process64 NAME (PID)`) and the thread (`Thread (TID) NAME`) on, so that `PerfView` groups by these as it does with its own
//! recordings; a function is `MODULE!NAME`, and an inlined one has a node of its own. Times are milliseconds since the recording began,
//! 0 for what began before. A metric is milliseconds of sampling clocks and times, else the value as it is; `PerfView` holds it in 32
//! bits of floating point.

use std::fmt;
use std::io::{self, BufWriter, Write};

use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{ExportMachine, SampleKind, Thread, ThreadId, Unit};
use quick_xml::escape::escape;
use rustc_hash::FxHashMap;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::format::{ExportFormat, Profile};
use crate::functions::Functions;

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

    fn holds_all_kinds(&self) -> bool {
        false
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut archive = ZipWriter::new_stream(out);
        archive.start_file("collector.perfView.xml", SimpleFileOptions::default().large_file(true))?;
        let mut xml = BufWriter::with_capacity(1 << 16, &mut archive);
        write_xml(profile, &mut xml)?;
        xml.flush()?;
        drop(xml);
        archive.finish()?.into_inner().flush()
    }
}

fn write_xml(profile: Profile<'_>, out: &mut impl Write) -> io::Result<()> {
    let machine = profile.machine;
    let view = View::of(profile);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<StackWindow>\n <StackSource>")?;
    writeln!(out, "  <Frames Count=\"{}\">", view.frames.len())?;
    for (id, name) in view.frames.iter().enumerate() {
        writeln!(out, "   <Frame ID=\"{id}\">{}</Frame>", escape(printable(name)))?;
    }
    writeln!(out, "  </Frames>\n  <Stacks Count=\"{}\">", view.nodes.len())?;
    for (id, node) in view.nodes.iter().enumerate() {
        write!(out, "   <Stack ID=\"{id}\" CallerID=\"")?;
        match node.caller {
            Some(caller) => write!(out, "{caller}")?,
            None => write!(out, "-1")?,
        }
        writeln!(out, "\" FrameID=\"{}\" />", node.frame)?;
    }
    writeln!(out, "  </Stacks>\n  <Samples Count=\"{}\">", view.samples.len())?;
    for (id, &at) in view.samples.iter().enumerate() {
        let sample = machine.samples().at(at as usize);
        let Some(node) = view.leaves.get(&(sample.thread, sample.stack)) else { continue };
        let time = Milliseconds(i128::from(sample.time.0.saturating_sub(machine.system().start.0)));
        write!(out, "   <Sample ID=\"{id}\" Time=\"{time}\" StackID=\"{node}\" Metric=\"")?;
        match view.period {
            Some(period) => {
                write!(out, "{}", Milliseconds(i128::from(sample.value) * i128::from(period.0)))?;
            }
            None => write!(out, "{}", sample.value)?,
        }
        writeln!(out, "\" />")?;
    }
    writeln!(out, "  </Samples>\n </StackSource>\n</StackWindow>")
}

/// XML has no way to write control characters.
fn printable(text: &str) -> String {
    let is_allowed = |char: char| (char >= ' ' && !matches!(char, '\u{fffe}' | '\u{ffff}')) || char == '\t';
    text.chars().map(|char| if is_allowed(char) { char } else { char::REPLACEMENT_CHARACTER }).collect()
}

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

/// A stack: a frame and who called it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    caller: Option<u32>,
    frame: u32,
}

/// What is written.
struct View {
    frames: Vec<String>,
    nodes: Vec<Node>,
    /// The stack of each thread with it.
    leaves: FxHashMap<(ThreadId, StackId), u32>,
    /// Positions of samples, by time.
    samples: Vec<u32>,
    /// What a value of 1 means, where it is time.
    period: Option<Nanos>,
}

impl View {
    fn of(profile: Profile<'_>) -> Self {
        let machine = profile.machine;
        let kind = machine.samples().iter().map(|sample| sample.kind).min();
        let chosen = machine.samples().iter().zip(0..).filter(|(sample, _)| Some(sample.kind) == kind);
        let mut samples: Vec<u32> = chosen.map(|(_, at)| at).collect();
        let times = machine.samples().times();
        samples.sort_by_key(|at| times.get(*at as usize));

        let functions = Functions::of(profile, |_| true);
        let named = (0..).take(functions.list().len()).map(|function| {
            let (name, module) = functions.named(profile, function);
            format!("{module}!{name}")
        });
        let mut tree = Tree { frames: named.collect(), nodes: Vec::new(), index: FxHashMap::default() };
        let roots = tree.roots(machine);
        let mut leaves = FxHashMap::default();
        for sample in samples.iter().map(|at| machine.samples().at(*at as usize)) {
            let Some(&root) = roots.get(sample.thread.0 as usize) else { continue };
            leaves.entry((sample.thread, sample.stack)).or_insert_with(|| {
                let frames = machine.stacks().get(sample.stack).iter().rev();
                let path = frames.flat_map(|frame| functions.of_frame(*frame).rev());
                path.fold(root, |caller, frame| tree.node(Some(caller), frame))
            });
        }
        let kind = kind.and_then(|kind| machine.kinds().get(usize::from(kind.0)));
        Self { frames: tree.frames, nodes: tree.nodes, leaves, samples, period: kind.and_then(period) }
    }
}

fn period(kind: &SampleKind) -> Option<Nanos> {
    match kind.unit {
        Unit::Nanoseconds => Some(Nanos(1)),
        Unit::Count if kind.period > 1 => Some(Nanos(kind.period)),
        Unit::Count | Unit::Bytes => None,
    }
}

/// Stacks as they are found.
struct Tree {
    frames: Vec<String>,
    nodes: Vec<Node>,
    index: FxHashMap<Node, u32>,
}

impl Tree {
    /// The stack of each thread that has no other.
    fn roots(&mut self, machine: &ExportMachine) -> Vec<u32> {
        let processes: Vec<u32> = machine
            .processes()
            .iter()
            .map(|process| {
                self.frames.push(format!("Process64 {} ({})", machine.string(process.name), process.pid));
                self.node(None, self.frames.len() as u32 - 1)
            })
            .collect();
        let thread = |thread: &Thread| {
            self.frames.push(format!("Thread ({}) {}", thread.tid, machine.string(thread.name)));
            let process = processes.get(thread.process.0 as usize).copied();
            self.node(process, self.frames.len() as u32 - 1)
        };
        machine.threads().iter().map(thread).collect()
    }

    fn node(&mut self, caller: Option<u32>, frame: u32) -> u32 {
        let node = Node { caller, frame };
        *self.index.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        })
    }
}
