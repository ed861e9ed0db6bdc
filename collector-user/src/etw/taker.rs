//! Takes the records of a trace one by one, from a file or a live session, and makes a recording of them when there are no more.

use std::collections::VecDeque;

use collector_common::ids::{Nanos, Tid};
use collector_common::record::{EventKindId, EventRecordId, ExportMachine, SampleKindId, Unit};
use export::import::Imported;
use windows_etw::decode::DecodeError;
use windows_etw::decode::clr::{self, ClrEvent};
use windows_etw::decode::described::Schemas;
use windows_etw::decode::kernel::{KernelEvent, META_DATA, ProfileInterval, STACK_WALK, SampledProfile};
use windows_etw::decode::state::{Half, Joined, Lives, NtPaths, OwnStack, StackAt, StackLimits, Stacks};
use windows_etw::decode::windows::WindowsEvent;
use windows_etw::plan::AliveProcess;
use windows_etw::record::EtwRecord;

use super::counted::add_counted;
use super::drives::learn_drives;
use super::events::Events;
use super::families::Asked;
use super::files::Files;
use super::kinds::Kinds;
use super::machine::Build;
use super::measured::{Fact, Measured, Sink, Time};
use super::methods::Methods;
use super::modules::Modules;
use super::others::Others;
use super::pending::{Pending, Row};
use super::shortest::Shortest;
use super::stacks::RawStacks;
use super::switches::Switches;
use super::system::Facts;
use super::threads::Threads;
use super::times::Times;
use super::trace::Trace;
use super::wanted::{Wanted, choose_main_kind};
use super::whose::Whose;

/// Flags of a sample: in a deferred procedure call, or in an interrupt's routine.
const INTERRUPTED: u8 = 3;

/// What waits for its stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    at: Nanos,
    whose: Whose,
    cpu: u16,
    what: What,
    /// Whether the next of the facts that wait is of it.
    has_fact: bool,
    /// Its bytes, where events are kept.
    event: Option<EventRecordId>,
}

/// What it becomes.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A sample of a clock or a counter, and where its CPU was.
    Sample { kind: Option<SampleKindId>, value: i64, instruction: u64 },
    /// Another event, which is a sample if it has a stack, with this value in bytes, or of 1.
    Event(EventKindId, Option<i64>),
    /// An event that may be of something that is measured.
    Measured,
    /// An event that is kept nowhere.
    Lost,
}

/// Takes the records of a trace, in the order of time.
///
/// Memory grows with distinct stacks, with what there was of processes, threads, images and methods, and by some 10 to 20 bytes with each
/// sample.
#[derive(Debug)]
pub struct Taker {
    times: Times,
    trace: Trace,
    scenarios: Vec<String>,
    wanted: Wanted,
    schemas: Schemas,
    paths: NtPaths,
    /// Those of this machine, which may be the trace's.
    volumes: Vec<(String, String)>,
    files: Files,
    measured: Measured,
    lives: Lives,
    /// Those that were there when it began.
    there: Vec<AliveProcess>,
    /// Whether the kernel's own events tell of processes, so that those of its manifest are not needed.
    has_lives: bool,
    threads: Threads,
    methods: Methods,
    modules: Modules,
    switches: Switches,
    kinds: Kinds,
    events: Events,
    facts: Facts,
    raw: RawStacks,
    stacks: Stacks<Waiting>,
    /// What of those that wait is measured, in their order: few tell something, and a fact is large.
    facts_waiting: VecDeque<Fact>,
    pending: Pending,
    machine: ExportMachine,
    /// Whose events are not kept.
    others: Option<Others>,
    event_bytes: u64,
    last: Nanos,
    has_samples: bool,
    not_understood: u64,
}

impl Taker {
    /// Nothing yet. Events are kept with their fields in so many bytes of memory, and, until [`Self::finish`] returns, in as many again.
    pub fn new(trace: Trace, event_bytes: u64) -> Self {
        Self::into(ExportMachine::default(), trace, event_bytes)
    }

    /// The same, for a machine that has nothing yet but perhaps a limit of what samples take of memory.
    pub fn into(mut machine: ExportMachine, trace: Trace, event_bytes: u64) -> Self {
        let times = Times::new(trace.clock, trace.boot);
        machine.event_records_mut().set_limit(event_bytes);
        Self {
            times,
            trace,
            scenarios: Vec::new(),
            wanted: Wanted::ALL,
            schemas: schemas(),
            paths: NtPaths::default(),
            volumes: Vec::new(),
            files: Files::default(),
            measured: Measured::default(),
            lives: Lives::default(),
            there: Vec::new(),
            has_lives: false,
            threads: Threads::default(),
            methods: Methods::default(),
            modules: Modules::default(),
            switches: Switches::default(),
            kinds: Kinds::default(),
            events: Events::default(),
            facts: Facts::default(),
            raw: RawStacks::default(),
            stacks: Stacks::new(StackLimits::default()),
            facts_waiting: VecDeque::new(),
            pending: Pending::new(event_bytes),
            machine,
            others: None,
            event_bytes,
            last: times.start(),
            has_samples: false,
            not_understood: 0,
        }
    }

    /// Says that what begins with `nt` for the kernel, as `\Device\HarddiskVolume3\`, begins with `dos`, as `C:\`. Traces that a tool has merged
    /// tell so themselves.
    pub fn name_volume(&mut self, nt: &str, dos: &str) {
        self.paths.add(nt, dos);
    }

    /// The same of a trace that may be of another machine or time: it counts for those of which an image of the trace is there, by its date and
    /// size or its checksum and size, and of which the trace tells nothing.
    pub fn try_volumes(&mut self, volumes: Vec<(String, String)>) {
        self.volumes = volumes;
    }

    /// Says what the trace was recorded for: scenarios by their full names. Without that, or for none of them, all is made of it that can be made.
    /// To be said before any record is taken.
    pub fn want(&mut self, scenarios: &[String]) {
        scenarios.clone_into(&mut self.scenarios);
        self.wanted = Wanted { shortest: self.wanted.shortest, ..Wanted::of(scenarios) };
    }

    /// Says which times off a CPU are left out. To be said before any record is taken.
    pub fn leave_out_shorter(&mut self, shortest: Shortest) {
        self.wanted.shortest = shortest;
    }

    /// Says whose events are wanted, of the processes that are asked for those that are called `comm`: of processes that are known not to be meant
    /// none is kept with its fields, so that they take no room from those of others. To be said before any record is taken.
    pub fn keep_events_of(&mut self, asked: &[Asked], comm: Option<&str>) {
        self.others = Others::than(asked, comm);
    }

    /// Says who was there when the trace began, and since when: that number of a maker, which events tell, may have been another one's by then.
    pub fn know_there(&mut self, there: &[AliveProcess]) {
        there.clone_into(&mut self.there);
    }

    /// Says how often CPUs were sampled, in units of 100 ns, for samples of which the trace has not told it up to now.
    pub fn tell_interval(&mut self, units: u32) {
        if self.kinds.has_guessed() {
            self.kinds.tell_interval(units);
        }
    }

    /// Takes a record.
    pub fn take(&mut self, record: &EtwRecord<'_>) {
        self.not_understood += u64::from(self.schemas.learn(record).is_err());
        let at = self.times.at(record.ticks);
        self.last = self.last.max(at);
        if record.extended.is_after_loss {
            self.switches.lose(record.cpu, at);
            self.tell(Fact::Loss, record.cpu, at);
        }
        let kernel = self.understood(KernelEvent::decode(record));
        let runtime = match clr::provider_name(record.provider) {
            Some(_) => self.understood(ClrEvent::decode(record)),
            None => None,
        };
        if kernel.as_ref().is_some_and(|event| self.stacks.stack(event, record.cpu)) {
            return;
        }
        if let (Some(ClrEvent::Stack(stack) | ClrEvent::RundownStack(stack)), Some(tid)) =
            (&runtime, record.tid)
        {
            self.stacks.runtime_stack(tid, stack.frames);
            return;
        }
        match &kernel {
            Some(event) => self.learn(record, event, at),
            None => self.learn_from_manifests(record, runtime.as_ref(), at),
        }
        // How other events lie is theirs alone.
        if record.provider == META_DATA || record.provider == STACK_WALK {
            return;
        }
        if let Some(fact) = kernel.as_ref().and_then(Fact::of_ends) {
            self.tell(fact, record.cpu, at);
        }
        if let Some((waiting, fact)) = self.waiting(record, kernel.as_ref(), runtime.as_ref(), at) {
            let waiting = self.with_fact(waiting, fact);
            self.wait(record, kernel.as_ref(), runtime.is_some(), waiting);
        }
    }

    /// All records have been taken. Out: what was recorded, with names for code that .NET's runtime made.
    pub fn finish(self) -> Imported {
        let (scenarios, shortest) = (self.scenarios.clone(), self.wanted.shortest);
        let mut imported = self.finish_uncounted();
        choose_main_kind(&mut imported.machine, &scenarios);
        add_counted(&mut imported.machine, shortest);
        imported
    }

    /// The same without what follows from the samples, of which some may be left out first.
    pub(super) fn finish_uncounted(mut self) -> Imported {
        loop {
            let rest = self.stacks.finish().next();
            let Some(joined) = rest else { break };
            self.settle(&joined);
        }
        self.measure_open();
        self.lives.fill_dates();
        learn_drives(&mut self.paths, &self.volumes, self.lives.images());
        // Of a trace without samples all time would be times off, which are there for themselves.
        let left_out_kind = (!self.has_samples && self.scenarios.is_empty()).then_some("wall_clock");
        let no_room = [
            self.lives.left_out(),
            self.threads.left_out(),
            self.methods.left_out(),
            self.kinds.left_out(),
            self.files.left_out(),
            self.measured.left_out(),
            self.switches.left_out(),
            self.raw.left_out(),
            self.pending.refused(),
            self.schemas.left_out(),
            self.paths.left_out(),
        ];
        Build {
            machine: self.machine,
            times: self.times,
            trace: self.trace,
            paths: self.paths,
            files: self.files,
            lives: self.lives,
            there: self.there,
            threads: self.threads,
            methods: self.methods,
            modules: self.modules,
            kinds: self.kinds,
            events: self.events,
            facts: self.facts,
            raw: self.raw,
            stacks: self.stacks,
            pending: self.pending,
            left_out_kind,
            keeps_events: self.event_bytes > 0,
            last: self.last,
            not_understood: self.not_understood,
            cut_times: self.switches.cut(),
            no_room: no_room.into_iter().fold(0, u64::saturating_add),
        }
        .build()
    }

    fn understood<T>(&mut self, decoded: Result<Option<T>, DecodeError>) -> Option<T> {
        self.not_understood += u64::from(decoded.is_err());
        decoded.ok().flatten()
    }

    /// Takes what an event of the kernel's says of all others.
    fn learn(&mut self, record: &EtwRecord<'_>, event: &KernelEvent<'_>, at: Nanos) {
        self.paths.learn(event);
        self.files.take(event);
        self.lives.take(record, event, &self.paths);
        self.threads.take(event, at);
        self.modules.take(event);
        self.facts.take(event, record);
        if let Some(others) = &mut self.others {
            others.take(event);
        }
        match event {
            KernelEvent::ProcessStart(process) => {
                self.has_lives = true;
                self.methods.forget(process.pid.0);
            }
            KernelEvent::ProcessDcStart(_) => self.has_lives = true,
            KernelEvent::ThreadStart(thread) => self.switches.begin(thread.tid, at),
            KernelEvent::ThreadStop(thread) => self.switches.end(thread.tid),
            KernelEvent::LostEvent(_) | KernelEvent::LostBuffer(_) | KernelEvent::LostFile(_) => {
                self.switches.lose_any(at);
            }
            KernelEvent::ReadyThread(ready) => self.switches.ready(*ready, record.tid, record.cpu, at),
            KernelEvent::SetInterval(interval)
            | KernelEvent::CollectionStart(interval)
            | KernelEvent::CollectionEnd(interval) => self.interval(interval),
            _ => {}
        }
    }

    fn learn_from_manifests(&mut self, record: &EtwRecord<'_>, runtime: Option<&ClrEvent<'_>>, at: Nanos) {
        if let (Some(event), Some(pid)) = (runtime, record.pid) {
            self.methods.take(event, pid, at);
        } else if runtime.is_none() && !self.has_lives {
            let Some(event) = self.understood(WindowsEvent::decode(record)) else { return };
            self.lives.take_manifest(record, &event, &self.paths);
            self.threads.take_manifest(&event, at);
        }
    }

    /// How often samples are taken: source 0 is the clock, others are hardware counters.
    fn interval(&mut self, told: &ProfileInterval<'_>) {
        match told.source {
            0 => self.kinds.tell_interval(told.new_interval),
            source => {
                let name = told.source_name.map(|name| name.0.to_string()).unwrap_or_default();
                self.kinds.tell_counter(source, &name, told.new_interval);
            }
        }
    }

    /// What an event becomes, and what is measured by it; none for those that are told elsewhere alone.
    fn waiting(
        &mut self,
        record: &EtwRecord<'_>,
        kernel: Option<&KernelEvent<'_>>,
        runtime: Option<&ClrEvent<'_>>,
        at: Nanos,
    ) -> Option<(Waiting, Option<Fact>)> {
        let of_thread = |tid: Tid| Whose { pid: record.pid, tid: Some(tid) };
        let waiting =
            |whose, what| Waiting { at, whose, cpu: record.cpu, what, has_fact: false, event: None };
        Some(match kernel {
            Some(KernelEvent::Sample(sample)) if is_idle(sample) => return None,
            Some(KernelEvent::Sample(sample)) => {
                self.has_samples = true;
                let ran = self.switches.sampled(record.cpu, sample.tid, at);
                let kind = self.wanted.cpu.then(|| self.kinds.cpu());
                let (value, instruction) = (sample.count.max(1).into(), sample.instruction.0);
                let what = What::Sample { kind, value, instruction };
                (waiting(of_thread(sample.tid), what), ran.map(|ran| Fact::Time(Time::Ran(ran))))
            }
            Some(KernelEvent::CounterSample(sample)) => {
                let (kind, value) = self.kinds.counter(sample.source.into());
                let instruction = sample.instruction.0;
                let what = What::Sample { kind: Some(kind), value, instruction };
                (waiting(of_thread(sample.tid), what), None)
            }
            Some(KernelEvent::ContextSwitch(switch)) => {
                let (came, ended) = self.switches.take(switch, record.cpu, at);
                if let Some((tid, ran)) = ended {
                    let ended = waiting(Whose { pid: None, tid: Some(tid) }, What::Measured);
                    self.wait_alone(ended, Fact::Time(Time::Ran(ran.took)));
                }
                let whose = Whose { pid: None, tid: Some(switch.new_tid) };
                let event = self.keep(record, whose);
                let fact = came.map(|came| Fact::Time(Time::Came(came)));
                (Waiting { event, ..waiting(whose, What::Measured) }, fact)
            }
            _ => {
                let running = || Whose { pid: None, tid: self.switches.running(record.cpu) };
                let whose = Whose::of(record, kernel).unwrap_or_else(running);
                let (files, times) = (&mut self.files, &self.times);
                if let Some(fact) = kernel.and_then(|event| Fact::of(event, files, times)) {
                    let event = self.keep(record, whose);
                    return Some((Waiting { event, ..waiting(whose, What::Measured) }, Some(fact)));
                }
                let Some((kind, event)) = self.event(record, whose) else {
                    return Some((waiting(whose, What::Lost), None));
                };
                let bytes = match runtime {
                    Some(ClrEvent::GcAllocationTick(tick)) => {
                        let bytes = tick.amount64.unwrap_or_else(|| tick.amount.into());
                        Some(i64::try_from(bytes).unwrap_or(i64::MAX))
                    }
                    _ => None,
                };
                (Waiting { event, ..waiting(whose, What::Event(kind, bytes)) }, None)
            }
        })
    }

    /// The kind of an event, and its bytes if they are kept; none if they were to be, and there is no room.
    fn event(
        &mut self,
        record: &EtwRecord<'_>,
        whose: Whose,
    ) -> Option<(EventKindId, Option<EventRecordId>)> {
        let described = self.schemas.describe(record);
        self.not_understood += u64::from(described.is_err());
        let Some(kind) = self.events.of(record, described.ok().flatten()) else {
            self.kinds.count_left_out();
            return None;
        };
        if self.event_bytes == 0 {
            self.machine.event_records_mut().pass_over();
            return Some((kind, None));
        }
        if self.others.as_ref().is_some_and(|others| others.has(whose)) {
            return Some((kind, None));
        }
        Some((kind, Some(self.pending.keep(kind, record.payload)?)))
    }

    fn keep(&mut self, record: &EtwRecord<'_>, whose: Whose) -> Option<EventRecordId> {
        self.event(record, whose).and_then(|(_, event)| event)
    }

    /// Lets it wait for its stack, with what it brings of that.
    fn wait(
        &mut self,
        record: &EtwRecord<'_>,
        kernel: Option<&KernelEvent<'_>>,
        is_runtime: bool,
        waiting: Waiting,
    ) {
        let running = self.switches.running(record.cpu);
        let (mut at, mut own) = (StackAt::of(record, kernel, running), OwnStack::of(record));
        // What brings the rest of another event's stack has none itself.
        if at.zip(own).is_some_and(|(at, own)| self.stacks.rest(at, own)) {
            (at, own) = (None, None);
        }
        let joined = match record.tid.filter(|_| is_runtime) {
            Some(tid) => self.stacks.runtime_event(at, tid, own, waiting),
            None => self.stacks.event(at, own, waiting),
        };
        if let Some(joined) = joined {
            self.settle(&joined);
        }
    }

    /// Has a fact that is nobody's keep its place among all that wait.
    fn tell(&mut self, fact: Fact, cpu: u16, at: Nanos) {
        let (whose, what) = (Whose::default(), What::Measured);
        self.wait_alone(Waiting { at, whose, cpu, what, has_fact: false, event: None }, fact);
    }

    /// Has something without a stack keep its place among all that wait.
    fn wait_alone(&mut self, waiting: Waiting, fact: Fact) {
        let waiting = self.with_fact(waiting, Some(fact));
        if let Some(joined) = self.stacks.event(None, None, waiting) {
            self.settle(&joined);
        }
    }

    /// Has the fact of what is about to wait wait, too.
    fn with_fact(&mut self, waiting: Waiting, fact: Option<Fact>) -> Waiting {
        self.facts_waiting.extend(fact);
        Waiting { has_fact: fact.is_some(), ..waiting }
    }

    /// Keeps what has its stack, or will have none.
    fn settle(&mut self, joined: &Joined<Waiting>) {
        let Joined { event: Waiting { at, whose, cpu, what, has_fact, event }, kernel, user, of } = joined;
        let fact = if *has_fact { self.facts_waiting.pop_front() } else { None };
        // Some events name no thread, but their stacks do.
        let told = of.map(|(pid, tid)| Whose { pid: Some(pid), tid: Some(tid) });
        let told = told.filter(|told| whose.tid.is_none() && (whose.pid.is_none() || whose.pid == told.pid));
        let whose = told.unwrap_or(*whose);
        // What is done to another process, as memory that it is given, is told with the stack of who does it.
        let space = of.map(|(pid, _)| pid).filter(|pid| whose.pid.is_some_and(|own| own != *pid));
        // A request is handed to a disk by a thread that may not be the one that made it.
        let is_its = |tid: Tid| whose.pid.is_some() || whose.tid.is_none_or(|own| own == tid);
        let [kernel, user] =
            [kernel, user].map(|half| half.as_ref().filter(|_| of.is_none_or(|(_, tid)| is_its(tid))));
        let mut stack = self.raw.intern(kernel, user);
        let has_stack = kernel.is_some() || user.is_some();
        let row = Row { whose, space, stack, cpu: *cpu, ..Row::at(*at) };
        match *what {
            What::Sample { kind, value, instruction } => {
                if !has_stack {
                    stack = self.raw.intern(None, Some(&Half::Frames([instruction].into())));
                }
                if let Some(kind) = kind {
                    self.sample(&Row { stack, kind, value, ..row });
                }
                if let Some(fact) = fact {
                    self.measure(&fact, &Row { stack, ..row });
                }
            }
            What::Measured => {
                let row = Row { event: *event, ..row };
                if event.is_some() {
                    self.pending.push(&row);
                }
                if let Some(fact) = fact {
                    self.measure(&fact, &row);
                }
            }
            What::Event(kind, bytes) if has_stack => {
                let named = match bytes {
                    Some(_) => self.kinds.of_event(kind, "alloc_space", Unit::Bytes),
                    None => self.kinds.of_event(kind, self.events.name(kind), Unit::Count),
                };
                let row = Row { kind: named, value: bytes.unwrap_or(1), event: *event, ..row };
                if row.is_sample() || event.is_some() {
                    self.pending.push(&row);
                }
                if !row.is_sample() {
                    self.kinds.count_left_out();
                }
            }
            What::Event(..) if event.is_some() => {
                self.pending.push(&Row { event: *event, ..row });
            }
            What::Event(..) | What::Lost => {}
        }
    }

    fn measure(&mut self, fact: &Fact, row: &Row) {
        let (kinds, pending, machine) = (&mut self.kinds, &mut self.pending, &mut self.machine);
        self.measured.take(fact, row, &mut Sink { kinds, pending, machine, wanted: self.wanted });
    }

    /// What threads do when the trace ends is all of their time, too.
    fn measure_open(&mut self) {
        for (tid, came, ran) in self.switches.open(self.last) {
            let at = ran.map_or(self.last, |ran| ran.until);
            let row = Row { whose: Whose { pid: None, tid: Some(tid) }, ..Row::at(at) };
            let (came, ran) = (came.map(Time::Came), ran.map(|ran| Time::Ran(ran.took)));
            for time in came.into_iter().chain(ran) {
                self.measure(&Fact::Time(time), &row);
            }
        }
    }

    fn sample(&mut self, row: &Row) {
        if row.is_sample() {
            self.pending.push(row);
        } else {
            self.kinds.count_left_out();
        }
    }
}

/// What a trace tells of its events, and on Windows what that knows of providers' manifests.
fn schemas() -> Schemas {
    #[cfg(windows)]
    let schemas = Schemas::asking(|record| windows_etw::session::description(record).ok());
    #[cfg(not(windows))]
    let schemas = Schemas::default();
    schemas
}

/// Whether a sample is of a CPU that has nothing to do.
fn is_idle(sample: &SampledProfile) -> bool {
    sample.tid == Tid(0) && sample.flags & INTERRUPTED == 0
}
