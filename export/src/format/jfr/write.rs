//! A [`Profile`] in, a recording out, in chunks that each have what their events refer to.
//!
//! JFR is of one process. Here a thread has the process it is of as its group, as `prog (pid 100)`, and the pid beside its tid;
//! processes are events of their own, and so are programs that they executed, and spans.

use std::io::{self, Write};

use collector_common::ids::Nanos;
use collector_common::record::{ClockAnchor, ExportMachine, Happened, Sample, WITHOUT_ADDRESS};

use super::chunk::Chunks;
use super::constants::Constants;
use super::kinds::{Form, Kind, State, is_estimate, kinds};
use super::numbers::Numbers;
use super::types::{fixed, id};
use super::wire::{NULL, constant_text, int, long};
use super::{facts, metadata};
use crate::format::start::start;
use crate::format::{ExportFormat, Holds, Part, Profile};

/// The JFR format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jfr;

impl ExportFormat for Jfr {
    fn name(&self) -> &'static str {
        "jfr"
    }

    fn ending(&self) -> &'static str {
        ".jfr"
    }

    fn description(&self) -> &'static str {
        "every sample with its time, thread, stack, lines and attributes, for JDK Mission Control and `jfr`"
    }

    fn holds(&self) -> Holds {
        Holds::everything().without(&[
            Part::FileDetails,
            Part::Sources,
            Part::Guesses,
            Part::FrameRules,
            Part::System,
            Part::Events,
            Part::Tables,
        ])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let machine = profile.machine;
        let kinds = kinds(machine);
        let of_spans = Numbers::of_spans(machine);
        let mut classes = fixed();
        if let Some(class) = classes.iter_mut().find(|class| class.id == id::SPAN) {
            of_spans.add_to(machine, class);
        }
        classes.extend(kinds.iter().map(|kind| kind.class(machine)));
        let start = start(machine);
        let anchor = anchor(machine);
        let mut chunks = Chunks::new(out, anchor, metadata::event(&classes, start.0), Constants::of(profile));
        facts::recording(machine, &kinds, anchor, start, &mut chunks)?;
        for (time, happened) in machine.in_time_order() {
            let time = time.max(start);
            match happened {
                Happened::ProcessStarted(process) => facts::process(machine, process, start, &mut chunks)?,
                // A reader of a file without addresses makes such places up.
                Happened::Mapped(_, mapping) if WITHOUT_ADDRESS.contains(&mapping.start.0) => {}
                Happened::Mapped(_, mapping) => facts::library(machine, mapping, time, &mut chunks)?,
                Happened::Sampled(sample) | Happened::SampledEvent(sample, _) => {
                    if let Some(kind) = kinds.get(usize::from(sample.kind.0)) {
                        write_sample(machine, kind, &sample, &mut chunks)?;
                    }
                }
                Happened::Executed(program) => facts::program(machine, program, time, &mut chunks)?,
                Happened::SpanBegan(_, span) => facts::span(machine, span, &of_spans, &mut chunks)?,
                Happened::Event(_) | Happened::ProcessEnded(_) => {}
            }
        }
        chunks.end(machine.system().end)
    }
}

/// One for the whole recording, so that differences of times are kept.
fn anchor(machine: &ExportMachine) -> ClockAnchor {
    let clocks = machine.system().clocks;
    let unknown = ClockAnchor { monotonic: Nanos(0), realtime: 0, boottime: None };
    clocks.start.or(clocks.end).unwrap_or(unknown)
}

fn write_sample(
    machine: &ExportMachine,
    kind: &Kind,
    sample: &Sample,
    chunks: &mut Chunks<'_>,
) -> io::Result<()> {
    chunks.event(kind.type_id, sample.time, |out, constants| {
        let value = sample.value.cast_unsigned();
        if kind.form == Form::Time {
            let is_duration = sample.value > 0 && !is_estimate(machine, sample);
            long(out, if is_duration { value } else { 0 });
        }
        long(out, constants.thread(sample.thread));
        long(out, constants.stack(sample.stack));
        match kind.form {
            Form::Execution => long(out, State::Runnable as u64),
            Form::WallClock => {
                long(out, State::of(machine, sample) as u64);
                int(out, sample.value.clamp(0, i32::MAX.into()) as i32);
            }
            Form::WallClockTime => {
                long(out, State::of(machine, sample) as u64);
                int(out, 1);
                long(out, value);
            }
            Form::Allocation => {
                long(out, constants.native_memory());
                long(out, value);
            }
            Form::Time | Form::Count | Form::Bytes => long(out, value),
        }
        if kind.has_value {
            long(out, value);
        }
        int(out, sample.cpu.into());
        if kind.has_attributes {
            match constants.attributes(sample.attributes) {
                0 => out.push(NULL),
                attributes => constant_text(out, attributes),
            }
        }
        kind.numbers.write(machine, sample.attributes, out);
    })
}
