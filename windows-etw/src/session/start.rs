//! A plan is carried out.
//!
//! The order matters: a session comes first, for that an administrator's rights are missing is told by that; it is read before
//! anything is told into it; stacks are asked for before the events that they belong to; how things stand is asked for last, when what is
//! new is told already, and of some providers at the end.

use std::collections::BTreeSet;
use std::path::PathBuf;

use collector_common::ids::Pid;

use crate::part::Part;
use crate::plan::{Buffers, Flags, HeapPlan, Plan, ProviderPlan, SampleInterval, When};

use super::claim::Claim;
use super::console::{self, Round};
use super::error::{SessionError, Win32Error};
use super::kernel_logger;
use super::losses::Losses;
use super::restored::{self, Restored};
use super::running::{Outcome, Session, Wanted};
use super::settings::Settings;
use super::sys::{self, Clock, Enable, Kind, MakeSink};
use super::unanswered::{Asked, Unanswered};

/// What `NT Kernel Logger` is called, the one session for the kernel that has a name of its own.
pub(super) const NT_KERNEL_LOGGER: &str = "NT Kernel Logger";

/// The sessions of a plan. Dropping it stops them, and loses no event either.
#[derive(Debug)]
pub struct Sessions {
    running: Vec<Session>,
    clock: Clock,
    interval: Option<SampleInterval>,
    /// What the kernel tells.
    flags: Flags,
    /// In which all was begun.
    round: Round,
    /// Whether the interval was set.
    has_interval: bool,
    /// What others that were killed had set, and is set back.
    restored: Option<Restored>,
    /// What is asked for before it is over.
    at_end: Vec<ProviderPlan>,
    /// What was asked for and not done.
    unanswered: Vec<Unanswered>,
    settings: Settings,
    _claim: Claim,
}

/// What is left of sessions that were stopped.
#[derive(Debug, Default)]
pub struct Stopped {
    /// What was lost, of each session.
    pub losses: Vec<(Part, Losses)>,
    /// Sessions that could not be stopped ([`SessionError::Unstopped`]), and those whose events were not all taken. What was recorded until then
    /// is there, of these as of all others.
    pub failed: Vec<(Part, SessionError)>,
    /// Events that sinks were given, those of all parts.
    pub events: u64,
    /// What providers were asked for, and did not do in time or at all: it is missing in part.
    pub unanswered: Vec<Unanswered>,
}

impl Stopped {
    /// Whether a part's session goes on, and with it what Windows writes into its file.
    pub fn goes_on(&self, part: Part) -> bool {
        let is_it = |(of, error): &(Part, SessionError)| {
            *of == part && matches!(error, SessionError::Unstopped { .. })
        };
        self.failed.iter().any(is_it)
    }

    /// Stops one more. Heaps are told of last, whenever they are stopped.
    fn add(&mut self, session: Session) {
        let part = session.part();
        let Outcome { losses, events, failed } = session.stop();
        self.losses.push((part, losses));
        self.losses.sort_by_key(|(part, _)| *part == Part::Heap);
        self.events += events;
        self.failed.extend(failed.map(|error| (part, error)));
        self.failed.sort_by_key(|(part, _)| *part == Part::Heap);
    }

    /// For whom less than all is nothing.
    ///
    /// # Errors
    /// The first of [`Self::failed`].
    pub fn whole(mut self) -> Result<Self, SessionError> {
        if self.failed.is_empty() { Ok(self) } else { Err(self.failed.swap_remove(0).1) }
    }
}

impl Sessions {
    /// Starts what `plan` needs. `sink` is called once for each [`Part`] that is read, and what it gives makes what takes that part's events.
    ///
    /// # Errors
    /// [`SessionError`]; nothing is left behind then.
    pub fn start(
        plan: &Plan,
        settings: &Settings,
        mut sink: impl FnMut(Part) -> MakeSink,
    ) -> Result<Self, SessionError> {
        if !sys::is_name(&settings.name) {
            return Err(SessionError::Name { name: settings.name.clone() });
        }
        plan.heap.as_ref().map_or(Ok(()), check_heap)?;
        console::guard()?;
        let round = console::round();
        let claim = Claim::of(&settings.name)?;
        stop_sessions(&settings.name);
        kernel_logger::stop_abandoned();
        let restored = restored::restore();
        let mut whole = Self {
            running: Vec::new(),
            clock: Clock::now(),
            interval: None,
            flags: plan.system.flags,
            round,
            has_interval: false,
            restored,
            at_end: plan.providers.iter().filter(|it| it.when == When::AtEnd).cloned().collect(),
            unanswered: Vec::new(),
            settings: settings.clone(),
            _claim: claim,
        };
        whole.start_main(plan, settings, &mut sink)?;
        if let Some(heap) = &plan.heap {
            whole.start_heap(heap, plan.buffers, &mut sink)?;
        }
        for provider in plan.providers.iter().filter(|provider| provider.when == When::Always) {
            whole.enable(provider, Enable::On)?;
            if provider.capture_state {
                whole.enable(provider, Enable::CaptureState)?;
            }
        }
        Ok(whole)
    }

    /// Starts the session for heaps, where the plan had none: for processes that were not there yet.
    ///
    /// # Errors
    /// [`SessionError`]; what is recorded goes on then.
    pub fn start_heap(
        &mut self,
        heap: &HeapPlan,
        buffers: Buffers,
        mut sink: impl FnMut(Part) -> MakeSink,
    ) -> Result<(), SessionError> {
        check_heap(heap)?;
        let Self { settings, round, .. } = &*self;
        let (part, kind) = (Part::Heap, Kind::Heap(heap));
        let session = Session::start(&Wanted { part, kind, buffers, settings, round: *round }, &mut sink)?;
        self.running.push(session);
        Ok(())
    }

    /// The kernel's events and the providers' in one session; where all system loggers are taken, in two.
    fn start_main(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        sink: &mut impl FnMut(Part) -> MakeSink,
    ) -> Result<(), SessionError> {
        let flags = plan.system.flags;
        let round = self.round;
        let of = |part, kind| Wanted { part, kind, buffers: plan.buffers, settings, round };
        if flags.is_empty() {
            self.running.push(Session::start(&of(Part::Main, Kind::Providers), sink)?);
            return Ok(());
        }
        match Session::start(&of(Part::Main, Kind::System), sink) {
            Ok(session) => {
                session.set_stacks(&plan.system.stacks)?;
                self.set_interval(plan)?;
                session.set_flags(flags)?;
                self.running.push(session);
            }
            Err(error) if is_for_want_of_loggers(&error) => {
                self.running.push(Session::start(&of(Part::Main, Kind::Providers), sink)?);
                self.set_interval(plan)?;
                let kernel = Session::start(&of(Part::Kernel, Kind::NtKernel(flags)), sink)?;
                kernel.set_stacks(&plan.system.stacks)?;
                self.running.push(kernel);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Tells a provider. One that has not done it in time does so later, and one that does not tell how things stand tells its events all the same.
    fn enable(&mut self, provider: &ProviderPlan, what: Enable) -> Result<(), SessionError> {
        match self.main()?.enable(provider, what) {
            Err(cause) if cause == Win32Error::TIMEOUT || what == Enable::CaptureState => {
                self.unanswered.push(Unanswered::at_start(provider, what, cause));
            }
            // Some providers refuse administrators, too.
            Err(cause) => {
                let of = provider.name.clone();
                return Err(SessionError::Call { call: "EnableTraceEx2", of, cause });
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn main(&self) -> Result<&Session, SessionError> {
        let main = self.running.iter().find(|session| session.part() == Part::Main);
        main.ok_or_else(|| SessionError::Name { name: String::new() })
    }

    /// The interval is the machine's: what was set before is set again at the end.
    fn set_interval(&mut self, plan: &Plan) -> Result<(), SessionError> {
        let Some(interval) = plan.system.interval else { return Ok(()) };
        sys::turn_on_profile_privilege()?;
        self.has_interval = true;
        self.interval = Some(SampleInterval::told(console::interval_begins(interval.units(), self.round)?));
        Ok(())
    }

    /// The clock of the records' ticks.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How often CPUs are sampled, as Windows tells: it may not have taken what was asked for to the tick.
    pub fn interval(&self) -> Option<SampleInterval> {
        self.interval
    }

    /// How often CPUs were sampled when this began, and are again, where a recording that was killed, or was not let set it back, had changed it.
    pub fn restored(&self) -> Option<Restored> {
        self.restored
    }

    /// Has providers that tell how things stand at the end do so of these processes only; nobody is asked where there are none. For more than
    /// [`MOST_PIDS`](crate::plan::MOST_PIDS) of them all are asked.
    pub fn ask_at_end(&mut self, pids: &BTreeSet<Pid>) {
        let asked = std::mem::take(&mut self.at_end);
        self.at_end = asked.into_iter().filter_map(|provider| provider.of_only(pids)).collect();
    }

    /// What was lost up to now.
    pub fn losses(&self) -> Result<Vec<(Part, Losses)>, SessionError> {
        self.running.iter().map(|session| Ok((session.part(), session.losses()?))).collect()
    }

    /// Whether a sink has panicked, or Windows or somebody else has ended a session. Of those that write a file alone Windows is asked each time.
    pub fn has_ended(&self) -> bool {
        self.running.iter().any(Session::has_ended)
    }

    /// Stops the sessions that can be stopped, and returns when sinks were given their last events. What fails is told with what there is, which is
    /// worth more.
    ///
    /// Providers that are asked at the end are when heaps and the kernel tell nothing any more but lives.
    pub fn stop(mut self) -> Stopped {
        let mut stopped = Stopped { unanswered: std::mem::take(&mut self.unanswered), ..Stopped::default() };
        let at_end = std::mem::take(&mut self.at_end);
        if self.is_gone() {
            stopped.unanswered.extend(at_end.into_iter().map(|provider| Unanswered::unasked(provider.name)));
        } else if !at_end.is_empty() {
            self.tell_lives(&mut stopped);
            self.ask(at_end, &mut stopped);
        }
        for session in std::mem::take(&mut self.running) {
            stopped.add(session);
        }
        stopped
    }

    /// Whether somebody else has stopped the session that providers write into.
    fn is_gone(&self) -> bool {
        let told = self.main().and_then(Session::losses);
        told.is_err_and(|error| error.is_of_no_session())
    }

    /// Has providers tell how things stand.
    fn ask(&self, providers: Vec<ProviderPlan>, stopped: &mut Stopped) {
        for provider in providers {
            let told = self.main().map(|main| main.enable(&provider, Enable::On));
            if let Ok(Err(cause)) = told {
                stopped.unanswered.push(Unanswered { provider: provider.name, asked: Asked::End, cause });
            }
        }
    }

    /// Has no samples told any more, only what names and bounds those that were.
    ///
    /// What providers are asked for at the end takes the recorded processes up to [`PATIENCE`](sys::PATIENCE) of work that is ours and not theirs. It
    /// is not left to who reads, for what came live can't be taken back, and a file is read by other programs, too.
    fn tell_lives(&mut self, stopped: &mut Stopped) {
        let all = std::mem::take(&mut self.running);
        let (heaps, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.part() == Part::Heap);
        self.running = others;
        for heap in heaps {
            stopped.add(heap);
        }
        // The kernel's session is started behind the one that would have its events, too.
        if let Some(kernel) = self.running.last()
            && self.flags != self.flags.lives()
        {
            stopped.unanswered.extend(kernel.tell_lives(self.flags));
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // Sessions stop when they are dropped.
        self.running.clear();
        if self.has_interval {
            console::interval_ends(self.round);
        }
    }
}

/// Whether this process may set how often CPUs are sampled: that is set to what it is.
///
/// # Errors
/// When it may not.
pub fn try_interval() -> Result<(), SessionError> {
    sys::turn_on_profile_privilege()?;
    set_again(sys::interval, sys::set_interval)
}

/// What another recording sets meanwhile is not undone.
fn set_again(
    interval: impl FnOnce() -> Result<u32, Win32Error>,
    set: impl FnOnce(u32) -> Result<(), Win32Error>,
) -> Result<(), SessionError> {
    // Where somebody else is at it for as long, it is not tried: the right to it is there.
    let Some(_lock) = restored::lock() else { return Ok(()) };
    let of = |call| move |cause| SessionError::of(call, "the interval of CPU samples", cause);
    set(interval().map_err(of("TraceQueryInformation"))?).map_err(of("TraceSetInformation"))
}

/// Stops what a process that was killed has left of this name, unless another one records with it. [`Sessions::start`] does so for its own name.
pub fn stop_abandoned(name: &str) {
    if let Ok(_claim) = Claim::of(name) {
        stop_sessions(name);
    }
}

/// Stops the sessions of a name that is claimed, all that a plan may have had: the next one may need fewer.
fn stop_sessions(name: &str) {
    for part in [Part::Main, Part::Heap] {
        // As a rule there is none; what can't be stopped is told when one is to be started in its place.
        let _: Result<(), Win32Error> = sys::stop_by_name(&session_name(name, part));
    }
}

/// That there are not too many processes.
fn check_heap(heap: &HeapPlan) -> Result<(), SessionError> {
    let count = heap.pids.len();
    if count > HeapPlan::MOST { Err(SessionError::Processes { count }) } else { Ok(()) }
}

/// Whether all system loggers are taken. There are such since Windows 8, and Rust's standard library needs 10.
fn is_for_want_of_loggers(error: &SessionError) -> bool {
    matches!(error, SessionError::Call { call: "StartTraceW", cause: Win32Error::NO_SYSTEM_RESOURCES, .. })
}

/// The name of a part's session.
pub(super) fn session_name(name: &str, part: Part) -> String {
    match part {
        Part::Main => name.to_owned(),
        Part::Kernel => NT_KERNEL_LOGGER.to_owned(),
        Part::Heap => format!("{name}-{}", part.suffix()),
    }
}

/// The file that `NT Kernel Logger` writes; none where it does not run, or writes none. That session is anybody's.
pub fn kernel_logger_file() -> Option<PathBuf> {
    sys::log_file(NT_KERNEL_LOGGER).ok().flatten()
}

/// Stops `NT Kernel Logger`, whoever has started it.
///
/// # Errors
/// When Windows does not.
pub fn stop_kernel_logger() -> Result<(), SessionError> {
    let stopped = sys::stop_by_name(NT_KERNEL_LOGGER);
    stopped.map_err(|cause| SessionError::of("ControlTraceW", NT_KERNEL_LOGGER, cause))
}

#[cfg(test)]
mod tests;
