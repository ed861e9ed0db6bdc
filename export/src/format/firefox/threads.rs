//! Threads of a plan in, their samples, allocations, spans and markers in a profile out.

use collector_common::intern::{StackId, StringId};
use collector_common::record::{Sample, Span};
use fxprof_processed_profile::{
    self as fxprof, CpuDelta, FrameHandle, MarkerTiming, StackHandle, ThreadHandle, Timestamp, WeightType,
};

use super::frames::{self, Frames};
use super::lines::Lines;
use super::markers::{Markers, Renamed, Told};
use super::plan::{Begun, Plan, end_of};
use super::roles::{Role, Sampling};
use super::spans::Spans;
use crate::format::duration::duration;
use crate::table::Table;

/// A profile that some threads are filled in.
pub(super) struct Threads<'a> {
    plan: &'a Plan<'a>,
    out: fxprof::Profile,
    frames: Frames,
    markers: Markers,
    spans: Spans,
    /// As planned.
    handles: Vec<ThreadHandle>,
    /// By position in [`Frames`]: the frame of the thread that had it last.
    known: Vec<Option<(ThreadHandle, FrameHandle)>>,
    /// By thread, as planned.
    lines: Vec<Lines>,
    steps: usize,
}

impl<'a> Threads<'a> {
    pub(super) fn of(plan: &'a Plan<'a>) -> Self {
        let Begun { mut out, frames, markers, spans, threads } = plan.begin();
        // A thread that is not written.
        let process = out.add_process("", u32::MAX, Timestamp::from_nanos_since_reference(u64::MAX));
        let telling =
            out.add_thread(process, u32::MAX, Timestamp::from_nanos_since_reference(u64::MAX), false);
        plan.tell_libraries(&mut out, &frames, telling);
        let handles = threads.into_iter().map(|(_, thread)| thread).collect();
        let known = vec![None; frames.len()];
        let lines = std::iter::repeat_with(Lines::default).take(plan.threads.len()).collect();
        Self { plan, out, frames, markers, spans, handles, known, lines, steps: 0 }
    }

    /// How many steps the stacks have that were filled in.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// The profile, and the lines that the crate has no place for, by thread as planned.
    pub(super) fn into_profile(self) -> (fxprof::Profile, Vec<Lines>) {
        (self.out, self.lines)
    }

    /// With nothing in threads but a sample each, whose weight is the thread's position in the plan.
    pub(super) fn into_numbered(mut self) -> fxprof::Profile {
        let [start, _] = self.plan.edges();
        for (&thread, number) in self.handles.iter().zip(0..) {
            self.out.add_sample(thread, start, None, CpuDelta::ZERO, number);
        }
        self.out
    }

    /// Adds what a thread has.
    pub(super) fn fill(&mut self, thread: usize) {
        let plan = self.plan;
        let (Some(planned), Some(&handle)) = (plan.threads.get(thread), self.handles.get(thread)) else {
            return;
        };
        let mut open = Open {
            handle,
            name: None,
            stacks: Table::default(),
            weights: Weights::default(),
            lines: Lines::default(),
        };
        for own in plan.samples(planned) {
            let Some(sample) = plan.machine().samples().get(own.at as usize) else { continue };
            if plan.tracks.of_thread(sample.thread) == own.track {
                self.name(&mut open, &sample);
            }
            self.add_sample(&mut open, &sample, u64::from(own.at) + 1);
        }
        if let Some(lines) = self.lines.get_mut(thread) {
            open.lines.add_files(|path| self.out.intern_frame(handle, path));
            *lines = open.lines;
        }
        for span in plan.spans(planned) {
            self.add_span(handle, span);
        }
        if let Some(process) = planned.first_of {
            let start = plan.timestamp(plan.machine().process(process).start);
            self.note(handle, start, "process", plan.told_of_process(planned));
        }
        if thread == 0 {
            let edges = plan.edges();
            for time in edges {
                self.out.add_sample(handle, time, None, CpuDelta::ZERO, 0);
            }
            self.note(handle, edges[0], "recording", plan.told());
        }
    }

    /// Adds a marker a line.
    fn note(&mut self, thread: ThreadHandle, start: Timestamp, name: &str, lines: Vec<String>) {
        for line in lines {
            let [marker, text] = [name, &line].map(|text| self.out.intern_string(text));
            self.out.add_marker(thread, MarkerTiming::Instant(start), Told { marker, text });
        }
    }

    fn name(&mut self, thread: &mut Open, sample: &Sample) {
        let machine = self.plan.machine();
        let name = machine.thread(sample.thread).name;
        if thread.name.is_some_and(|before| before != name) {
            let marker = self.out.intern_string("renamed");
            let renamed = Renamed { marker, name: self.out.intern_string(machine.string(name)) };
            let timing = MarkerTiming::Instant(self.plan.timestamp(sample.time));
            self.out.add_marker(thread.handle, timing, renamed);
        }
        thread.name = Some(name);
    }

    /// Adds a sample; its number stands for the address that an allocation would have.
    fn add_sample(&mut self, thread: &mut Open, sample: &Sample, number: u64) {
        let time = self.plan.timestamp(sample.time);
        let known = thread.stacks.get(&sample.stack).copied();
        let stack = known.unwrap_or_else(|| {
            let stack = self.stack(thread, sample.stack);
            thread.stacks.insert(sample.stack, stack);
            stack
        });
        match Role::of(&self.plan.roles, sample.kind) {
            Role::Sampled(sampling) => {
                let count = sample.value.max(0).unsigned_abs();
                let on_cpu = CpuDelta::from_nanos(count.saturating_mul(sampling.period));
                let weight = thread.weights.weight(&sampling, sample);
                self.out.add_sample(thread.handle, time, stack, on_cpu, weight);
                if sampling.is_time {
                    self.out.set_thread_samples_weight_type(thread.handle, WeightType::TracingMs);
                }
            }
            Role::Allocated => {
                self.out.add_allocation_sample(thread.handle, time, stack, number, sample.value);
            }
            Role::Marked => {}
        }
        if self.plan.is_marked(sample) {
            self.mark(thread, sample, stack);
        }
    }

    fn add_span(&mut self, thread: ThreadHandle, span: &Span) {
        let start = self.plan.timestamp(span.start);
        let timing = match span.end {
            Some(end) => MarkerTiming::Interval(start, self.plan.timestamp(end)),
            None => MarkerTiming::IntervalStart(start),
        };
        let marker = self.spans.marker(self.plan.machine(), span, &mut self.out);
        self.out.add_marker(thread, timing, marker);
    }

    fn stack(&mut self, thread: &mut Open, stack: StackId) -> Option<StackHandle> {
        let mut handle = None;
        for frame in self.plan.machine().stacks().get(stack).iter().rev() {
            for (position, told) in self.frames.get(*frame) {
                let out = &mut self.out;
                let own = match self.known.get(position) {
                    Some(&Some((of_thread, frame))) if of_thread == thread.handle => frame,
                    _ => frame_of(out, thread, told),
                };
                if let Some(known) = self.known.get_mut(position) {
                    *known = Some((thread.handle, own));
                }
                handle = Some(out.intern_stack(thread.handle, handle, own));
                self.steps += 1;
            }
        }
        handle
    }

    fn mark(&mut self, thread: &Open, sample: &Sample, stack: Option<StackHandle>) {
        let machine = self.plan.machine();
        let start = self.plan.timestamp(sample.time);
        let timing = match duration(machine, sample) {
            Some(_) => MarkerTiming::Interval(start, self.plan.timestamp(end_of(machine, sample))),
            None => MarkerTiming::Instant(start),
        };
        if let Some(marker) = self.markers.marker(machine, sample, &mut self.out) {
            let marker = self.out.add_marker(thread.handle, timing, marker);
            self.out.set_marker_stack(thread.handle, marker, stack);
        }
    }
}

/// The frame of a thread, with its line.
fn frame_of(out: &mut fxprof::Profile, thread: &mut Open, told: &frames::Told) -> FrameHandle {
    let frames::Told { info, named, line, file } = told;
    let named = named.as_ref().map(|named| out.intern_frame(thread.handle, named.clone()));
    if let Some(named) = named {
        // What it is called by has a line of its own, which is told where it is on a stack.
        thread.lines.add(named, None, None, file.as_ref());
    }
    let own = out.intern_frame(thread.handle, info.clone());
    thread.lines.add(own, named, *line, file.as_ref());
    own
}

/// A thread that is being filled.
struct Open {
    handle: ThreadHandle,
    /// Of the last sample.
    name: Option<StringId>,
    stacks: Table<StackId, Option<StackHandle>>,
    weights: Weights,
    lines: Lines,
}

/// Weights of a thread's samples, which are 32 bits in the crate: what is less than 1 of a weight waits for the stack's next sample,
/// so that a stack has all of its own but for the last.
#[derive(Default)]
struct Weights {
    rests: Table<StackId, i64>,
}

impl Weights {
    fn weight(&mut self, sampling: &Sampling, sample: &Sample) -> i32 {
        let weight = if sampling.divisor == 1 {
            sample.value
        } else {
            let rest = self.rests.entry(sample.stack).or_default();
            let value = sample.value.saturating_add(*rest);
            *rest = value % sampling.divisor;
            value / sampling.divisor
        };
        weight.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }
}
