//! What this machine allows, and for each gap the one command that closes it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::examine;
#[cfg(all(target_os = "linux", feature = "ebpf"))]
pub(crate) use linux::{has_proc, may_record};
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    in_initial_pid_namespace, locked_kib_by_cpu, may_lock, may_observe, most_samples_a_second,
    perf_event_level,
};
#[cfg(windows)]
pub use windows::examine;

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Recording works, but with less than it could give.
    Limited {
        /// What is missing then.
        effect: &'static str,
        /// The command that closes the gap, or what must be done where no command does.
        fix: String,
    },
    /// Recording does not work.
    Bad {
        /// The command that closes the gap, or what must be done where no command does.
        fix: String,
    },
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What that means.
    pub verdict: Verdict,
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Good }
}

fn bad(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Bad { fix: fix.into() } }
}

fn limited(
    name: &'static str,
    found: impl Into<String>,
    effect: &'static str,
    fix: impl Into<String>,
) -> Check {
    Check { name, found: found.into(), verdict: Verdict::Limited { effect, fix: fix.into() } }
}
