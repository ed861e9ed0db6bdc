//! Why there is no session.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::plan::HeapPlan;

/// A number of `winerror.h`, shown with Windows' own text for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Win32Error(pub u32);

impl Win32Error {
    pub(super) const ACCESS_DENIED: Self = Self(5);
    pub(super) const INVALID_PARAMETER: Self = Self(87);
    pub(super) const INSUFFICIENT_BUFFER: Self = Self(122);
    pub(super) const ALREADY_EXISTS: Self = Self(183);
    pub(super) const CANCELLED: Self = Self(1223);
    pub(super) const NOT_ALL_ASSIGNED: Self = Self(1300);
    pub(super) const NO_SYSTEM_RESOURCES: Self = Self(1450);
    pub(super) const TIMEOUT: Self = Self(1460);
    pub(super) const WMI_INSTANCE_NOT_FOUND: Self = Self(4201);

    /// Nothing for 0.
    pub(super) fn check(code: u32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// What the thread's last call that failed has left.
    pub(super) fn last() -> Self {
        Self(io::Error::last_os_error().raw_os_error().unwrap_or(0).cast_unsigned())
    }
}

impl fmt::Display for Win32Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", io::Error::from_raw_os_error(self.0.cast_signed()))
    }
}

/// A session that could not be started, asked or stopped.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The process may not.
    #[error(
        "{call} was refused: Windows lets administrators alone record what the whole machine does; run it from a terminal that was \
         opened by \"Run as administrator\""
    )]
    NotAdministrator {
        /// The function that was refused.
        call: &'static str,
    },
    /// An administrator whose rights are cut down.
    #[error(
        "this process has not the privilege SeSystemProfilePrivilege, without which CPUs can't be sampled: an administrator grants \
         it in secpol.msc, Local Policies, User Rights Assignment, \"Profile system performance\""
    )]
    NoProfilePrivilege,
    /// Another collector is at work.
    #[error("a session `{name}` is recording for another process; stop that, or choose another name")]
    Busy {
        /// Its name.
        name: String,
    },
    /// The system loggers that programs may name are taken, and `NT Kernel Logger`, which all programs share, too.
    #[error(
        "all of Windows' sessions for the kernel are in use; `logman query -ets` lists them, and `logman stop \"NT Kernel Logger\" -ets` \
         stops one"
    )]
    KernelLoggersInUse,
    /// Ctrl-C has stopped all sessions meanwhile.
    #[error("nothing is recorded: Ctrl-C was pressed, or the console closed")]
    Interrupted,
    /// A name that can't be a session's.
    #[error("`{name}` is no name for a session: 1 to 200 characters, no zero, no backslash")]
    Name {
        /// It.
        name: String,
    },
    /// A place that Windows does not take.
    #[error("{path} is no place for an .etl file: 1,000 characters at most, no zero")]
    Path {
        /// It.
        path: String,
    },
    /// Too many processes for the session that blocks of heaps come from.
    #[error(
        "blocks of heaps can be recorded of {} processes at most, and these are {count}: name fewer by -p, or record without memory_tracking",
        HeapPlan::MOST
    )]
    Processes {
        /// How many there are.
        count: usize,
    },
    /// Windows says no.
    #[error("{call} failed for {of}: {cause}")]
    Call {
        /// The function.
        call: &'static str,
        /// The session or provider.
        of: String,
        /// Windows' reason.
        cause: Win32Error,
    },
    /// A session that goes on, though it was to stop.
    #[error(
        "the session `{name}` can't be stopped: {cause}; it goes on until it is, by `logman stop \"{name}\" -ets`, or the machine restarts"
    )]
    Unstopped {
        /// Its name.
        name: String,
        /// Windows' reason.
        cause: Win32Error,
    },
    /// The thread that reads the events can't be started.
    #[error("no thread to read the session `{name}`")]
    Thread {
        /// The session.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// What takes the events has panicked.
    #[error("what takes the events of `{name}` has panicked: {message}")]
    SinkPanicked {
        /// The session.
        name: String,
        /// What it said.
        message: String,
    },
}

impl SessionError {
    /// Whether there is no session of that name any more: somebody else has stopped it.
    pub fn is_of_no_session(&self) -> bool {
        matches!(self, Self::Call { cause: Win32Error::WMI_INSTANCE_NOT_FOUND, .. })
    }

    /// What `call` says of `of`.
    pub(super) fn of(call: &'static str, of: &str, cause: Win32Error) -> Self {
        match cause {
            Win32Error::ACCESS_DENIED => Self::NotAdministrator { call },
            _ => Self::Call { call, of: of.to_owned(), cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_remedy_and_others_the_cause() {
        let refused = SessionError::of("StartTraceW", "Collector", Win32Error(5)).to_string();
        assert!(refused.contains("StartTraceW was refused"), "{refused}");
        assert!(refused.contains("\"Run as administrator\""), "{refused}");
        let other = SessionError::of("StartTraceW", "Collector", Win32Error(1450)).to_string();
        assert!(other.starts_with("StartTraceW failed for Collector: "), "{other}");
        assert!(other.contains("1450"), "{other}");
        let goes_on = SessionError::Unstopped { name: "Collector-heap".to_owned(), cause: Win32Error(5) };
        let goes_on = goes_on.to_string();
        assert!(goes_on.starts_with("the session `Collector-heap` can't be stopped: "), "{goes_on}");
        assert!(goes_on.contains("`logman stop \"Collector-heap\" -ets`"), "{goes_on}");
    }
}
