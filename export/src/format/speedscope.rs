//! speedscope: JSON with a sampled profile for each thread and kind of sample, hottest first. A thread is one under all of its
//! names, and is called by the last of them. The account of losses is with the program that wrote the file; that samples were
//! lost is said behind the file's name, which speedscope shows.
//!
//! Source of the format: speedscope's `file-format-schema.json` (npm package `speedscope`). A profile's axis is the sum of its
//! samples' weights in time order, not the clock: what speedscope calls "time order" has no gaps where a thread did not run.
//! A weight is a sample's value in the kind's unit; of a sampling clock, whose samples count periods, it is in nanoseconds.
//! A frame is a function, inlined or not, of which speedscope adds up what it has; its file is the module that it lies in.

use std::io::{self, Write};

use collector_common::record::{ExportMachine, SampleKind, SampleKindId, ThreadId, Unit};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use crate::format::account::account;
use crate::format::{ExportFormat, Holds, Part, Profile};
use crate::functions::Functions;

/// The speedscope format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speedscope;

impl ExportFormat for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn ending(&self) -> &'static str {
        ".speedscope.json"
    }

    fn description(&self) -> &'static str {
        "a profile for each thread and kind of sample, in time order, for speedscope"
    }

    fn holds(&self) -> Holds {
        Holds::nothing().with(&[
            Part::Kinds,
            Part::Processes,
            Part::ThreadIds,
            Part::Files,
            Part::Inlined,
            Part::Periods,
            Part::Command,
            Part::Account,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let series = Series::all(profile.machine);
        let functions = Functions::of(profile, |_| true);
        let file = File {
            schema: "https://www.speedscope.app/file-format-schema.json",
            exporter: exporter(profile.machine),
            name: name(profile.machine),
            active_profile_index: 0,
            shared: Shared { frames: Frames { functions: &functions, profile } },
            profiles: series.iter().map(|series| Sampled::of(series, &functions, profile.machine)).collect(),
        };
        serde_json::to_writer(&mut *out, &file)?;
        out.flush()
    }
}

fn exporter(machine: &ExportMachine) -> String {
    let program = concat!("collector ", env!("CARGO_PKG_VERSION")).to_owned();
    [program].into_iter().chain(account(machine)).collect::<Vec<_>>().join("; ")
}

fn name(machine: &ExportMachine) -> String {
    let system = machine.system();
    let lost = system.lost.filter(|lost| *lost > 0);
    let lost = lost.map(|lost| format!("({lost} samples lost)")).unwrap_or_default();
    [system.command.as_str(), &lost].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Samples of one kind and thread.
struct Series {
    kind: SampleKindId,
    /// The thread, under its last name.
    thread: ThreadId,
    /// Positions of samples, by time.
    samples: Vec<u32>,
    total: i64,
}

impl Series {
    /// Those with the largest sums first; of kinds in their own order.
    fn all(machine: &ExportMachine) -> Vec<Self> {
        let mut order: Vec<_> = machine
            .samples()
            .iter()
            .zip(0..)
            // A weight is what an axis is made of.
            .filter(|(sample, _)| sample.value > 0)
            .map(|(sample, at)| {
                let thread = machine.thread(sample.thread);
                ((sample.kind, thread.process, thread.tid.0), sample.time.0, at, sample.thread)
            })
            .collect();
        order.sort_unstable();
        let series = order.chunk_by(|a, b| a.0 == b.0).map(|chunk| {
            let samples: Vec<u32> = chunk.iter().map(|&(_, _, at, _)| at).collect();
            let ((kind, ..), .., thread) = chunk[chunk.len() - 1];
            let values = samples.iter().filter_map(|&at| machine.samples().get(at as usize));
            let total = values.fold(0_i64, |sum, sample| sum.saturating_add(sample.value));
            Self { kind, thread, samples, total }
        });
        let mut series: Vec<Self> = series.collect();
        series.sort_by_key(|series| (series.kind, -series.total));
        series
    }
}

/// What one unit of a value weighs, and in what.
fn weight(kind: &SampleKind) -> (u64, &'static str) {
    match kind.unit {
        Unit::Count if kind.period > 1 => (kind.period, "nanoseconds"),
        Unit::Count => (1, "none"),
        Unit::Nanoseconds => (1, "nanoseconds"),
        Unit::Bytes => (1, "bytes"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    active_profile_index: u32,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Frames<'a>,
}

struct Frames<'a> {
    functions: &'a Functions,
    profile: Profile<'a>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    file: &'a str,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let functions = (0..).take(self.functions.list().len());
        serializer.collect_seq(functions.map(|function| {
            let (name, file) = self.functions.named(self.profile, function);
            Frame { name, file }
        }))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Stacks<'a>,
    weights: Weights<'a>,
}

impl<'a> Sampled<'a> {
    fn of(series: &'a Series, functions: &'a Functions, machine: &'a ExportMachine) -> Self {
        let kind = &machine.kinds()[usize::from(series.kind.0)];
        let (factor, unit) = weight(kind);
        let thread = machine.thread(series.thread);
        let process = machine.process(thread.process);
        let name = format!(
            "{}: {} (tid {}) of {} (pid {})",
            machine.string(kind.name),
            machine.string(thread.name),
            thread.tid,
            machine.string(process.name),
            process.pid
        );
        Self {
            kind: "sampled",
            name,
            unit,
            start_value: 0,
            end_value: series.total.unsigned_abs().saturating_mul(factor),
            samples: Stacks { series, functions, machine },
            weights: Weights { series, machine, factor },
        }
    }
}

/// Stacks of samples, root first.
struct Stacks<'a> {
    series: &'a Series,
    functions: &'a Functions,
    machine: &'a ExportMachine,
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.series.samples.len()))?;
        let mut stack: Vec<u32> = Vec::new();
        for &at in &self.series.samples {
            let Some(sample) = self.machine.samples().get(at as usize) else { continue };
            stack.clear();
            let frames = self.machine.stacks().get(sample.stack).iter().rev();
            stack.extend(frames.flat_map(|&frame| self.functions.of_frame(frame).rev()));
            list.serialize_element(&stack)?;
        }
        list.end()
    }
}

/// Weights of samples.
struct Weights<'a> {
    series: &'a Series,
    machine: &'a ExportMachine,
    factor: u64,
}

impl Serialize for Weights<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let samples = self.series.samples.iter().filter_map(|&at| self.machine.samples().get(at as usize));
        serializer.collect_seq(samples.map(|sample| sample.value.unsigned_abs().saturating_mul(self.factor)))
    }
}
