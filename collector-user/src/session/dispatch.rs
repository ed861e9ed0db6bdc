//! Where a record goes: to the closures of its event, and as a sample into the recording.

use collector_common::event::{Context, EventErrors, EventFlags};
use collector_common::ids::Nanos;
use collector_common::intern::StringId;
use collector_common::record::{AttributeListId, AttributeValue, ESTIMATED, SampleKindId, Unit};

use super::lock_owners::LockOwners;
use super::program_records::{Output, ProgramRecords, of_program};
use super::short_times::{Part, ShortTimes};
use super::times_off::{Ended, Joined, TimesOff};
use super::wakers::{self, waker_of};
use crate::probe::{Missed, Misses, Registered};
use crate::recorder::{Kept, Kinds, Recorder, Taken, context_of};
use crate::source::{EventIndex, EventRequest, Hook, LeftBlock, Program, Settings, SourceRecord, Trigger};
use crate::wakers::Wakers;

/// An event of the session.
struct Hooked {
    hook: Hook,
    /// Of its samples; `None` for one without stacks.
    kind: Option<SampleKindId>,
    /// What becomes of records that are kept as they come.
    kinds: Kinds,
    /// Where it is one of our programs, what becomes of its records.
    records: Option<Box<dyn ProgramRecords>>,
    /// Positions of later hooks at the same counter of the kernel's, which get its records, too.
    sharers: Vec<usize>,
    /// Where it is one of times off.
    shortest: Option<ShortestTime>,
}

/// What is shorter than a program's shortest time off is none of its.
#[derive(Clone, Copy)]
struct ShortestTime {
    time: Nanos,
    /// Whether the kernel leaves out the same. Else its sums of short times have some that are none of the program's.
    is_all_told: bool,
}

impl Hooked {
    fn program(&self) -> Option<Program> {
        match self.hook.trigger {
            Trigger::Program(program) => Some(program),
            _ => None,
        }
    }
}

/// What the sources are asked for, for the records to come back by these numbers. Hooks at one of the kernel's counters share the
/// records of one event, those of the first: the kernel tells of several as if they were one.
pub(super) fn requests(hooks: &[Hook]) -> Vec<EventRequest> {
    let indexes = (0..).map(EventIndex::of_hook);
    let mut requests: Vec<EventRequest> = Vec::new();
    for request in hooks.iter().zip(indexes).filter_map(|(hook, index)| hook.request(index)) {
        match requests.iter_mut().find(|first| is_shared(first.trigger, request.trigger)) {
            Some(first) => first.stack |= request.stack,
            None => requests.push(request),
        }
    }
    requests
}

/// Whether a hook's records are events of their own: our programs' tell of times and sizes, which the samples have.
fn is_raw(hook: &Hook) -> bool {
    !matches!(hook.trigger, Trigger::Program(_))
}

fn is_shared(one: Trigger, other: Trigger) -> bool {
    one == other && matches!(one, Trigger::Software(_))
}

/// All events of a session.
pub(crate) struct Dispatch {
    /// The sampling clock's, if it is recorded for itself.
    clock: Option<SampleKindId>,
    /// Where samples of the clock are part of threads' times, with what they have as attributes.
    wall_clock: Option<(SampleKindId, AttributeListId)>,
    hooked: Vec<Hooked>,
    times_off: TimesOff,
    shortest_lock_wait: Nanos,
    short_times: ShortTimes,
    lock_owners: LockOwners,
    wakers: Wakers,
    errors: EventErrors,
}

impl Dispatch {
    /// Whether functions of programs are among the events.
    pub(crate) fn probes_programs(&self) -> bool {
        self.hooked.iter().any(|hooked| hooked.hook.probe.as_ref().is_some_and(Registered::is_of_programs))
    }

    /// The recording begins: what the kernel has not told of its probes up to now is none of it.
    pub(crate) fn begin(&mut self) {
        let mut probes = self.hooked.iter_mut().filter_map(|hooked| hooked.hook.probe.as_mut());
        let mut of_kernel = probes.by_ref().filter(|probe| !probe.is_of_programs()).peekable();
        if of_kernel.peek().is_some() {
            let misses = Misses::so_far();
            of_kernel.for_each(|probe| probe.begin(&misses));
        }
    }

    /// Hits of probes of the kernel since then of which it did not tell, each with whether all of an event's are to be recorded.
    pub(crate) fn missed(&self) -> Vec<(Missed, bool)> {
        let probes =
            self.hooked.iter().filter_map(|hooked| Some((hooked.hook.probe.as_ref()?, &hooked.hook.event)));
        let mut of_kernel = probes.filter(|(probe, _)| !probe.is_of_programs()).peekable();
        if of_kernel.peek().is_none() {
            return Vec::new();
        }
        let misses = Misses::so_far();
        of_kernel.filter_map(|(probe, event)| Some((probe.missed(&misses)?, !event.is_filtered()))).collect()
    }

    /// Removes the events that were made for probes: what records them is closed. Gives what a user should know of those that stay.
    pub(crate) fn remove_probes(&mut self) -> Vec<String> {
        let probes = self.hooked.iter_mut().filter_map(|hooked| hooked.hook.probe.as_mut());
        probes.filter_map(Registered::remove).collect()
    }

    /// Adds a kind of sample for the sampling clock, if there is one with its period, and for each event whose stacks are wanted;
    /// for those whose raw events are kept a kind of these, too.
    pub(crate) fn new(
        clock: Option<Nanos>,
        settings: &Settings,
        hooks: Vec<Hook>,
        kept: Kept<'_>,
        recorder: &mut Recorder,
    ) -> Self {
        recorder.machine_mut().event_records_mut().set_limit(kept.bytes);
        let clock = clock.map(|period| recorder.add_kind("cpu", Unit::Count, period.0));
        let hooked = hooks.into_iter().map(|hook| {
            let has_stack = hook.event.flags().contains(EventFlags::CALLSTACK);
            let kind = has_stack.then(|| recorder.add_kind_of(&hook.event, hook.unit()));
            let records = match hook.trigger {
                Trigger::Program(program) => of_program(program, settings, recorder),
                _ => None,
            };
            let is_kept = kept.has(hook.event.name());
            let is_passed_over = !is_kept && is_raw(&hook);
            let events = kind
                .filter(|_| is_kept && is_raw(&hook))
                .and_then(|samples| recorder.add_event_kind(&hook.event, samples));
            let kinds = Kinds { samples: kind, events, is_passed_over };
            Hooked { hook, kind, kinds, records, sharers: Vec::new(), shortest: None }
        });
        let mut hooked: Vec<Hooked> = hooked.collect();
        share(&mut hooked);
        let shortest_of = |hooked: &Hooked| settings.shortest.of(hooked.program()?);
        let shortest = hooked.iter().filter_map(shortest_of).min();
        for hooked in &mut hooked {
            hooked.shortest =
                shortest_of(hooked).map(|time| ShortestTime { time, is_all_told: shortest == Some(time) });
        }
        let wall_clock = hooked.iter().find(|hooked| hooked.program() == Some(Program::WallClock));
        Self {
            clock,
            wall_clock: wall_clock
                .and_then(|hooked| Some((hooked.kind?, attributes(recorder, &[("state", "running")], &[])))),
            hooked,
            times_off: TimesOff::new(settings.off_cpu_period),
            shortest_lock_wait: settings.shortest.locks,
            short_times: ShortTimes::default(),
            lock_owners: LockOwners::default(),
            wakers: Wakers::default(),
            errors: EventErrors::new(),
        }
    }

    /// Takes one record, and says whether it is in the recording. One of a thread that the kernel has released is of the process
    /// whose end it was.
    pub(crate) fn take(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) -> bool {
        recorder.take_of_any(record, |recorder, record| self.take_known(recorder, record))
    }

    fn take_known(&mut self, recorder: &mut Recorder, record: &SourceRecord<'_>) -> bool {
        let Some(position) = record.event.hook() else {
            return self.take_of_running(self.clock, recorder, record);
        };
        let Some(hooked) = self.hooked.get_mut(position) else { return false };
        if let Hooked { hook, kind: Some(kind), records: Some(records), .. } = hooked {
            let mut output = Output { recorder, hook, kind: *kind, errors: &mut self.errors };
            return records.take(&mut output, record);
        }
        if hooked.program() == Some(Program::LockOwners) {
            self.lock_owners.take(recorder, record);
            return true;
        }
        if hooked.program().is_some_and(Program::is_of_times_off) {
            if record.header.ran > 0 {
                self.take_of_running(None, recorder, record);
            }
            self.times_off.take(recorder, record);
            return true;
        }
        if !hooked.sharers.is_empty() {
            return self.take_shared(position, recorder, record);
        }
        recorder.take_event(&mut hooked.hook.event, hooked.kinds, record, &mut self.errors)
    }

    /// Takes a record of a counter that several hooks are at. Says whether it is in the recording.
    fn take_shared(&mut self, first: usize, recorder: &mut Recorder, record: &SourceRecord<'_>) -> bool {
        if !recorder.is_wanted(record) {
            return false;
        }
        let context = recorder.for_closures(context_of(record));
        let sharers = std::mem::take(&mut self.hooked[first].sharers);
        let (mut taken, mut is_delivered) = (None, false);
        for &position in std::iter::once(&first).chain(&sharers) {
            let Hooked { hook, kind, .. } = &mut self.hooked[position];
            if !hook.event.process_in(Some(&context), record.data, record.data, &mut self.errors) {
                continue;
            }
            let Some(kind) = kind else {
                is_delivered = true;
                continue;
            };
            if taken.is_none() {
                taken = recorder.take_stack(record);
            }
            if let Some(taken) = taken {
                recorder.add_sample(*kind, taken, record.value.cast_signed(), AttributeListId::NONE);
            }
        }
        self.hooked[first].sharers = sharers;
        match taken {
            Some(taken) => recorder.deliver(&taken),
            None => recorder.ledger_mut().deliver(is_delivered.into()),
        }
        taken.is_some() || is_delivered
    }

    /// Takes a record of a thread that was running, as one of `clock` and as part of the thread's time. Says whether it
    /// is in the recording.
    fn take_of_running(
        &self,
        clock: Option<SampleKindId>,
        recorder: &mut Recorder,
        record: &SourceRecord<'_>,
    ) -> bool {
        match (clock, self.wall_clock) {
            (Some(clock), None) => recorder.sample(clock, record),
            (clock, Some((wall_clock, attributes))) => {
                let Some(taken) = recorder.take_stack(record) else { return false };
                if let Some(clock) = clock {
                    recorder.add_sample(clock, taken, record.value.cast_signed(), AttributeListId::NONE);
                }
                let ran = record.header.ran;
                let since = taken.since(ran);
                recorder.add_sample(wall_clock, since, ran.cast_signed(), attributes);
                recorder.deliver(&taken);
                true
            }
            (None, None) => false,
        }
    }

    /// All records of a round have been taken: those from before `written` for certain. Gives the blocks of memory of what is gone.
    pub(crate) fn end_round(&mut self, recorder: &mut Recorder, written: Nanos) -> Vec<LeftBlock> {
        let Self { times_off, shortest_lock_wait, short_times, hooked, errors, wakers, lock_owners, .. } =
            self;
        let mut left = Vec::new();
        for hooked in hooked.iter_mut() {
            if let Hooked { hook, kind: Some(kind), records: Some(records), .. } = hooked {
                records.end_round(&mut Output { recorder, hook, kind: *kind, errors }, written);
                left.append(&mut records.take_left());
            }
        }
        times_off.end_round(|joined| {
            wakers::count(wakers, recorder.machine_mut(), &joined);
            let context = recorder.for_closures(Context {
                time: joined.taken.time,
                pid: joined.pid,
                tid: joined.tid,
                cpu: joined.taken.cpu.into(),
            });
            let mut is_delivered = false;
            for hooked in hooked.iter_mut() {
                let (Some(program), Some(shortest), Some(kind)) =
                    (hooked.program(), hooked.shortest, hooked.kind)
                else {
                    continue;
                };
                if joined.took() < shortest.time || (program == Program::Locks && joined.data.is_lock == 0) {
                    continue;
                }
                let data = bytemuck::bytes_of(&joined.data);
                if hooked.hook.event.process_in(Some(&context), data, data, errors) {
                    is_delivered = true;
                    add_time_off(recorder, short_times, (program, kind), &joined);
                } else {
                    short_times.leave_out(joined.tid, kind);
                }
            }
            if is_delivered {
                recorder.deliver(&joined.taken);
            }
            if joined.took() < *shortest_lock_wait {
                return;
            }
            for hooked in hooked.iter_mut().filter(|hooked| hooked.program() == Some(Program::LockOwners)) {
                if let Hooked { hook, kind: Some(kind), .. } = hooked {
                    lock_owners.add(&mut Output { recorder, hook, kind: *kind, errors }, &joined);
                }
            }
        });
        lock_owners.end_round();
        for ended in times_off.take_ended() {
            for hooked in hooked.iter() {
                let is_all_told = hooked.shortest.is_some_and(|shortest| shortest.is_all_told);
                if let (Some(program), Some(kind), true) = (hooked.program(), hooked.kind, is_all_told) {
                    settle(recorder, short_times, (program, kind), &ended);
                }
            }
        }
        left
    }

    /// The recording has ended, which was begun at `stopping`: adds what was counted.
    pub(crate) fn finish(&mut self, recorder: &mut Recorder, stopping: Nanos) {
        for hooked in &mut self.hooked {
            if let Hooked { hook, kind: Some(kind), records: Some(records), .. } = hooked {
                let errors = &mut self.errors;
                records.finish(&mut Output { recorder, hook, kind: *kind, errors }, stopping);
            }
        }
        let machine = recorder.machine_mut();
        if let Some(mut table) = self.wakers.table(machine) {
            let mut programs = self.hooked.iter().filter_map(Hooked::program);
            if !programs.any(|program| matches!(program, Program::OffCpu | Program::WallClock)) {
                table.name.push_str(wakers::OF_LOCKS);
            }
            machine.add_table(table);
        }
    }

    /// What went wrong in filters and closures.
    pub(crate) fn errors(&self) -> &EventErrors {
        &self.errors
    }
}

/// Notes which hooks share their records, as [`requests`] asks for them.
fn share(hooked: &mut [Hooked]) {
    for position in 1..hooked.len() {
        let (before, [it, ..]) = hooked.split_at_mut(position) else { return };
        let first = before.iter_mut().find(|first| is_shared(first.hook.trigger, it.hook.trigger));
        if let Some(first) = first {
            first.sharers.push(position);
        }
    }
}

/// Adds samples of a time off: until the thread was woken, and for all of a thread's time the wait for a CPU, too.
fn add_time_off(
    recorder: &mut Recorder,
    short_times: &mut ShortTimes,
    (program, kind): (Program, SampleKindId),
    joined: &Joined,
) {
    if program == Program::Locks {
        return add_lock_wait(recorder, kind, joined);
    }
    let data = &joined.data;
    let waker = waker_of(data);
    for (part, nanoseconds) in [(Part::Blocked, data.blocked_ns), (Part::Waited, data.waited_ns)] {
        let Some(state) = state(program, part).filter(|_| nanoseconds > 0) else { continue };
        let value = weighted(nanoseconds, data.weight);
        let (waker, since) = match part {
            Part::Blocked => (waker.as_ref(), joined.taken.time),
            Part::Waited => ("", Nanos(joined.taken.time.0 + data.blocked_ns)),
        };
        let is_open = if data.is_open == 0 { "" } else { "yes" };
        let list = [("state", state), ("waker", waker), ("open", is_open), estimated(joined.is_short)];
        let attributes = attributes(recorder, &list, &[]);
        let place = recorder.add_sample(kind, Taken { time: since, ..joined.taken }, value, attributes);
        if joined.is_short {
            short_times.add((joined.tid, kind, part), value, place);
        }
    }
}

/// Adds a sample of a wait for a lock, with who released it.
fn add_lock_wait(recorder: &mut Recorder, kind: SampleKindId, joined: &Joined) {
    let data = &joined.data;
    if data.blocked_ns == 0 {
        return;
    }
    let lock = format!("{:#x}", data.lock);
    let waker = waker_of(data);
    let is_open = if data.is_open == 0 { "" } else { "yes" };
    let owner_tid = [("owner_tid", data.waker_tid.into())];
    let (owner, owner_tid) = if data.is_released == 0 { ("", &[][..]) } else { (&*waker, &owner_tid[..]) };
    let labels = [("lock", lock.as_str()), ("owner", owner), ("open", is_open), estimated(data.weight > 1.0)];
    let attributes = attributes(recorder, &labels, owner_tid);
    let value = weighted(data.blocked_ns, data.weight);
    recorder.add_sample(kind, joined.taken, value, attributes);
}

/// A thread has ended: the sums of its short times off are known.
fn settle(
    recorder: &mut Recorder,
    short_times: &mut ShortTimes,
    (program, kind): (Program, SampleKindId),
    ended: &Ended,
) {
    for (part, exact) in [(Part::Blocked, ended.short_blocked), (Part::Waited, ended.short_waited)] {
        let Some(state) = state(program, part) else { continue };
        let attributes = attributes(recorder, &[("state", state), estimated(true)], &[]);
        short_times.settle(recorder, (ended.tid, kind, part), exact, (ended.taken, attributes));
    }
}

/// What samples of a part have as their state, empty where there is but one; `None` where the program has no sums of them.
fn state(program: Program, part: Part) -> Option<&'static str> {
    match (program, part) {
        (Program::OffCpu, Part::Blocked) => Some(""),
        (Program::WallClock, Part::Blocked) => Some("blocked"),
        (Program::WallClock, Part::Waited) => Some("runnable"),
        _ => None,
    }
}

/// What a time stands for, in nanoseconds.
pub(super) fn weighted(nanoseconds: u64, weight: f64) -> i64 {
    (nanoseconds as f64 * weight).round() as i64
}

/// The attribute of a sample that stands for others, too.
pub(super) const fn estimated(is_estimated: bool) -> (&'static str, &'static str) {
    (ESTIMATED, if is_estimated { "yes" } else { "" })
}

/// The most attributes that a sample has.
const MOST_ATTRIBUTES: usize = 8;

/// The id of a list of attributes: labels, without those that are empty, and numbers.
pub(super) fn attributes(
    recorder: &mut Recorder,
    labels: &[(&str, &str)],
    numbers: &[(&str, i64)],
) -> AttributeListId {
    debug_assert!(labels.len() + numbers.len() <= MOST_ATTRIBUTES);
    let machine = recorder.machine_mut();
    let (mut list, mut len) = ([(StringId::EMPTY, AttributeValue::Number(0)); MOST_ATTRIBUTES], 0);
    let mut add = |name, value| {
        list[len] = (name, value);
        len += 1;
    };
    for (name, text) in labels.iter().filter(|(_, text)| !text.is_empty()) {
        add(machine.intern_string(name), machine.intern_string(text).into());
    }
    for (name, number) in numbers {
        add(machine.intern_string(name), AttributeValue::Number(*number));
    }
    machine.attributes_mut().intern(&list[..len])
}

#[cfg(test)]
mod tests;
