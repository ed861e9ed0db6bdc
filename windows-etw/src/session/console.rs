//! Ctrl-C, Ctrl-Break, and a console or user's session that is closed. All sessions are stopped then, here and now, and CPUs are sampled as often
//! as before; what else it does to the program is the program's. Where that wants to end by itself ([`watch`]), the first Ctrl-C asks it to.
//!
//! A session is started while nothing can be stopped, and none is once all were: so there is none that is not known here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::error::{SessionError, Win32Error};
use super::intervals::Intervals;
use super::restored::{self, Changed};
use super::sys::{self, Signal};

/// Whether the program is asked to end, and ends by itself.
static WATCHED: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
/// What is done about the first Ctrl-C where it comes when all sessions are over.
static LATE: OnceLock<fn()> = OnceLock::new();
static LEFT: Mutex<Left> = Mutex::new(Left::NONE);

/// From one time that all sessions were stopped to the next. What was begun in one round is not gone on with in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round(u64);

/// What is left behind if nothing is done about it.
#[derive(Debug)]
struct Left {
    /// Names of the sessions that run.
    running: Vec<String>,
    /// What they have done to how often CPUs are sampled.
    intervals: Intervals,
    /// What is written down of that.
    changed: Option<Changed>,
    round: Round,
    /// Whether any session was started.
    has_run: bool,
    /// Whether the process ends, so that there is no other round.
    is_last: bool,
}

impl Left {
    const NONE: Self = Self {
        running: Vec::new(),
        intervals: Intervals::NONE,
        changed: None,
        round: Round(0),
        has_run: false,
        is_last: false,
    };

    /// Whether what was begun in `round` goes on.
    fn is_on(&self, round: Round) -> bool {
        self.round == round && !self.is_last
    }

    /// Whether there were sessions, and are none any more.
    fn is_over(&self) -> bool {
        self.has_run && self.running.is_empty()
    }

    /// Has `start` start a session, unless all were stopped.
    fn start<T>(
        &mut self,
        name: &str,
        round: Round,
        start: impl FnOnce() -> Result<T, Win32Error>,
    ) -> Result<T, Win32Error> {
        if !self.is_on(round) {
            return Err(Win32Error::CANCELLED);
        }
        let started = start()?;
        self.has_run = true;
        self.running.push(name.to_owned());
        Ok(started)
    }

    /// Has nothing left: each session is stopped, and then the interval is that which was set before the first of them.
    fn undo(
        &mut self,
        mut stop: impl FnMut(&str),
        interval: impl FnOnce() -> Option<u32>,
        set_interval: impl FnOnce(u32) -> Result<(), Win32Error>,
    ) {
        self.round.0 += 1;
        for name in &std::mem::take(&mut self.running) {
            stop(name);
        }
        let mut intervals = std::mem::take(&mut self.intervals);
        if intervals.are_set() {
            let _lock = restored::lock();
            let set = intervals.undo(interval()).map_or(Ok(()), set_interval);
            self.settle(set);
        }
    }

    /// What was set before is set again: what is written down of that goes, unless it failed.
    fn settle(&mut self, set: Result<(), Win32Error>) {
        match (self.changed.take(), set) {
            // There is nobody to tell the error to.
            (Some(changed), Err(_)) => changed.leave(),
            (changed, _) => drop(changed),
        }
    }

    /// Writes down that the interval is `units`, or is about to be, for whoever comes if this process is killed.
    fn keep(&mut self, units: u32) {
        if let Some(change) = self.intervals.change(units) {
            self.changed = self.changed.take().or_else(Changed::new);
            self.changed.iter().for_each(|changed| changed.keep(change));
        }
    }
}

/// Has the first Ctrl-C ask the program to end ([`is_asked_to_end`]), which is to do so by itself from now on. Where that comes when all sessions are over, nobody asks
/// any more: `late` is called, on a thread of its own, to say what goes on. It is the first caller's.
///
/// # Errors
/// When Windows does not let it be seen.
pub fn watch(late: fn()) -> Result<(), SessionError> {
    LATE.get_or_init(|| late);
    WATCHED.store(true, Ordering::Relaxed);
    let of = |cause| SessionError::of("SetConsoleCtrlHandler", "the console", cause);
    sys::hear_interrupts().map_err(of)?;
    guard()
}

/// Has sessions be stopped by Ctrl-C.
pub(super) fn guard() -> Result<(), SessionError> {
    sys::on_console(on_signal)
        .map_err(|cause| SessionError::of("SetConsoleCtrlHandler", "the console", cause))
}

/// Whether the program was asked to end.
pub fn is_asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether that is all there is to do about it: else the program's other handlers are asked and, where none takes it, the process ends.
fn on_signal(signal: Signal) -> bool {
    let is_watched = WATCHED.load(Ordering::Relaxed);
    if is_watched && !ASKED.swap(true, Ordering::Relaxed) && signal == Signal::Interrupt {
        let is_over = left().is_over();
        if let Some(late) = LATE.get().filter(|_| is_over) {
            late();
        }
        return true;
    }
    // There is nobody to tell an error to.
    let stop = |name: &str| {
        let _: Result<_, Win32Error> = sys::stop_by_name(name);
    };
    let mut left = left();
    left.is_last |= is_watched;
    left.undo(stop, || sys::interval().ok(), sys::set_interval);
    false
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The round in which something begins.
pub(super) fn round() -> Round {
    left().round
}

/// Has `start` start a session, which is there then until it is [`stopped`].
///
/// # Errors
/// Those of `start`, and [`Win32Error::CANCELLED`] where all sessions were stopped since `round` began.
pub(super) fn start<T>(
    name: &str,
    round: Round,
    start: impl FnOnce() -> Result<T, Win32Error>,
) -> Result<T, Win32Error> {
    left().start(name, round, start)
}

/// It is there no more.
pub(super) fn stopped(name: &str) {
    left().running.retain(|running| running != name);
}

/// A session begins to sample CPUs that often, for which [`interval_ends`] is to be called, also where this fails. Out: how often that is, as
/// Windows tells.
pub(super) fn interval_begins(units: u32, round: Round) -> Result<u32, SessionError> {
    let of = |call, cause| SessionError::of(call, "the interval of CPU samples", cause);
    let mut left = left();
    if !left.is_on(round) {
        return Err(SessionError::Interrupted);
    }
    let _lock = restored::lock();
    left.intervals.begin(sys::interval().ok());
    left.keep(units);
    sys::set_interval(units).map_err(|cause| of("TraceSetInformation", cause))?;
    let told = sys::interval().map_err(|cause| of("TraceQueryInformation", cause))?;
    left.intervals.set(told);
    left.keep(told);
    Ok(told)
}

/// It has ended.
pub(super) fn interval_ends(round: Round) {
    let mut left = left();
    if left.round != round {
        return;
    }
    let _lock = restored::lock();
    let set = left.intervals.end(sys::interval().ok()).map_or(Ok(()), sys::set_interval);
    if !left.intervals.are_set() {
        left.settle(set);
    }
}

/// One test at a time: all sessions of the process are stopped by some.
#[cfg(test)]
pub(super) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As before the first Ctrl-C.
#[cfg(test)]
pub(super) fn forget() {
    WATCHED.store(false, Ordering::Relaxed);
    ASKED.store(false, Ordering::Relaxed);
    left().is_last = false;
}

/// Presses Ctrl-C. Out: whether nothing else comes of it.
#[cfg(test)]
pub(super) fn interrupt() -> bool {
    on_signal(Signal::Interrupt)
}

/// Whether a session of this name is there.
#[cfg(test)]
pub(super) fn is_running(name: &str) -> bool {
    left().running.iter().any(|running| running == name)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_second_ctrl_c_stops_sessions_at_once() {
        let _turn = turn();
        watch(late).unwrap();
        let began = round();
        start("console-test", began, || Ok(())).unwrap();
        assert!(!is_asked_to_end());
        assert!(interrupt());
        assert!(is_asked_to_end());
        assert!(is_running("console-test"));
        assert!(!interrupt());
        assert!(!is_running("console-test"));
        assert!(sys::stopped_by_name().contains(&"console-test".to_owned()));
        // The process ends: nothing is started in it any more.
        for round in [began, round()] {
            let refused = start("console-test-late", round, || panic!("it is started"));
            assert_eq!(refused, Err::<(), _>(Win32Error::CANCELLED));
            assert!(matches!(interval_begins(10_000, round), Err(SessionError::Interrupted)));
        }
        forget();
    }

    static WERE_LATE: AtomicUsize = AtomicUsize::new(0);

    fn late() {
        WERE_LATE.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn the_first_ctrl_c_behind_the_last_session_says_what_goes_on() {
        let _turn = turn();
        watch(late).unwrap();
        let were_late = || WERE_LATE.swap(0, Ordering::Relaxed);
        were_late();
        start("console-test-over", round(), || Ok(())).unwrap();
        assert!(interrupt() && were_late() == 0);
        ASKED.store(false, Ordering::Relaxed);
        stopped("console-test-over");
        assert!(interrupt() && were_late() == 1);
        // The second one ends the process.
        assert!(!interrupt() && were_late() == 0);
        forget();
        let mut left = Left::NONE;
        assert!(!left.is_over(), "it is not begun");
        left.start("one", left.round, || Ok(())).unwrap();
        assert!(!left.is_over());
        left.running.clear();
        assert!(left.is_over());
    }

    #[test]
    fn ctrl_c_stops_sessions_of_a_program_that_does_not_watch_it_and_leaves_the_rest_to_that() {
        let _turn = turn();
        let began = round();
        start("console-test-own", began, || Ok(())).unwrap();
        assert!(!interrupt());
        assert!(!is_running("console-test-own") && !is_asked_to_end());
        assert!(sys::stopped_by_name().contains(&"console-test-own".to_owned()));
        // What was being started is not; but the program may go on, and start others.
        assert!(start("console-test-own", began, || Ok(())).is_err());
        start("console-test-own", round(), || Ok(())).unwrap();
        stopped("console-test-own");
    }

    #[test]
    fn a_session_that_is_refused_is_none_to_be_stopped() {
        let mut left = Left::NONE;
        let refused = left.start("somebody's", left.round, || Err::<(), _>(Win32Error::ALREADY_EXISTS));
        assert_eq!(refused, Err(Win32Error::ALREADY_EXISTS));
        left.undo(|name| panic!("{name} is stopped"), || None, |_| panic!("none is set"));
    }

    #[test]
    fn the_interval_is_set_to_what_it_was_before_all_when_sessions_are_stopped() {
        let mut intervals = Intervals::default();
        for (before, units) in [(10_000, 2500), (2500, 5000)] {
            intervals.begin(Some(before));
            intervals.set(units);
        }
        let mut left = Left { running: vec!["one".into(), "two".into()], intervals, ..Left::NONE };
        let done = std::cell::RefCell::new(Vec::new());
        left.undo(
            |name| done.borrow_mut().push(name.to_owned()),
            || Some(5000),
            |units| {
                done.borrow_mut().push(units.to_string());
                Ok(())
            },
        );
        assert_eq!(*done.borrow(), ["one", "two", "10000"]);
        left.undo(|_| panic!("there is none"), || panic!("it is back"), |_| panic!("it is back"));
    }

    #[test]
    fn what_is_written_down_stays_where_the_interval_can_not_be_set_back() {
        let _turn = turn();
        let own = std::process::id().to_string();
        let is_kept = || sys::kept().unwrap().iter().any(|(name, _)| *name == own);
        for (answer, stays) in [(Ok(()), false), (Err(Win32Error::ACCESS_DENIED), true)] {
            let mut left = Left::NONE;
            left.intervals.begin(Some(10_000));
            left.keep(5000);
            left.intervals.set(5000);
            assert!(is_kept());
            left.undo(|_| {}, || Some(5000), |_| answer);
            assert_eq!((is_kept(), left.changed.is_some()), (stays, false));
        }
        sys::forget(&own).unwrap();
    }
}
