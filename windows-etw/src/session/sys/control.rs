//! Sessions are started, asked, flushed and stopped.

#![cfg_attr(
    test,
    allow(clippy::missing_const_for_thread_local, reason = "it is; for Windows that is not seen")
)]

use std::path::PathBuf;

use windows_sys::Win32::System::Diagnostics::Etw::{
    CONTROLTRACE_HANDLE, ControlTraceW, EVENT_TRACE_CONTROL, EVENT_TRACE_CONTROL_FLUSH,
    EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP, StartTraceW,
};

use super::properties::Properties;
use super::wide;
use crate::session::{Losses, Win32Error};

/// A session that was started.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Handle(pub(super) u64);

impl Handle {
    /// That of no session.
    #[cfg(test)]
    pub(in crate::session) const NONE: Self = Self(0);

    pub(super) const fn windows(self) -> CONTROLTRACE_HANDLE {
        CONTROLTRACE_HANDLE { Value: self.0 }
    }
}

/// What a session is to do.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) enum Control {
    /// Tell what it lost.
    Query,
    /// Hand over what its buffers have.
    Flush,
    /// End, after it has handed that over.
    Stop,
}

impl Control {
    const fn code(self) -> EVENT_TRACE_CONTROL {
        match self {
            Self::Query => EVENT_TRACE_CONTROL_QUERY,
            Self::Flush => EVENT_TRACE_CONTROL_FLUSH,
            Self::Stop => EVENT_TRACE_CONTROL_STOP,
        }
    }
}

/// Starts a session of this name.
pub(in crate::session) fn start(name: &str, properties: &mut Properties) -> Result<Handle, Win32Error> {
    let (name, mut handle) = (wide(name), CONTROLTRACE_HANDLE::default());
    // SAFETY: the name ends with a zero; the properties are as large as they say, with room for both names where they say that it
    // is, and the handle is a variable; all outlive the call.
    let code = unsafe { StartTraceW(&raw mut handle, name.as_ptr(), properties.pointer()) };
    Win32Error::check(code).map(|()| Handle(handle.Value))
}

/// Has a session of this process do something. What it lost up to then is returned.
pub(in crate::session) fn control(handle: Handle, what: Control) -> Result<Losses, Win32Error> {
    let mut properties = Properties::empty();
    // SAFETY: no name is given, so the handle counts, and a wrong one is an error; the properties are as for StartTraceW.
    let code =
        unsafe { ControlTraceW(handle.windows(), std::ptr::null(), properties.pointer(), what.code()) };
    #[cfg(test)]
    let (code, told) = made_up(what, code, properties.losses());
    #[cfg(not(test))]
    let told = properties.losses();
    Win32Error::check(code).map(|()| told)
}

/// Stops a session that this process need not have started.
pub(in crate::session) fn stop_by_name(name: &str) -> Result<(), Win32Error> {
    #[cfg(test)]
    STOPPED.with_borrow_mut(|stopped| stopped.push(name.to_owned()));
    control_by_name(name, Control::Stop).map(drop)
}

/// The file that a session writes, which this process need not have started; none where it writes none.
pub(in crate::session) fn log_file(name: &str) -> Result<Option<PathBuf>, Win32Error> {
    Ok(control_by_name(name, Control::Query)?.file())
}

/// The thread that Windows has for a session, which this process need not have started: no other one that is there has its number.
pub(in crate::session) fn logger_thread(name: &str) -> Result<u32, Win32Error> {
    Ok(control_by_name(name, Control::Query)?.thread())
}

fn control_by_name(name: &str, what: Control) -> Result<Properties, Win32Error> {
    let (name, mut properties) = (wide(name), Properties::empty());
    // SAFETY: the name ends with a zero, and no handle is given, so it counts; the properties are as for StartTraceW.
    let code =
        unsafe { ControlTraceW(Handle(0).windows(), name.as_ptr(), properties.pointer(), what.code()) };
    Win32Error::check(code).map(|()| properties)
}

#[cfg(test)]
thread_local! {
    static STOPPED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
    static ANSWER: std::cell::Cell<Option<(u32, Losses)>> = const { std::cell::Cell::new(None) };
}

/// What sessions of this thread answer that are to stop, and what they say that they lost, in place of Windows' own answer. One that is not there
/// says so to whoever asks.
#[cfg(test)]
pub(in crate::session) fn let_sessions_answer(answer: Option<(u32, Losses)>) {
    ANSWER.set(answer);
}

#[cfg(test)]
fn made_up(what: Control, code: u32, told: Losses) -> (u32, Losses) {
    match (ANSWER.get(), what) {
        (Some((answer, losses)), Control::Stop) => (answer, losses),
        (Some((answer, losses)), Control::Query) if answer == Win32Error::WMI_INSTANCE_NOT_FOUND.0 => {
            (answer, losses)
        }
        (Some((_, losses)), Control::Query) => (code, losses),
        _ => (code, told),
    }
}

/// Those that this thread had stopped by name.
#[cfg(test)]
pub(in crate::session) fn stopped_by_name() -> Vec<String> {
    STOPPED.with_borrow(Clone::clone)
}
