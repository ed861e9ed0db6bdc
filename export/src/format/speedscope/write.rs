//! A [`Profile`] in, the file out, as it is made.

use std::io::{self, Write};

use collector_common::record::{ExportMachine, SampleKind, Unit};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use super::places::{SourcePlace, places};
use super::series::{AT_ONCE, AllSeries, Samples, Series};
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
        Holds::nothing()
            .with(&[
                Part::Kinds,
                Part::Processes,
                Part::ThreadIds,
                Part::Sources,
                Part::Inlined,
                Part::Periods,
                Part::Command,
                Part::Account,
            ])
            .with_some(&[Part::Files, Part::Lines])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let series = AllSeries::of(profile.machine);
        let functions = Functions::of(profile, |_| true);
        let file = File {
            schema: "https://www.speedscope.app/file-format-schema.json",
            exporter: exporter(profile.machine),
            name: name(profile.machine),
            active_profile_index: 0,
            shared: Shared {
                frames: Frames { functions: &functions, places: places(profile, &functions), profile },
            },
            profiles: Profiles { series, functions: &functions, machine: profile.machine },
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
    profiles: Profiles<'a>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Frames<'a>,
}

struct Frames<'a> {
    functions: &'a Functions,
    /// By function.
    places: Vec<SourcePlace>,
    profile: Profile<'a>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<u32>,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let places = (0..).zip(&self.places);
        serializer.collect_seq(places.map(|(function, place)| {
            let (name, module) = self.functions.named(self.profile, function);
            let source = self.profile.symbols.function(place.file);
            let file = if source.is_empty() { module } else { source };
            Frame { name, file, line: place.line(), col: place.column() }
        }))
    }
}

struct Profiles<'a> {
    series: AllSeries<'a>,
    functions: &'a Functions,
    machine: &'a ExportMachine,
}

impl Serialize for Profiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.series.each(AT_ONCE, |series, samples| {
            list.serialize_element(&Sampled::of(series, samples, self.functions, self.machine))
        })?;
        list.end()
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
    end_value: u128,
    samples: Stacks<'a>,
    weights: Weights<'a>,
}

impl<'a> Sampled<'a> {
    fn of(
        series: &Series,
        samples: &'a Samples<'a>,
        functions: &'a Functions,
        machine: &'a ExportMachine,
    ) -> Self {
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
            end_value: series.total.unsigned_abs().saturating_mul(factor.into()),
            samples: Stacks { samples, functions, machine },
            weights: Weights { samples, factor },
        }
    }
}

/// Stacks of samples, root first.
struct Stacks<'a> {
    samples: &'a Samples<'a>,
    functions: &'a Functions,
    machine: &'a ExportMachine,
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut stack: Vec<u32> = Vec::new();
        self.samples.each(|sample| {
            stack.clear();
            let frames = self.machine.stacks().get(sample.stack).iter().rev();
            stack.extend(frames.flat_map(|&frame| self.functions.of_frame(frame).rev()));
            list.serialize_element(&stack)
        })?;
        list.end()
    }
}

/// Weights of samples.
struct Weights<'a> {
    samples: &'a Samples<'a>,
    factor: u64,
}

impl Serialize for Weights<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        self.samples.each(|sample| {
            list.serialize_element(&(u128::from(sample.value.unsigned_abs()) * u128::from(self.factor)))
        })?;
        list.end()
    }
}
