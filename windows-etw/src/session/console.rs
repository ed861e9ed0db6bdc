//! Ctrl-C, Ctrl-Break, and a console or user's session that is closed. The first Ctrl-C asks the program to end; a second one, and
//! the closing of the console, leave no time for that: then all sessions are stopped here and now.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::{SessionError, Win32Error};
use super::sys::{self, Signal};

static ASKED: AtomicBool = AtomicBool::new(false);
/// Names of the sessions that run.
static RUNNING: Mutex<Vec<String>> = Mutex::new(Vec::new());

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
    for name in std::mem::take(&mut *running()) {
        // There is nobody to tell an error to: the process ends.
        let _: Result<_, Win32Error> = sys::stop_by_name(&name);
    }
    false
}

fn running() -> std::sync::MutexGuard<'static, Vec<String>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session is there.
pub(super) fn started(name: &str) {
    running().push(name.to_owned());
}

/// It is there no more.
pub(super) fn stopped(name: &str) {
    running().retain(|running| running != name);
}

/// Whether a session of this name is there.
#[cfg(test)]
pub(super) fn is_running(name: &str) -> bool {
    running().iter().any(|running| running == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_ctrl_c_stops_sessions_at_once() {
        watch().unwrap();
        started("console-test");
        assert!(!is_asked_to_end());
        assert!(on_signal(Signal::Interrupt));
        assert!(is_asked_to_end());
        assert!(is_running("console-test"));
        assert!(!on_signal(Signal::Interrupt));
        assert!(!is_running("console-test"));
    }
}
