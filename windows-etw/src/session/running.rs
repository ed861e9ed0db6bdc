//! One session, and the thread that reads it.

use std::collections::BTreeSet;
use std::path::absolute;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::part::Part;
use crate::plan::{Buffers, Flags, KernelEvent, ProviderPlan};

use super::console::{self, Round};
use super::error::{SessionError, Win32Error};
use super::kernel_logger::Started;
use super::losses::Losses;
use super::settings::Settings;
use super::start;
use super::sys::{self, Control, Enable, Ended, Handle, Kind, MakeSink, Open, Properties, Reader};
use super::unanswered::Unanswered;

/// How often a session is started whose stale one was stopped: Windows says that it did before its name is free.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// What is to be started.
pub(super) struct Wanted<'a> {
    pub(super) part: Part,
    pub(super) kind: Kind<'a>,
    pub(super) buffers: Buffers,
    pub(super) settings: &'a Settings,
    /// In which it is started.
    pub(super) round: Round,
}

/// A session that runs. It is stopped when it is dropped.
#[derive(Debug)]
pub(super) struct Session {
    name: String,
    part: Part,
    handle: Handle,
    reader: Option<Reading>,
    /// What it had lost when it was asked last.
    told: Mutex<Losses>,
    /// Where it is the one that all programs share.
    shared: Option<Started>,
    is_stopped: bool,
}

/// What is left of a session that was to be stopped.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What it lost, up to now where it goes on.
    pub(super) losses: Losses,
    /// Events that the sink was given.
    pub(super) events: u64,
    /// Why it is not all that there should be.
    pub(super) failed: Option<SessionError>,
}

/// The thread that reads a session.
#[derive(Debug)]
struct Reading {
    thread: JoinHandle<Ended>,
    trace: Arc<Open>,
}

impl Session {
    pub(super) fn start(
        wanted: &Wanted<'_>,
        sink: &mut impl FnMut(Part) -> MakeSink,
    ) -> Result<Self, SessionError> {
        let Wanted { part, kind, buffers, settings, round } = *wanted;
        let name = start::session_name(&settings.name, part);
        let live = settings.target.is_live();
        let file = settings.target.file(part);
        let place = || SessionError::Path { path: format!("{:?}", settings.target) };
        let file = file.map(absolute).transpose().map_err(|_| place())?;
        let properties = || Properties::of(kind, buffers, live, file.as_deref()).ok_or_else(place);
        let handle = started(&name, part, round, properties)?;
        // From here on, what fails stops it.
        let told = Mutex::default();
        let shared = (part == Part::Kernel).then(Started::now).flatten();
        let mut session = Self { name, part, handle, reader: None, told, shared, is_stopped: false };
        if live {
            session.read(sink(part))?;
        }
        Ok(session)
    }

    fn read(&mut self, sink: MakeSink) -> Result<(), SessionError> {
        let reader = Reader::open(&self.name, sink).map_err(|cause| self.failed("OpenTraceW", cause))?;
        let trace = reader.trace();
        let thread = thread::Builder::new().name(format!("etw {}", self.name));
        let thread = thread.spawn(move || reader.run());
        let thread = thread.map_err(|source| SessionError::Thread { name: self.name.clone(), source })?;
        self.reader = Some(Reading { thread, trace });
        Ok(())
    }

    fn failed(&self, call: &'static str, cause: Win32Error) -> SessionError {
        SessionError::of(call, &self.name, cause)
    }

    pub(super) fn part(&self) -> Part {
        self.part
    }

    pub(super) fn set_stacks(&self, events: &BTreeSet<KernelEvent>) -> Result<(), SessionError> {
        if events.is_empty() {
            return Ok(());
        }
        let set = sys::set_stacks(self.handle, events.iter().map(|event| (event.class, event.opcode)));
        set.map_err(|cause| self.failed("TraceSetInformation(TraceStackTracingInfo)", cause))
    }

    pub(super) fn set_flags(&self, flags: Flags) -> Result<(), SessionError> {
        let set = sys::set_flags(self.handle, flags);
        set.map_err(|cause| self.failed("TraceSetInformation(TraceSystemTraceEnableFlagsInfo)", cause))
    }

    /// Has only lives told from now on, where `flags` were told until now.
    pub(super) fn tell_lives(&self, flags: Flags) -> Option<Unanswered> {
        let set = sys::set_flags(self.handle, flags.lives());
        set.err().map(|cause| Unanswered::lives(&self.name, cause))
    }

    pub(super) fn enable(&self, provider: &ProviderPlan, what: Enable) -> Result<(), Win32Error> {
        sys::enable(self.handle, provider, what)
    }

    pub(super) fn losses(&self) -> Result<Losses, SessionError> {
        let losses = sys::control(self.handle, Control::Query);
        let losses = losses.map_err(|cause| self.failed("ControlTraceW", cause))?;
        *self.told() = losses;
        Ok(losses)
    }

    fn told(&self) -> MutexGuard<'_, Losses> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_ended(&self) -> bool {
        match &self.reader {
            Some(reading) => reading.thread.is_finished(),
            None => self.losses().is_err_and(|error| error.is_of_no_session()),
        }
    }

    pub(super) fn stop(mut self) -> Outcome {
        self.end()
    }

    fn end(&mut self) -> Outcome {
        if std::mem::replace(&mut self.is_stopped, true) {
            return Outcome::default();
        }
        // Stopping hands buffers over, too; what is in them by now need not wait for that.
        let _: Result<Losses, Win32Error> = sys::control(self.handle, Control::Flush);
        let stopped = sys::control(self.handle, Control::Stop);
        console::stopped(&self.name);
        self.finish(stopped)
    }

    /// Waits for the reader of a session that was to be stopped.
    fn finish(&mut self, stopped: Result<Losses, Win32Error>) -> Outcome {
        let is_gone = matches!(stopped, Ok(_) | Err(Win32Error::WMI_INSTANCE_NOT_FOUND));
        let reading = self.reader.take();
        if let Some(reading) = reading.as_ref().filter(|_| !is_gone) {
            reading.trace.close();
        }
        // `ProcessTrace` returns when the session is gone and its last buffer was read, or the trace is closed.
        let ended = reading.map(|reading| reading.thread.join());
        let (losses, unstopped) = match stopped {
            Ok(losses) => (losses, None),
            // Somebody else has stopped it; what it has lost since it was asked is not known any more.
            Err(Win32Error::WMI_INSTANCE_NOT_FOUND) => (*self.told(), None),
            Err(cause) => {
                if let Some(shared) = self.shared.take() {
                    shared.leave();
                }
                let up_to_now = sys::control(self.handle, Control::Query).unwrap_or_default();
                (up_to_now, Some(SessionError::Unstopped { name: self.name.clone(), cause }))
            }
        };
        let (events, unread) = ended.map_or((0, None), |ended| self.read_to_its_end(ended));
        Outcome { losses, events, failed: unstopped.or(unread) }
    }

    /// How many events the sink was given, and why these are not all.
    fn read_to_its_end(&self, ended: thread::Result<Ended>) -> (u64, Option<SessionError>) {
        let panicked = |message| SessionError::SinkPanicked { name: self.name.clone(), message };
        match ended {
            Err(panic) => (0, Some(panicked(said(&*panic)))),
            Ok(Ended { panic: Some(panic), events, .. }) => (events, Some(panicked(said(&*panic)))),
            Ok(Ended { result, events, .. }) => {
                (events, result.err().map(|cause| self.failed("ProcessTrace", cause)))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // There is nobody to tell an error to.
        let _: Outcome = self.end();
    }
}

/// Starts it, in place of one that was left behind under its name.
fn started(
    name: &str,
    part: Part,
    round: Round,
    properties: impl Fn() -> Result<Properties, SessionError>,
) -> Result<Handle, SessionError> {
    let failed = |cause| SessionError::of("StartTraceW", name, cause);
    for _ in 0..TRIES {
        let mut properties = properties()?;
        match console::start(name, round, || sys::start(name, &mut properties)) {
            Ok(handle) => return Ok(handle),
            Err(Win32Error::CANCELLED) => return Err(SessionError::Interrupted),
            // That one is anybody's.
            Err(Win32Error::ALREADY_EXISTS) if part == Part::Kernel => {
                return Err(SessionError::KernelLoggersInUse);
            }
            Err(Win32Error::ALREADY_EXISTS) => match sys::stop_by_name(name) {
                Ok(()) | Err(Win32Error::WMI_INSTANCE_NOT_FOUND) => thread::sleep(BETWEEN_TRIES),
                Err(cause) => return Err(SessionError::of("ControlTraceW", name, cause)),
            },
            Err(cause) => return Err(failed(cause)),
        }
    }
    Err(failed(Win32Error::ALREADY_EXISTS))
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A session whose reader reads until its trace is closed, or for a minute.
    fn session() -> Session {
        session_that_ends(Ok(()))
    }

    fn session_that_ends(result: Result<(), Win32Error>) -> Session {
        let trace = Arc::new(Open::nothing());
        let open = Arc::clone(&trace);
        let thread = thread::spawn(move || {
            let begun = Instant::now();
            while !open.is_closed() && begun.elapsed() < Duration::from_mins(1) {
                thread::sleep(Duration::from_millis(1));
            }
            Ended { result, panic: None, events: u64::from(open.is_closed()) }
        });
        let reader = Some(Reading { thread, trace });
        Session {
            name: String::new(),
            part: Part::Main,
            handle: Handle::NONE,
            reader,
            told: Mutex::default(),
            shared: None,
            is_stopped: true,
        }
    }

    #[test]
    fn a_session_that_can_not_be_stopped_is_read_no_longer() {
        let begun = Instant::now();
        for code in [Win32Error::ACCESS_DENIED, Win32Error::INVALID_PARAMETER] {
            let ended = session().finish(Err(code));
            assert!(
                matches!(ended.failed, Some(SessionError::Unstopped { cause, .. }) if cause == code),
                "{ended:?}"
            );
            assert_eq!(ended.events, 1, "what the sink was given by then");
        }
        assert!(begun.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn one_whose_reader_has_returned_has_ended() {
        let mut session = session();
        assert!(!session.has_ended());
        let reading = session.reader.as_ref().unwrap();
        reading.trace.close();
        while !reading.thread.is_finished() {
            thread::yield_now();
        }
        assert!(session.has_ended());
        assert_eq!(session.finish(Ok(Losses::default())).events, 1);
    }

    #[test]
    fn what_was_told_is_kept_where_the_end_is_not() {
        let lost = Losses { events: 7, file_buffers: 2, live_buffers: 1 };
        let mut session = session_that_ends(Err(Win32Error::INVALID_PARAMETER));
        sys::let_sessions_answer(Some((0, lost)));
        assert_eq!(session.losses().ok(), Some(lost));
        sys::let_sessions_answer(None);
        session.reader.as_ref().unwrap().trace.close();
        let ended = session.finish(Err(Win32Error::WMI_INSTANCE_NOT_FOUND));
        assert_eq!((ended.losses, ended.events), (lost, 1));
        assert!(
            matches!(ended.failed, Some(SessionError::Call { call: "ProcessTrace", cause, .. }) if cause.0 == 87)
        );
    }

    #[test]
    fn one_that_is_gone_is_read_to_its_end() {
        let mut session = session();
        let trace = session.reader.as_ref().map(|reading| Arc::clone(&reading.trace)).unwrap();
        let later = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            let was_closed = trace.is_closed();
            trace.close();
            was_closed
        });
        let ended = session.finish(Err(Win32Error::WMI_INSTANCE_NOT_FOUND));
        assert!(ended.failed.is_none(), "{ended:?}");
        assert_eq!((ended.losses, ended.events, later.join().unwrap()), (Losses::default(), 1, false));
    }
}
