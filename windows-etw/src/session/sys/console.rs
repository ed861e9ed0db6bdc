//! What the console tells a process.

use std::sync::{Mutex, OnceLock, PoisonError};

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use crate::session::Win32Error;

/// What it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Signal {
    /// Ctrl-C or Ctrl-Break.
    Interrupt,
    /// The console is closed, the user logs off, or the machine shuts down: the process is ended when the handler returns.
    Closing,
}

static HANDLER: OnceLock<fn(Signal) -> bool> = OnceLock::new();
/// Whether Windows calls it.
static IS_SET: Mutex<bool> = Mutex::new(false);

/// Has `handler` called on a thread of its own; true from it leaves the process alone. The first handler stays.
pub(in crate::session) fn on_console(handler: fn(Signal) -> bool) -> Result<(), Win32Error> {
    HANDLER.get_or_init(|| handler);
    once(&IS_SET, || {
        // SAFETY: the handler is a function of this program, there for as long as the process is.
        let set = unsafe { SetConsoleCtrlHandler(Some(call), 1) };
        if set == 0 { Err(Win32Error::last()) } else { Ok(()) }
    })
}

/// Does what is not done yet; what fails is tried again by the next one.
fn once(is_done: &Mutex<bool>, act: impl FnOnce() -> Result<(), Win32Error>) -> Result<(), Win32Error> {
    let mut is_done = is_done.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_done {
        act()?;
        *is_done = true;
    }
    Ok(())
}

/// Has Ctrl-C come to the process, which one that was started with it ignored, as by `start /b`, has inherited not to.
pub(in crate::session) fn hear_interrupts() -> Result<(), Win32Error> {
    // SAFETY: without a handler it takes a number alone.
    let set = unsafe { SetConsoleCtrlHandler(None, 0) };
    if set == 0 { Err(Win32Error::last()) } else { Ok(()) }
}

unsafe extern "system" fn call(kind: u32) -> BOOL {
    let signal = match kind {
        CTRL_C_EVENT | CTRL_BREAK_EVENT => Signal::Interrupt,
        _ => Signal::Closing,
    };
    let handled = std::panic::catch_unwind(|| HANDLER.get().is_some_and(|handler| handler(signal)));
    BOOL::from(handled.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_not_done() {
        let is_done = Mutex::new(false);
        let refused = || once(&is_done, || Err(Win32Error::ACCESS_DENIED));
        assert_eq!([refused(), refused()], [Err(Win32Error::ACCESS_DENIED); 2]);
        assert_eq!(once(&is_done, || Ok(())), Ok(()));
        assert_eq!(once(&is_done, || panic!("it is done")), Ok(()));
    }
}
