//! Threads of a plan in, their samples, allocations, spans and markers in a profile out.

use collector_common::ids::Nanos;
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

/// What the crate is given for the address of an allocation, which is not written.
const NO_ADDRESS: u64 = 0;

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
        let start = self.plan.timestamp(self.plan.origin());
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
            last: None,
        };
        if thread == 0 {
            self.add_nothing(handle, plan.origin());
        }
        for own in plan.samples(planned) {
            let Some(sample) = plan.machine().samples().get(own.at as usize) else { continue };
            if plan.tracks.of_thread(sample.thread) == own.track {
                self.name(&mut open, &sample);
            }
            self.add_sample(&mut open, &sample);
        }
        if open.last.is_some_and(|last| last.stack.is_some() || thread == 0 && last.until < plan.end()) {
            self.add_end(&open);
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
            self.add_nothing(handle, plan.end());
            self.note(handle, plan.timestamp(plan.origin()), "recording", plan.told());
        }
    }

    /// Adds a sample of no stack: what was sampled before is over.
    fn add_nothing(&mut self, thread: ThreadHandle, time: Nanos) {
        self.out.add_sample(thread, self.plan.timestamp(time), None, CpuDelta::ZERO, 0);
    }

    /// Adds the last time's stack where it ends: what is drawn above a thread's name has a sample from half the way to the one before until half
    /// the way to the next.
    fn add_last(&mut self, thread: &Open) {
        if let Some(Last { until, stack: Some(stack) }) = thread.last {
            let time = self.plan.timestamp(until);
            self.out.add_sample(thread.handle, time, Some(stack), CpuDelta::ZERO, 0);
        }
    }

    /// Tells that what was sampled last is over.
    fn add_end(&mut self, thread: &Open) {
        self.add_last(thread);
        if let Some(last) = thread.last {
            self.add_nothing(thread.handle, last.until);
        }
    }

    /// Tells that there was nothing between two samples. What shows them in time has each last until the next, but those of a clock are taken
    /// to last for the periods that they stand for, on both sides, and times are known.
    fn add_break(
        &mut self,
        thread: &mut Open,
        sample: &Sample,
        sampling: &Sampling,
        stack: Option<StackHandle>,
    ) {
        let Some([before, after]) = self.plan.around(sample, sampling) else { return };
        let began = Nanos(sample.time.0.saturating_sub(before));
        match thread.last {
            Some(last) if began > last.until => {
                self.add_end(thread);
                self.add_nothing(thread.handle, began);
            }
            Some(last) if began == last.until => self.add_last(thread),
            None if began > self.plan.origin() => self.add_nothing(thread.handle, began),
            _ => {}
        }
        let until = Nanos(sample.time.0.saturating_add(after));
        if thread.last.is_none_or(|last| last.until <= until) {
            let stack = stack.filter(|_| sampling.is_time && after > 0);
            thread.last = Some(Last { until, stack });
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

    fn add_sample(&mut self, thread: &mut Open, sample: &Sample) {
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
                self.add_break(thread, sample, &sampling, stack);
                self.out.add_sample(thread.handle, time, stack, on_cpu, weight);
                if sampling.is_time {
                    self.out.set_thread_samples_weight_type(thread.handle, WeightType::TracingMs);
                }
            }
            Role::Allocated => {
                self.out.add_allocation_sample(thread.handle, time, stack, NO_ADDRESS, sample.value);
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
    let named = told.named.as_ref().map(|named| out.intern_frame(thread.handle, named.clone()));
    let own = out.intern_frame(thread.handle, told.info.clone());
    thread.lines.add(own, named, told);
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
    last: Option<Last>,
}

/// What the samples of a thread told of last.
#[derive(Clone, Copy)]
struct Last {
    /// When it was over.
    until: Nanos,
    /// Of a time.
    stack: Option<StackHandle>,
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
