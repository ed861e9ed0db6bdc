//! Whose `NT Kernel Logger` is, the one session that all programs share: a process that starts it writes that down, beyond its own end and not that of
//! Windows, so that the next one stops it if that process was killed. A mutex says whether it goes on.
//!
//! In: what is written down, and the thread that Windows has for the session. That tells it from one that somebody else has started since.

use super::error::Win32Error;
use super::start::NT_KERNEL_LOGGER;
use super::sys::{self, Mutex};

/// The mutex of the process that has started it.
const MUTEX: &str = "Global\\collector-etw-kernel-logger";
/// Under which name it is written down; the thread's number, the lower byte first.
const KEPT: &str = "kernel-logger";

/// That this process has started it, until it is dropped.
#[derive(Debug)]
pub(super) struct Started {
    /// Whether what is written down stays.
    is_left: bool,
    _mutex: Mutex,
}

impl Started {
    /// It was started just now. None where that can't be written down: it remains if the process is killed.
    pub(super) fn now() -> Option<Self> {
        let mutex = sys::create_mutex(MUTEX).ok().flatten()?;
        let thread = sys::logger_thread(NT_KERNEL_LOGGER).ok()?;
        sys::keep(KEPT, &thread.to_le_bytes()).ok()?;
        Some(Self { is_left: false, _mutex: mutex })
    }

    /// It could not be stopped: it is as if the process was killed.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_left {
            // What remains is of a session that is gone, which the next one sees.
            let _: Result<(), Win32Error> = sys::forget(KEPT);
        }
    }
}

/// Stops it if a process of ours that was killed has started it.
pub(super) fn stop_abandoned() {
    let Some(kept) = kept() else { return };
    // As long as this is held, nobody else of ours starts it.
    let Ok(Some(_free)) = sys::create_mutex(MUTEX) else { return };
    if sys::logger_thread(NT_KERNEL_LOGGER) == Ok(kept) && sys::stop_by_name(NT_KERNEL_LOGGER).is_err() {
        return;
    }
    let _: Result<(), Win32Error> = sys::forget(KEPT);
}

/// The thread that is written down.
fn kept() -> Option<u32> {
    let all = sys::kept().ok()?;
    let (_, bytes) = all.iter().find(|(name, _)| name == KEPT)?;
    bytes.as_slice().try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped() -> usize {
        sys::stopped_by_name().iter().filter(|name| *name == NT_KERNEL_LOGGER).count()
    }

    /// Wine has no thread for it, and says so by 0.
    #[test]
    fn what_a_process_that_was_killed_has_started_is_stopped_and_nothing_else() {
        if std::env::var_os("COLLECTOR_WINE").is_none() {
            return;
        }
        let _turn = crate::session::console::turn();
        stop_abandoned();
        assert_eq!((stopped(), kept()), (0, None), "nothing is written down");
        let started = Started::now().unwrap();
        assert!(kept().is_some() && Started::now().is_none());
        stop_abandoned();
        assert_eq!((stopped(), kept().is_some()), (0, true), "it goes on");
        drop(started);
        assert_eq!(kept(), None);
        // Another program has started one since.
        sys::keep(KEPT, &7_u32.to_le_bytes()).unwrap();
        stop_abandoned();
        assert_eq!((stopped(), kept()), (0, None));
        Started::now().unwrap().leave();
        stop_abandoned();
        assert_eq!((stopped(), kept()), (1, None));
    }
}
