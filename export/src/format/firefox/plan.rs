//! A [`Profile`] in, out of it what all profiles of the crate have in common that it is written by: processes, threads, libraries, names
//! and types of markers.

use std::io;
use std::ops::Range;
use std::time::Duration;

use collector_common::ids::Nanos;
use collector_common::intern::StringId;
use collector_common::record::{ExportMachine, FrameId, ProcessId, Sample, Span, TimelineOwner};
use fxprof_processed_profile::{
    self as fxprof, ProcessHandle, ReferenceTimestamp, SamplingInterval, ThreadHandle, Timestamp,
};

use super::attributes::MOST_TYPES;
use super::busiest::{Share, Totals, busiest};
use super::frames::{Frames, Libraries};
use super::kinds;
use super::markers::{Markers, Renamed, Told};
use super::roles::{Role, Sampling};
use super::spans::Spans;
use super::tracks::{OfTrack, Track, Tracks};
use crate::format::Profile;
use crate::format::account::account;
use crate::format::duration::duration;
use crate::format::facts::facts;
use crate::format::start::start;

/// Before the name of a kind whose samples weigh less than their values.
pub(crate) const OF_WEIGHT: &str = "1 of the weight of ";

/// What is to be written.
pub(super) struct Plan<'a> {
    profile: Profile<'a>,
    pub(super) roles: Vec<Role>,
    pub(super) tracks: Tracks,
    /// By process. The first of them also has what is told of the recording as a whole; there is one if nothing was recorded, too.
    pub(super) threads: Vec<Planned>,
    samples: Vec<OfTrack>,
    spans: Vec<OfTrack>,
    libraries: Libraries,
    /// Frames that tell a profile which libraries are used, in which order, and that there is JavaScript.
    telling: Vec<FrameId>,
    /// Of the threads those that are shown first, the busiest before the others.
    busiest: Vec<usize>,
    /// Whether a thread had more than one name.
    is_renamed: bool,
    /// What times are counted from, and when all was over.
    origin: Nanos,
    end: Nanos,
}

/// A thread that is to be written.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// None if nothing was recorded.
    track: Option<Track>,
    /// The last one that it was sampled under, or that its last span has.
    name: Option<StringId>,
    /// Among all samples.
    samples: Range<usize>,
    /// Among all spans.
    spans: Range<usize>,
    /// Whether there are markers that last, which are shown above its samples.
    has_intervals: bool,
    share: Share,
    /// The process, if this is the first one of its threads.
    pub(super) first_of: Option<ProcessId>,
}

/// A profile in which threads have no samples yet.
pub(super) struct Begun {
    pub(super) out: fxprof::Profile,
    pub(super) frames: Frames,
    pub(super) markers: Markers,
    pub(super) spans: Spans,
    /// As planned.
    pub(super) threads: Vec<(ProcessHandle, ThreadHandle)>,
}

impl<'a> Plan<'a> {
    pub(super) fn of(profile: Profile<'a>) -> Self {
        let machine = profile.machine;
        let roles = Role::of_kinds(machine);
        let tracks = Tracks::of(machine);
        let samples = tracks.samples(machine, &roles);
        let spans = tracks.spans(machine);
        let libraries = Libraries::of(profile);
        let telling = telling(profile, &libraries);
        let origin = machine.spans().iter().map(|span| span.start).fold(start(machine), Nanos::min);
        let mut this = Self {
            profile,
            roles,
            tracks,
            threads: Vec::new(),
            samples,
            spans,
            libraries,
            telling,
            busiest: Vec::new(),
            is_renamed: false,
            origin,
            end: end(machine),
        };
        this.plan_threads();
        this.busiest = busiest(this.threads.iter().map(|thread| thread.share));
        this
    }

    fn plan_threads(&mut self) {
        let machine = self.profile.machine;
        let totals = Totals::of(machine);
        let mut process = None;
        for (&track, id) in self.tracks.list().iter().zip(0..) {
            let [samples, spans] = [&self.samples, &self.spans].map(|list| of_track(list, id));
            if samples.is_empty() && spans.is_empty() {
                continue;
            }
            let mut name = None;
            let mut has_intervals = !spans.is_empty();
            let mut share = totals.of_spans(spans.len());
            for own in &self.samples[samples.clone()] {
                let sample = machine.samples().at(own.at as usize);
                totals.add(&mut share, &sample);
                has_intervals =
                    has_intervals || self.is_marked(&sample) && duration(machine, &sample).is_some();
                if self.tracks.of_thread(sample.thread) == id {
                    let next = machine.thread(sample.thread).name;
                    self.is_renamed |= name.is_some_and(|name| name != next);
                    name = Some(next);
                }
            }
            let by_span = || self.spans[spans.clone()].iter().rev().find_map(|own| self.name_by(own));
            let name = name.or_else(by_span);
            let first_of = Some(track.process).filter(|own| process != Some(*own));
            process = Some(track.process);
            self.threads.push(Planned {
                track: Some(track),
                name,
                samples,
                spans,
                has_intervals,
                share,
                first_of,
            });
        }
        if self.threads.is_empty() {
            // What there is are spans of nobody in particular.
            self.threads.push(Planned { spans: of_track(&self.spans, 0), ..Planned::default() });
        }
    }

    /// What a thread is called, by one of its spans.
    fn name_by(&self, own: &OfTrack) -> Option<StringId> {
        let machine = self.profile.machine;
        match machine.timeline_of(machine.spans().get(own.at as usize)?)?.owner {
            TimelineOwner::Thread(thread) => Some(machine.thread(thread).name),
            TimelineOwner::Recording | TimelineOwner::Process(_) => None,
        }
    }

    pub(super) fn machine(&self) -> &'a ExportMachine {
        self.profile.machine
    }

    /// A thread's samples, by time.
    pub(super) fn samples(&self, thread: &Planned) -> &[OfTrack] {
        &self.samples[thread.samples.clone()]
    }

    /// A thread's spans, by their beginnings.
    pub(super) fn spans(&self, thread: &Planned) -> impl Iterator<Item = &'a Span> {
        let spans = self.machine().spans();
        self.spans[thread.spans.clone()].iter().filter_map(move |own| spans.get(own.at as usize))
    }

    /// A profile with all threads, and what there is of it: handles of one are those of each other.
    pub(super) fn begin(&self) -> Begun {
        let machine = self.machine();
        let system = machine.system();
        let unix = system.clocks.unix_at(self.origin).and_then(|unix| u64::try_from(unix).ok());
        let since_1970 = Duration::from_nanos(unix.unwrap_or(0));
        let period = self.roles.iter().find_map(|role| match role {
            Role::Sampled(Sampling { period, .. }) if *period > 0 => Some(*period),
            _ => None,
        });
        let mut out = fxprof::Profile::new(
            &title(machine),
            ReferenceTimestamp::from_duration_since_unix_epoch(since_1970),
            SamplingInterval::from_nanos(period.unwrap_or(1_000_000)),
        );
        out.set_os_name(format!("{} {}", system.kernel, system.architecture).trim());
        // What has no name yet has one nowhere else: a symbol server must not be asked on opening.
        out.set_symbolicated(true);
        kinds::tell(machine, &self.roles, &mut out);
        let frames = Frames::of(self.profile, &self.libraries, &mut out);
        let mut threads = Vec::new();
        let mut process = None;
        for thread in &self.threads {
            let known = process.filter(|_| thread.first_of.is_none());
            let handle = known.unwrap_or_else(|| self.add_process(&mut out, thread));
            process = Some(handle);
            threads.push((handle, self.add_thread(&mut out, handle, thread)));
        }
        let shown = self.busiest.iter().filter_map(|thread| threads.get(*thread));
        for (position, &(_, thread)) in shown.enumerate() {
            if position == 0 {
                out.add_initial_selected_thread(thread);
            }
            out.add_initial_visible_thread(thread);
        }
        Begun { out, frames, markers: Markers::default(), spans: Spans::default(), threads }
    }

    fn add_process(&self, out: &mut fxprof::Profile, first: &Planned) -> ProcessHandle {
        let Some(process) = first.track.map(|track| self.machine().process(track.process)) else {
            return out.add_process("nothing recorded", 0, self.timestamp(self.origin));
        };
        let start = self.timestamp(process.start);
        let handle = out.add_process(self.machine().string(process.name), process.pid.0, start);
        if let Some(end) = process.end {
            out.set_process_end_time(handle, self.timestamp(end));
        }
        handle
    }

    fn add_thread(
        &self,
        out: &mut fxprof::Profile,
        process: ProcessHandle,
        thread: &Planned,
    ) -> ThreadHandle {
        let Some(track) = thread.track else {
            return out.add_thread(process, 0, self.timestamp(self.origin), true);
        };
        let life = self.machine().process(track.process);
        let handle = out.add_thread(process, track.tid.0, self.timestamp(life.start), track.is_main);
        if let Some(end) = life.end {
            out.set_thread_end_time(handle, self.timestamp(end));
        }
        out.set_thread_show_markers_in_timeline(handle, thread.has_intervals);
        if let Some(name) = thread.name {
            out.set_thread_name(handle, self.machine().string(name));
        }
        handle
    }

    /// All of a profile but what threads have: of these it knows which libraries they use and which types of markers they have.
    ///
    /// # Errors
    /// When these are more than are read.
    pub(super) fn whole(&self) -> io::Result<fxprof::Profile> {
        let Begun { mut out, frames, mut markers, mut spans, threads } = self.begin();
        if let Some(&(_, first)) = threads.first() {
            self.tell_libraries(&mut out, &frames, first);
        }
        let machine = self.machine();
        for sample in machine.samples().iter() {
            if self.is_marked(&sample) {
                markers.marker(machine, &sample, &mut out);
            }
        }
        for span in machine.spans() {
            spans.marker(machine, span, &mut out);
        }
        // There is one more for each kind, and there are two of what is no sample and no span.
        if markers.types() + spans.types() + machine.kinds().len() + 2 > MOST_TYPES {
            return Err(io::Error::other(format!(
                "the lists of attributes of samples and spans are more than the {MOST_TYPES} that are read: name a format with all of them, as .jsonl"
            )));
        }
        if self.is_renamed {
            out.static_schema_marker_type::<Renamed>();
        }
        if !self.told().is_empty()
            || self.threads.iter().any(|thread| !self.told_of_process(thread).is_empty())
        {
            out.static_schema_marker_type::<Told>();
        }
        for (planned, &(process, _)) in self.threads.iter().zip(&threads) {
            self.add_counter(&mut out, process, planned);
        }
        Ok(out)
    }

    /// Counts what a process allocates, all of which is of its first thread. It begins with nothing: what a counter has first is no difference
    /// to the application.
    fn add_counter(&self, out: &mut fxprof::Profile, process: ProcessHandle, thread: &Planned) {
        let samples = self.samples(thread).iter().map(|own| self.machine().samples().at(own.at as usize));
        let allocated = |sample: &Sample| Role::of(&self.roles, sample.kind) == Role::Allocated;
        let mut samples = samples.filter(allocated).peekable();
        let (Some(first), Some(track)) = (samples.peek(), thread.track) else { return };
        let kind = self.machine().kinds().get(usize::from(first.kind.0));
        let name = kind.map_or("", |kind| self.machine().string(kind.name));
        let counter = out.add_counter(process, name, "Memory", "Bytes that were allocated until then");
        let life = self.machine().process(track.process);
        let start = life.start.max(self.origin).min(first.time);
        let mut last = first.time;
        for time in [start, last] {
            out.add_counter_sample(counter, self.timestamp(time), 0.0, 0);
        }
        for sample in samples {
            out.add_counter_sample(counter, self.timestamp(sample.time), sample.value as f64, 1);
            last = sample.time;
        }
        let end = life.end.unwrap_or(self.end).max(last);
        out.add_counter_sample(counter, self.timestamp(end), 0.0, 0);
    }

    /// Has a profile number its libraries as all others do.
    pub(super) fn tell_libraries(&self, out: &mut fxprof::Profile, frames: &Frames, thread: ThreadHandle) {
        for (_, told) in self.telling.iter().flat_map(|frame| frames.get(*frame)) {
            out.intern_frame(thread, told.info.clone());
        }
    }

    /// Whether a sample is a marker, whatever else it is.
    pub(super) fn is_marked(&self, sample: &Sample) -> bool {
        match Role::of(&self.roles, sample.kind) {
            Role::Sampled(sampling) => sampling.is_time,
            Role::Allocated => false,
            Role::Marked => true,
        }
    }

    /// What is told of the recording as a whole, for which the format has no place: a marker a line.
    pub(super) fn told(&self) -> Vec<String> {
        let machine = self.machine();
        let mut lines = account(machine);
        for (kind, role) in machine.kinds().iter().zip(&self.roles) {
            if let Role::Sampled(Sampling { divisor, is_time: false, .. }) = role
                && *divisor > 1
            {
                lines.push(format!("{OF_WEIGHT}{} is {divisor}", machine.string(kind.name)));
            }
        }
        lines
    }

    /// What is told of a process at its first thread, in the same way.
    pub(super) fn told_of_process(&self, thread: &Planned) -> Vec<String> {
        thread.first_of.map(|process| facts(self.machine(), process)).unwrap_or_default()
    }

    pub(super) fn timestamp(&self, time: Nanos) -> Timestamp {
        Timestamp::from_nanos_since_reference(time.0.saturating_sub(self.origin.0))
    }

    /// Whether samples tell how long threads were on CPUs.
    pub(super) fn has_clock(&self) -> bool {
        self.roles.iter().any(|role| matches!(role, Role::Sampled(sampling) if sampling.period > 0))
    }

    /// When all began.
    pub(super) fn origin(&self) -> Nanos {
        self.origin
    }

    /// When all was over.
    pub(super) fn end(&self) -> Nanos {
        self.end
    }

    /// For how many nanoseconds before and after a sample of the call tree what it tells of went on; sums of times and estimates are moments.
    /// None where samples are of occurrences.
    pub(super) fn around(&self, sample: &Sample, sampling: &Sampling) -> Option<[u64; 2]> {
        if sampling.is_time {
            return Some([0, duration(self.machine(), sample).unwrap_or(0)]);
        }
        let periods = sampling.period.saturating_mul(sample.value.max(1).unsigned_abs());
        (periods > 0).then_some([periods, periods])
    }
}

/// Where in a list, which is sorted, a track's are.
fn of_track(list: &[OfTrack], track: u32) -> Range<usize> {
    list.partition_point(|own| own.track < track)..list.partition_point(|own| own.track <= track)
}

/// Of the frames on stacks of samples the first one of each library, in their order, and one of JavaScript.
fn telling(profile: Profile<'_>, libraries: &Libraries) -> Vec<FrameId> {
    let machine = profile.machine;
    let mut is_on_stack = vec![false; machine.frames().len()];
    let mut is_sampled = vec![false; machine.stacks().len()];
    for sample in machine.samples().iter() {
        let Some(is_sampled) = is_sampled.get_mut(sample.stack.0 as usize) else { continue };
        if !*is_sampled {
            *is_sampled = true;
            for frame in machine.stacks().get(sample.stack) {
                if let Some(is_on_stack) = is_on_stack.get_mut(frame.0 as usize) {
                    *is_on_stack = true;
                }
            }
        }
    }
    let mut is_told = vec![false; libraries.len()];
    let mut is_script_told = false;
    let frames = (0..).map(FrameId).zip(machine.frames().iter()).zip(is_on_stack);
    let telling = frames.filter(|((id, frame), is_on_stack)| {
        if !is_on_stack {
            return false;
        }
        let told = libraries.position(frame).and_then(|library| is_told.get_mut(library));
        let is_new = told.is_some_and(|told| !std::mem::replace(told, true));
        let is_script = super::frames::is_script(profile, *id) && !is_script_told;
        is_script_told |= is_script;
        is_new || is_script
    });
    telling.map(|((id, _), _)| id).collect()
}

/// When what a sample tells of was over.
pub(super) fn end_of(machine: &ExportMachine, sample: &Sample) -> Nanos {
    Nanos(sample.time.0.saturating_add(duration(machine, sample).unwrap_or(0)))
}

/// The recording's end, or that of what lasted longer.
fn end(machine: &ExportMachine) -> Nanos {
    let spans = machine.spans().iter().map(|span| span.end.unwrap_or(span.start));
    let ends = machine.samples().iter().map(|sample| end_of(machine, &sample)).chain(spans);
    ends.fold(machine.system().end, Nanos::max)
}

/// What the profile is called.
fn title(machine: &ExportMachine) -> String {
    let system = machine.system();
    let command = if system.command.is_empty() { "Collector" } else { &system.command };
    if system.host.is_empty() { command.to_owned() } else { format!("{command} on {}", system.host) }
}
