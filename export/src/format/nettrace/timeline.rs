//! What is told of processes and their mappings, in the order of time, and when the trace begins and ends.
//!
//! What was there before the recording is told of at its start. A process is told of before its mappings, and before
//! samples of the same time; its end is told of after them.

use collector_common::ids::Nanos;
use collector_common::record::{ExportMachine, ProcessId};

/// Something that is told of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was there before the recording.
    Existing(ProcessId),
    Created(ProcessId),
    /// The mapping at a position.
    Mapped(u32),
    Exited(ProcessId),
}

/// A step and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) time: Nanos,
    pub(super) step: Step,
}

impl Timed {
    /// Whether it is told of before a sample.
    pub(super) fn is_before(&self, sample: Nanos) -> bool {
        let is_exit = matches!(self.step, Step::Exited(_));
        self.time < sample || (self.time == sample && !is_exit)
    }
}

/// All that is told, by time, and the samples' order.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) steps: Vec<Timed>,
    /// Positions of samples, by time.
    pub(super) samples: Vec<u32>,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

/// Times have 63 bits there.
pub(super) fn tick(time: Nanos) -> Nanos {
    Nanos(time.0.min(i64::MAX.cast_unsigned()))
}

impl Timeline {
    pub(super) fn of(machine: &ExportMachine) -> Self {
        let all = machine.samples();
        let time = |at: u32| all.get(at as usize).map_or(Nanos(0), |sample| tick(sample.time));
        let mut samples: Vec<u32> = (0..).take(all.len()).collect();
        samples.sort_unstable_by_key(|&at| (time(at), at));
        let first = samples.first().map_or(Nanos(u64::MAX), |&at| time(at));
        let start = tick(machine.system().start).min(first);

        let began = |process: ProcessId| {
            let start_of_process = machine.processes().get(process.0 as usize).map(|process| process.start);
            tick(start_of_process.unwrap_or_default()).max(start)
        };
        let mut steps = Vec::new();
        for (process, at) in machine.processes().iter().zip(0..) {
            let id = ProcessId(at);
            let is_new = process.start >= start && process.start != Nanos(0);
            let step = if is_new { Step::Created(id) } else { Step::Existing(id) };
            steps.push(Timed { time: began(id), step });
            let exited =
                process.end.map(|end| Timed { time: tick(end).max(began(id)), step: Step::Exited(id) });
            steps.extend(exited);
        }
        for (mapping, at) in machine.mappings().iter().zip(0..) {
            let time = tick(mapping.since).max(began(mapping.process));
            steps.push(Timed { time, step: Step::Mapped(at) });
        }
        let rank = |step: Step| match step {
            Step::Existing(_) | Step::Created(_) => 0,
            Step::Mapped(_) => 1,
            Step::Exited(_) => 2,
        };
        steps.sort_by_key(|timed| (timed.time, rank(timed.step)));
        let last_sample = samples.last().map_or(Nanos(0), |&at| time(at));
        let last_step = steps.last().map_or(Nanos(0), |timed| timed.time);
        let end = tick(machine.system().end).max(last_sample).max(last_step).max(start);
        Self { steps, samples, start, end }
    }
}
