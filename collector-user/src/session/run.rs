//! The rounds.

mod end;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use collector_common::ids::{Nanos, Tid};
use collector_common::record::{ClockAnchor, Samples};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::command::Command;
use super::dispatch::{Dispatch, requests};
use super::error::SessionError;
use super::needed;
use super::open::{Opened, Wanted, open};
use super::own_process::{Priority, raise_open_file_limit};
use super::settings::{Ended, Progress, SessionSettings};
use super::system;
use super::waker::{Wake, Waker};
use crate::capture::{Capture, kernel};
use crate::clock;
use crate::event_clock::EventTimes;
use crate::journal::{EventOf, JournalWriter, Start};
use crate::kernel::online_cpus;
use crate::procfs;
use crate::recorder::{Kept, MOST_EVENTS, Recorder};
use crate::source::perf::PerfError;
use crate::source::sideband::Sideband;
use crate::source::{EventIndex, EventRequest, Gone, Hook, NewFile, Settings, Source, SourceRecord, bpf_map};
use crate::spill::spill_samples;

/// How often rings are drained when nothing else asks for it.
const DRAIN_PERIOD: Duration = Duration::from_millis(100);

/// When rings are drained for the first time: a few samples after the start.
const FIRST_DRAIN: Duration = Duration::from_millis(10);

/// So long after a wakeup by the sideband it is drained: soon enough to meet a process of a few milliseconds, late enough
/// for a program to have mapped its libraries, and a storm of short processes does not turn into a storm of wakeups.
const SIDEBAND_PAUSE: Duration = Duration::from_millis(1);

/// So long after that it is drained once more: a program may have had to wait for a CPU before it mapped its libraries, and
/// those alone wake nobody.
const SECOND_LOOK: Duration = Duration::from_millis(5);

/// How often CPUs that came online are looked for.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// So long after a wakeup by a source that tells of each record it is drained, with all others: soon enough for a ring of some
/// pages, and a storm of records does not turn into a storm of rounds.
const RECORDS_PAUSE: Duration = Duration::from_millis(2);

/// Of sources that keep order, what is younger than this waits for the next round: a record gets its time before there is room for it in
/// a ring, and is seen when it is written.
const IN_THE_MAKING: Duration = Duration::from_millis(1);

/// Of the tracepoints of wakeups, where processes are chosen.
const OF_OTHERS: &str = "wakeups of chosen processes are told in part, as the kernel has no record of most of those by idle CPUs: \
     `-s off_cpu` tells who woke whom, and sched:sched_wakeup of the whole machine has all";

/// How far a round goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upto {
    /// All that is there: no round comes soon, or at all.
    Now,
    /// What is surely written.
    Written,
}

/// What was not recorded of a CPU that came online.
enum Lacked {
    Nothing,
    /// Processes and mappings.
    Sideband,
    Records,
}

/// What a session has done.
enum Turn {
    /// It has drained all sources.
    Round,
    Other,
    Ended(Ended),
}

/// A running recording. It belongs to the thread that made it.
pub struct Session {
    sideband: Sideband,
    /// Closed before the events of `dispatch` go.
    sources: Vec<Box<dyn Source>>,
    dispatch: Dispatch,
    capture: Option<Capture>,
    journal: Option<JournalWriter>,
    /// Why what records is not the best there could be.
    notes: Vec<String>,
    /// Whether a program says whose hits of probes are recorded.
    chooses_hits: bool,
    recorder: Recorder,
    waker: Waker,
    command: Option<Command>,
    /// Ends of the recorded processes; `None` where one has ended.
    watched: Vec<Option<OwnedFd>>,
    settings: SessionSettings,
    started: Instant,
    began: Nanos,
    /// Whether all that ran before is told, and the command runs.
    is_under_way: bool,
    /// When it was last looked for what the sideband does not tell.
    checked: Instant,
    /// What it was woken for last; kept for its memory.
    wakes: Vec<Wake>,
    /// When the sideband is to be drained once more.
    second_look: Option<Instant>,
    /// CPUs that came online, of which something is missing.
    cpus_added: u64,
    /// CPUs that came online and are not recorded, with why not.
    cpus_failed: BTreeMap<u32, SessionError>,
    /// Those of which all is recorded, and only not what ran.
    cpus_untold: u64,
    /// Descendants of recorded processes that could not be followed.
    not_followed: u64,
    first_sample: Option<Duration>,
    _priority: Priority,
}

/// Hands each record from before `until` to `visit`; those of sources that keep order from before `written`, and in the order of their
/// times: the source with the oldest record goes on to where another one's begin.
fn drain(
    sources: &mut [Box<dyn Source>],
    [written, until]: [Nanos; 2],
    visit: &mut dyn FnMut(&SourceRecord<'_>),
) {
    loop {
        let heads = sources.iter_mut().enumerate().filter(|(_, source)| source.keeps_order());
        let heads = heads
            .filter_map(|(index, source)| Some((source.oldest().filter(|&time| time <= written)?, index)));
        let mut heads: Vec<_> = heads.collect();
        heads.sort_unstable();
        let [(_, first), (second, _), ..] = heads[..] else { break };
        sources[first].drain(second, visit);
    }
    for source in sources {
        source.drain(if source.keeps_order() { written } else { until }, visit);
    }
}

/// With the name of an event that is refused.
fn named(error: SessionError, events: &[Hook]) -> SessionError {
    let name_of = |event: EventIndex| {
        event.hook().and_then(|at| events.get(at)).map(|hook| hook.event.name().to_owned())
    };
    match error {
        SessionError::Perf(PerfError::Event { event, name, source }) => {
            let name = name_of(event).unwrap_or(name);
            match source.raw_os_error() {
                // The events that are listed have records; of some, stacks alone are refused.
                Some(libc::EINVAL | libc::EOPNOTSUPP) => SessionError::Event { name, source },
                _ => PerfError::Event { event, name, source }.into(),
            }
        }
        SessionError::Perf(PerfError::NoUnit { event, name }) => {
            PerfError::NoUnit { event, name: name_of(event).unwrap_or(name) }.into()
        }
        SessionError::Perf(PerfError::OfKernel { event, name }) => {
            PerfError::OfKernel { event, name: name_of(event).unwrap_or(name) }.into()
        }
        error => error,
    }
}

impl Session {
    /// Opens everything and starts sampling; a command is released last.
    ///
    /// # Errors
    /// When a source can't be opened or the command can't be executed.
    pub fn start(mut settings: SessionSettings, mut command: Option<Command>) -> Result<Self, SessionError> {
        let started = settings.started.unwrap_or_else(Instant::now);
        let priority = Priority::highest();
        let watched = watch(&settings.sampling)?;
        if let Some(command) = &command {
            settings.sampling.targets.command = Some(command.pid());
        }
        let online = online_cpus().map_err(SessionError::system("the online CPUs can't be listed"))?;
        let targets = &settings.sampling.targets;
        let cpus: Vec<u32> = online.iter().copied().filter(|&cpu| targets.has_cpu(cpu)).collect();
        if cpus.is_empty() {
            return Err(SessionError::NoCpu(targets.cpus.iter().copied().collect()));
        }
        let mut events = std::mem::take(&mut settings.events);
        if events.len() > MOST_EVENTS {
            return Err(SessionError::Events { named: events.len(), most: MOST_EVENTS });
        }
        raise_open_file_limit(online.len(), events.len())?;
        let mut requests = requests(&events);
        if settings.capture.is_some() {
            // Such a file has records of perf events.
            requests = requests.into_iter().map(EventRequest::plain).collect();
        }
        let wanted = Wanted {
            backend: settings.backend,
            settings: &settings.sampling,
            requests: &requests,
            online: &online,
            cpus: &cpus,
            #[cfg(feature = "ebpf")]
            has_maps: events.iter().any(|hook| hook.map.is_some()),
            captures: settings.capture.is_some(),
            has_journal: settings.journal.is_some(),
        };
        let opened = open(&wanted).map_err(|error| named(error, &events));
        let Opened { mut recorder, sideband, mut sources, note, chooses_hits } = opened?;
        let is_partial =
            settings.sampling.targets.follows_processes() && events.iter().any(Hook::is_of_others);
        let notes = is_partial.then(|| OF_OTHERS.to_owned()).into_iter().chain(note);
        let notes = notes.collect();
        recorder.add_sample_hooks(std::mem::take(&mut settings.sample_hooks));
        recorder.set_event_times(EventTimes::in_clock(settings.event_clock));
        spill_samples(recorder.machine_mut(), settings.sample_bytes.unwrap_or(Samples::LIMIT));
        sources.append(&mut bpf_map::open_sources(&mut events, &settings.sampling, &cpus)?);
        sources.append(&mut settings.sources);
        // Before the events move: where this fails, the sources are closed first, and then probes can be removed.
        let waker = Waker::new(FIRST_DRAIN, DRAIN_PERIOD).map_err(SessionError::system("epoll"))?;
        let capture = settings.capture.take();
        let capture = capture.map(|file| Capture::new(file, &settings.sampling, &events)).transpose()?;
        system::describe(&mut recorder, online.len(), command.as_ref());
        let journal = match settings.journal.take() {
            Some(file) => {
                Some(JournalWriter::new(file, &begin(&settings, &events, &recorder)?, &mut recorder))
            }
            None => None,
        };
        let clock = settings.sampling.clock.then(|| settings.sampling.period());
        let kept = Kept { bytes: settings.event_bytes, passed_over: &settings.events_passed_over };
        let dispatch = Dispatch::new(clock, &settings.sampling, events, kept, &mut recorder);
        let mut session = Self {
            sideband,
            sources,
            dispatch,
            capture,
            journal,
            notes,
            chooses_hits,
            recorder,
            waker,
            command: None,
            watched,
            settings,
            started,
            began: Nanos(0),
            is_under_way: false,
            checked: started,
            wakes: Vec::new(),
            second_look: None,
            cpus_added: 0,
            cpus_failed: BTreeMap::new(),
            cpus_untold: 0,
            not_followed: 0,
            first_sample: None,
            _priority: priority,
        };
        session.follow_descendants();
        session
            .sources
            .iter_mut()
            .try_for_each(|source| source.start())
            .map_err(SessionError::system("the events can't be started"))?;
        session.begin();
        session.fill_waker(command.as_ref()).map_err(SessionError::system("epoll"))?;
        session.hand_on_files();
        if let Some(command) = &mut command {
            session.hand_on_files_of(command);
            command.release()?;
        }
        session.is_under_way = true;
        session.command = command;
        session.round(Upto::Written);
        Ok(session)
    }

    /// The sources have started.
    fn begin(&mut self) {
        self.began = clock::now();
        self.dispatch.begin();
        let anchor = self.read_clocks();
        let system = self.recorder.machine_mut().system_mut();
        (system.start, system.clocks.start) = (self.began, Some(anchor));
    }

    /// Reads what the clocks show: closures are told by it when what happens around now does.
    fn read_clocks(&mut self) -> ClockAnchor {
        let reading = clock::reading();
        self.recorder.event_times_mut().take(reading);
        if let Some(journal) = &mut self.journal {
            journal.clocks(&reading);
        }
        reading.anchor
    }

    /// Has the kernel follow the processes below those of `-p`. One of them may fork before it is followed: then the
    /// sideband tells of the child, and it is looked again.
    fn follow_descendants(&mut self) {
        let mut followed = self.settings.sampling.targets.pids.clone();
        loop {
            self.drain_sideband(clock::now());
            let found = self.recorder.descendants(&self.settings.sampling.targets.pids);
            let new: Vec<_> = found.into_iter().filter(|(pid, _)| followed.insert(pid.0)).collect();
            if new.is_empty() {
                return;
            }
            for (pid, started) in new {
                // One that can't be followed has ended, or is another user's.
                let mut sources = self.sources.iter_mut();
                let followed = self
                    .sideband
                    .follow(pid.0, started)
                    .and_then(|()| sources.try_for_each(|source| source.follow(pid.0, started)));
                self.not_followed += u64::from(followed.is_err());
            }
        }
    }

    fn fill_waker(&self, command: Option<&Command>) -> io::Result<()> {
        for fd in self.sideband.descriptors() {
            self.waker.add(fd, Wake::Sideband)?;
        }
        for source in &self.sources {
            let wake = if source.tells_each() { Wake::Record } else { Wake::Ring };
            source.descriptors().into_iter().try_for_each(|fd| self.waker.add(fd, wake))?;
        }
        for (index, fd) in self.watched.iter().enumerate() {
            if let Some(fd) = fd {
                self.waker.add(fd, Wake::Ended(index))?;
            }
        }
        if let Some(command) = command {
            self.waker.add(command.end(), Wake::Ended(usize::MAX >> 1))?;
        }
        Ok(())
    }

    /// Records until the end. `stop` becomes readable when a stop is wanted; `progress` is called after rounds.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Ended, SessionError> {
        let failed = SessionError::system("epoll");
        self.waker.add(stop, Wake::Stop).map_err(&failed)?;
        let ended = loop {
            match self.turn(None)? {
                Turn::Round => progress(&self.progress()),
                Turn::Other => {}
                Turn::Ended(ended) => break ended,
            }
        };
        self.waker.remove(stop).map_err(&failed)?;
        Ok(ended)
    }

    /// Records for a time. `None` when that is over; what ended the recording, if it ended before.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn parse_for(&mut self, duration: Duration) -> Result<Option<Ended>, SessionError> {
        // A time that no clock will tell is for ever.
        let end = Instant::now().checked_add(duration);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                self.round(Upto::Now);
                return Ok(None);
            }
            if let Turn::Ended(ended) = self.turn(left)? {
                return Ok(Some(ended));
            }
        }
    }

    /// Records until `condition` holds, which is asked after each round, ten times a second at least: closures will have had
    /// their events of it. `None` when it holds; what ended the recording, if it ended before.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn parse_until(
        &mut self,
        mut condition: impl FnMut(&Progress) -> bool,
    ) -> Result<Option<Ended>, SessionError> {
        loop {
            match self.turn(None)? {
                Turn::Round if condition(&self.progress()) => return Ok(None),
                Turn::Ended(ended) => return Ok(Some(ended)),
                Turn::Round | Turn::Other => {}
            }
        }
    }

    /// Waits until there is something to do, or for `most`, and does it.
    fn turn(&mut self, most: Option<Duration>) -> Result<Turn, SessionError> {
        let failed = SessionError::system("epoll");
        let left = self.left();
        if left == Some(Duration::ZERO) {
            return Ok(Turn::Ended(Ended::Duration));
        }
        let to_second_look = self.second_look.map(|at| at.saturating_duration_since(Instant::now()));
        let most = left.into_iter().chain(to_second_look).chain(most).min();
        let mut wakes = std::mem::take(&mut self.wakes);
        self.waker.wait(most, &mut wakes).map_err(&failed)?;
        let mut turn = Turn::Other;
        let is_due = wakes.contains(&Wake::Timer) || wakes.contains(&Wake::Ring);
        if is_due || wakes.contains(&Wake::Record) {
            if !is_due {
                thread::sleep(RECORDS_PAUSE);
            }
            self.second_look = None;
            self.round(Upto::Written);
            self.check();
            turn = Turn::Round;
        } else if wakes.contains(&Wake::Sideband) {
            thread::sleep(SIDEBAND_PAUSE);
            self.drain_sideband(clock::now());
            self.hand_on_files();
            self.second_look = Some(Instant::now() + SECOND_LOOK);
        } else if self.second_look.is_some_and(|at| at <= Instant::now()) {
            self.second_look = None;
            self.drain_sideband(clock::now());
            self.hand_on_files();
        }
        let ended = self.ended(&wakes).map_err(&failed)?;
        self.wakes = wakes;
        Ok(ended.map_or(turn, Turn::Ended))
    }

    /// Time left; `None` for a recording without a set end.
    fn left(&self) -> Option<Duration> {
        let elapsed = Duration::from_nanos(clock::now().0.saturating_sub(self.began.0));
        Some(self.settings.duration?.saturating_sub(elapsed))
    }

    fn ended(&mut self, wakes: &[Wake]) -> io::Result<Option<Ended>> {
        for wake in wakes {
            match *wake {
                Wake::Stop => return Ok(Some(Ended::Stopped)),
                Wake::Ended(index) => {
                    if let Some(status) = self.command.as_mut().and_then(Command::try_status) {
                        return Ok(Some(Ended::Command(status)));
                    }
                    if let Some(fd) = self.watched.get_mut(index).and_then(Option::take) {
                        self.waker.remove(&fd)?;
                        if self.command.is_none() && self.watched.iter().all(Option::is_none) {
                            return Ok(Some(Ended::Processes));
                        }
                    }
                }
                Wake::Sideband | Wake::Ring | Wake::Record | Wake::Timer => {}
            }
        }
        Ok(None)
    }

    fn drain_sideband(&mut self, until: Nanos) {
        let Self { recorder, capture, journal, .. } = self;
        let malformed = self.sideband.malformed();
        self.sideband.drain(until, |parsed, time| {
            if let Some(journal) = journal {
                journal.sideband(parsed, time);
            }
            if let Some(capture) = capture {
                capture.sideband(parsed);
            }
            recorder.apply(parsed, time);
        });
        // Of a record that can't be read nobody knows how much it told, nor how much lay behind it.
        if self.sideband.malformed() > malformed {
            recorder.distrust_sideband();
        }
        recorder.look_at_processes(clock::now);
        if let Some(journal) = journal {
            journal.looked(recorder);
        }
        self.capture_found();
    }

    /// Tells the sources of files that were mapped for the first time.
    fn hand_on_files(&mut self) {
        let opened = self.recorder.modules_mut().take_opened();
        if opened.is_empty() {
            return;
        }
        let targets = &self.settings.sampling.targets;
        let named: BTreeSet<u32> = targets.pids.iter().copied().chain(targets.command).collect();
        let is_recorded = |pid: u32| {
            !targets.follows_processes()
                || named.contains(&pid)
                || self.recorder.descendants(&named).iter().any(|(made, _)| made.0 == pid)
        };
        let new = opened
            .into_iter()
            .map(|(file, pid)| NewFile { file, is_late: self.is_under_way && is_recorded(pid.0) });
        let new: Vec<_> = new.collect();
        self.sources.iter_mut().for_each(|source| source.files_mapped(&new));
    }

    /// Tells the sources of files that the command will map before it runs a single instruction of its own.
    fn hand_on_files_of(&mut self, command: &Command) {
        if self.recorder.modules().keeps_opened() {
            let needed = needed::files_of(command.words()).into_iter();
            let needed: Vec<_> = needed.map(|file| NewFile { file, is_late: false }).collect();
            self.sources.iter_mut().for_each(|source| source.files_mapped(&needed));
        }
    }

    /// Hands on what was found beside the sideband.
    fn capture_found(&mut self) {
        if let Some(capture) = &mut self.capture {
            self.recorder.take_found().into_iter().for_each(|found| capture.found(found));
        }
    }

    /// One round.
    fn round(&mut self, upto: Upto) {
        self.sources.iter_mut().for_each(|source| source.begin_round());
        let until = clock::now();
        self.read_clocks();
        let held_back = if upto == Upto::Written { IN_THE_MAKING } else { Duration::ZERO };
        let written = Nanos(until.0.saturating_sub(held_back.as_nanos() as u64));
        self.drain_sideband(until);
        self.hand_on_files();
        let Self { recorder, dispatch, capture, journal, .. } = self;
        drain(&mut self.sources, [written, until], &mut |record| {
            if let Some(journal) = journal {
                journal.record(record);
            }
            let is_recorded = dispatch.take(recorder, record);
            if let Some(capture) = capture.as_mut().filter(|_| is_recorded) {
                capture.sample(record);
            }
        });
        let blocks = self.dispatch.end_round(&mut self.recorder, written);
        let gone = Gone { processes: self.recorder.take_ended_processes(written), blocks };
        self.sources.iter_mut().for_each(|source| source.end_round(&gone));
        self.capture_found();
        if let Some(capture) = &mut self.capture {
            capture.finish_round();
        }
        let recorder = &mut self.recorder;
        for thread in recorder.take_left_mappings() {
            self.sources.iter_mut().for_each(|source| source.forget_stack(thread));
        }
        for (thread, places) in recorder.take_outer_places() {
            self.sources.iter_mut().for_each(|source| source.copy_outer(thread, &places));
        }
        self.recorder.prune(written);
        if let Some(journal) = &mut self.journal {
            journal.round(written, &mut self.recorder);
        }
        if self.first_sample.is_none() && self.recorder.ledger().delivered() > 0 {
            self.first_sample = Some(self.started.elapsed());
        }
    }

    /// Once a second, takes in CPUs that came online, as all but one of a suspended machine's do when it wakes up; and
    /// looks at all processes anew where the sideband has missed something.
    fn check(&mut self) {
        if self.checked.elapsed() < CHECK_PERIOD {
            return;
        }
        self.checked = Instant::now();
        for cpu in online_cpus().unwrap_or_default() {
            let covered = self.cover(cpu);
            self.cpus_failed.remove(&cpu);
            match covered {
                Ok(Lacked::Nothing) => {}
                Ok(Lacked::Sideband) => self.cpus_untold += 1,
                Ok(Lacked::Records) => self.cpus_added += 1,
                // It is tried again the next time.
                Err(error) => drop(self.cpus_failed.insert(cpu, error)),
            }
        }
        if self.recorder.has_gaps() {
            let now = clock::now();
            self.recorder.rescan(now);
            if let Some(journal) = &mut self.journal {
                journal.rescan(now, &mut self.recorder);
            }
        }
    }

    /// Has a CPU recorded by what does not.
    fn cover(&mut self, cpu: u32) -> Result<Lacked, SessionError> {
        let failed = SessionError::system("epoll");
        // All are asked, as each tells what has been since it was asked last.
        let is_told = self.sideband.covers(cpu);
        let is_wanted = self.settings.sampling.targets.has_cpu(cpu);
        let uncovered: Vec<bool> =
            self.sources.iter_mut().map(|source| is_wanted && !source.covers(cpu)).collect();
        let is_recorded = !uncovered.contains(&true);
        if is_told && is_recorded {
            return Ok(Lacked::Nothing);
        }
        let targets = &self.settings.sampling.targets;
        let named = targets.pids.iter().copied().chain(targets.command).collect();
        let descendants = self.recorder.running_descendants(&named);
        if !is_told {
            let added = self.sideband.add_cpu(cpu, &descendants).map_err(SessionError::sideband)?;
            added.into_iter().try_for_each(|fd| self.waker.add(fd, Wake::Sideband)).map_err(&failed)?;
            self.recorder.distrust_sideband();
        }
        for (source, _) in { &mut self.sources }.iter_mut().zip(uncovered).filter(|(_, uncovered)| *uncovered)
        {
            let added = source.add_cpu(cpu, &descendants);
            if let Some(fd) = added.map_err(SessionError::system("it can't be sampled"))? {
                self.waker.set(fd, Wake::Ring).map_err(&failed)?;
            }
        }
        Ok(if is_recorded { Lacked::Sideband } else { Lacked::Records })
    }

    fn progress(&self) -> Progress {
        let lost = self.sources.iter().map(|source| source.dropped()).sum();
        let elapsed = Duration::from_nanos(clock::now().0.saturating_sub(self.began.0));
        let unwritten = self.recorder.machine().samples().unwritten().map(|(kind, _)| kind);
        Progress { elapsed, samples: self.recorder.ledger().delivered(), lost, unwritten }
    }
}

/// What a journal begins with.
fn begin(settings: &SessionSettings, events: &[Hook], recorder: &Recorder) -> Result<Start, SessionError> {
    let told = |hook: &Hook| {
        EventOf::of(hook).ok_or_else(|| SessionError::NotForJournal(hook.event.name().to_owned()))
    };
    Ok(Start {
        system: recorder.machine().system().clone(),
        sampling: settings.sampling.clone(),
        names_threads: recorder.names_threads(),
        kernel: kernel::beginning().map(|(symbol, address)| (symbol.as_bytes().into(), address)),
        events: events.iter().map(told).collect::<Result<_, _>>()?,
    })
}

/// Descriptors that tell when the processes of `-p` end.
fn watch(sampling: &Settings) -> Result<Vec<Option<OwnedFd>>, SessionError> {
    let open = |&pid: &u32| {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(SessionError::NoProcess(pid))?;
        pidfd_open(raw, PidfdFlags::empty()).map(Some).map_err(|error| match procfs::process_of(Tid(pid)) {
            None => SessionError::NoProcess(pid),
            Some(process) if process.0 != pid => SessionError::OneThread { thread: Tid(pid), process },
            Some(_) => SessionError::system("the processes of -p can't be watched")(error.into()),
        })
    };
    sampling.targets.pids.iter().map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_has_the_name_that_it_was_asked_by() {
        let events = ["cs", "r01c2"].map(|name| Hook::counter(name).unwrap());
        let event = EventIndex::of_hook(1);
        let refused = |error: PerfError| named(error.into(), &events).to_string();
        let name = || "the raw event".to_owned();
        let told = refused(PerfError::NoUnit { event, name: name() });
        assert!(told.starts_with("r01c2 is not counted here"), "{told}");
        let told = refused(PerfError::OfKernel { event: EventIndex::of_hook(0), name: name() });
        assert!(told.starts_with("context-switches happen in the kernel"), "{told}");
        let told = refused(PerfError::NoUnit { event: EventIndex::of_hook(2), name: name() });
        assert!(told.starts_with("the raw event is not"), "{told}");
    }
}
