//! Ctrl-C, Ctrl-Break, and a console or user's session that is closed. The first Ctrl-C asks the program to end; a second one, and
//! the closing of the console, leave no time for that: then all sessions are stopped here and now, and CPUs are sampled as often as before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{SessionError, Win32Error};
use super::intervals::Intervals;
use super::sys::{self, Signal};

static ASKED: AtomicBool = AtomicBool::new(false);
static LEFT: Mutex<Left> = Mutex::new(Left { running: Vec::new(), intervals: Intervals::NONE });

/// What is left behind if nothing is done about it.
#[derive(Debug, Default)]
struct Left {
    /// Names of the sessions that run.
    running: Vec<String>,
    /// What they have done to how often CPUs are sampled.
    intervals: Intervals,
}

impl Left {
    /// Has nothing left: each session is stopped, and then the interval is that which was set before the first of them.
    fn undo(
        &mut self,
        mut stop: impl FnMut(&str),
        interval: impl FnOnce() -> Option<u32>,
        set_interval: impl FnOnce(u32),
    ) {
        let Self { running, mut intervals } = std::mem::take(self);
        for name in &running {
            stop(name);
        }
        if intervals.are_set()
            && let Some(before_all) = intervals.undo(interval())
        {
            set_interval(before_all);
        }
    }
}

/// Has this process take notice from now on.
pub fn watch() -> Result<(), SessionError> {
    sys::on_console(on_signal)
        .map_err(|cause| SessionError::of("SetConsoleCtrlHandler", "the console", cause))
}

/// Whether the program was asked to end.
pub fn is_asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether that is all there is to do about it: else the process ends when this returns.
fn on_signal(signal: Signal) -> bool {
    let first = !ASKED.swap(true, Ordering::Relaxed);
    if signal == Signal::Interrupt && first {
        return true;
    }
    // There is nobody to tell an error to: the process ends.
    let stop = |name: &str| {
        let _: Result<_, Win32Error> = sys::stop_by_name(name);
    };
    let set_interval = |units| {
        let _: Result<_, Win32Error> = sys::set_interval(units);
    };
    left().undo(stop, || sys::interval().ok(), set_interval);
    false
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session is there.
pub(super) fn started(name: &str) {
    left().running.push(name.to_owned());
}

/// It is there no more.
pub(super) fn stopped(name: &str) {
    left().running.retain(|running| running != name);
}

/// A session begins to sample CPUs that often, for which [`interval_ends`] is to be called, also where this fails. Out: how often that is, as
/// Windows tells.
pub(super) fn interval_begins(units: u32) -> Result<u32, SessionError> {
    let of = |call, cause| SessionError::of(call, "the interval of CPU samples", cause);
    let intervals = &mut left().intervals;
    intervals.begin(sys::interval().ok());
    sys::set_interval(units).map_err(|cause| of("TraceSetInformation", cause))?;
    let told = sys::interval().map_err(|cause| of("TraceQueryInformation", cause))?;
    intervals.set(told);
    Ok(told)
}

/// It has ended.
pub(super) fn interval_ends() {
    let intervals = &mut left().intervals;
    if let Some(units) = intervals.end(sys::interval().ok()) {
        // There is nobody to tell an error to.
        let _: Result<(), Win32Error> = sys::set_interval(units);
    }
}

/// One test at a time: all sessions of the process are stopped by some.
#[cfg(test)]
pub(super) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a session of this name is there.
#[cfg(test)]
pub(super) fn is_running(name: &str) -> bool {
    left().running.iter().any(|running| running == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_ctrl_c_stops_sessions_at_once() {
        let _turn = turn();
        watch().unwrap();
        started("console-test");
        assert!(!is_asked_to_end());
        assert!(on_signal(Signal::Interrupt));
        assert!(is_asked_to_end());
        assert!(is_running("console-test"));
        assert!(!on_signal(Signal::Interrupt));
        assert!(!is_running("console-test"));
        assert!(sys::stopped_by_name().contains(&"console-test".to_owned()));
    }

    #[test]
    fn the_interval_is_set_to_what_it_was_before_all_when_sessions_are_stopped() {
        let mut intervals = Intervals::default();
        for (before, units) in [(10_000, 2500), (2500, 5000)] {
            intervals.begin(Some(before));
            intervals.set(units);
        }
        let mut left = Left { running: vec!["one".into(), "two".into()], intervals };
        let done = std::cell::RefCell::new(Vec::new());
        left.undo(
            |name| done.borrow_mut().push(name.to_owned()),
            || Some(5000),
            |units| done.borrow_mut().push(units.to_string()),
        );
        assert_eq!(*done.borrow(), ["one", "two", "10000"]);
        left.undo(|_| panic!("there is none"), || panic!("it is back"), |_| panic!("it is back"));
    }
}
