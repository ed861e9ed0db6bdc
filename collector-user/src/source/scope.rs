//! For whom perf events are opened, and what this process may open.

use std::fs::File;
use std::io;

use super::Targets;
use crate::doctor;

/// What the kernel lets this process ask of perf events: by `CAP_PERFMON`, else by `kernel.perf_event_paranoid`
/// (`Documentation/admin-guide/perf-security.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a right of its own")]
pub struct Rights {
    /// All processes, on any CPU.
    pub machine: bool,
    /// What happens in the kernel.
    pub kernel: bool,
    /// The data of tracepoints.
    pub tracepoints: bool,
    /// As much memory for rings as is wanted (`CAP_IPC_LOCK`).
    pub memory: bool,
}

impl Rights {
    /// All.
    pub(crate) const ALL: Self = Self { machine: true, kernel: true, tracepoints: true, memory: true };

    /// This process's.
    pub fn of_this_process() -> Self {
        let level = doctor::perf_event_level().unwrap_or(i64::MAX);
        let privileged = doctor::may_observe();
        Self {
            machine: privileged || level < 1,
            kernel: privileged || level < 2,
            tracepoints: privileged || level < 0,
            memory: doctor::may_lock() || level < 0,
        }
    }
}

/// For whom events are opened.
#[derive(Debug)]
pub(crate) enum Scope {
    /// All processes.
    Machine,
    /// Some processes, and what they make from now on.
    Processes(Vec<u32>),
    /// The processes of a cgroup.
    Cgroup(File),
}

impl Scope {
    /// What the targets need at least.
    ///
    /// # Errors
    /// When the cgroup can't be opened.
    pub(crate) fn of(targets: &Targets) -> io::Result<Self> {
        if targets.follows_processes() {
            return Ok(Self::Processes(targets.pids.iter().copied().chain(targets.command).collect()));
        }
        Ok(match &targets.cgroup {
            Some(folder) => Self::Cgroup(File::open(folder)?),
            None => Self::Machine,
        })
    }
}
