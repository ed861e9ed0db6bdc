//! What the console tells a process.

use std::sync::OnceLock;

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

/// Has `handler` called on a thread of its own; true from it leaves the process alone. The first handler stays.
pub(in crate::session) fn on_console(handler: fn(Signal) -> bool) -> Result<(), Win32Error> {
    if HANDLER.set(handler).is_err() {
        return Ok(());
    }
    // SAFETY: the handler is a function of this program, there for as long as the process is.
    let set = unsafe { SetConsoleCtrlHandler(Some(call), 1) };
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
