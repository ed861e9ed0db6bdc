//! For whom perf events are opened, and what this process may open.

use std::fs::File;
use std::io;

use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};

use super::Targets;
use super::cgroup::open_cgroup;
use super::shared_ring::threads_of;
use crate::doctor;
use crate::kernel::online_cpus;
use crate::sys::perf_event::{PerfEvent, Whom};

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
    /// When the cgroup can't be opened, or is none.
    pub(crate) fn of(targets: &Targets) -> io::Result<Self> {
        if targets.follows_processes() {
            return Ok(Self::Processes(targets.pids.iter().copied().chain(targets.command).collect()));
        }
        Ok(match &targets.cgroup {
            Some(folder) => Self::Cgroup(open_cgroup(folder)?),
            None => Self::Machine,
        })
    }
}

impl Scope {
    /// Adds processes to those that are chosen; nothing where they are not chosen one by one.
    pub(crate) fn add(&mut self, processes: &[u32]) {
        if let Self::Processes(pids) = self {
            pids.extend(processes);
            pids.sort_unstable();
            pids.dedup();
        }
    }

    /// How many events of a kind a CPU has for them.
    pub(crate) fn events_by_cpu(&self) -> usize {
        match self {
            Self::Machine | Self::Cgroup(_) => 1,
            Self::Processes(pids) => pids.iter().map(|&pid| threads_of(pid).len()).sum(),
        }
    }
}

/// `kernel.perf_event_paranoid`, where the kernel refuses this process the least there is, an event of its own thread: Debian's
/// kernel does at 3, Ubuntu's at 4. The kernel's own source knows no such level.
pub(crate) fn forbids_all() -> Option<i64> {
    let refused = open_for_own_thread((PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into())).err()?;
    let is_by_level = refused.raw_os_error() == Some(libc::EACCES);
    doctor::perf_event_level().filter(|&level| is_by_level && level > 2)
}

/// Opens an event, by `type` and `config`, of what this thread does outside of the kernel, to see whether that can be done.
pub(crate) fn open_for_own_thread((event_type, config): (u32, u64)) -> io::Result<PerfEvent> {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: event_type,
        config,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    let cpu = online_cpus()?.first().copied().unwrap_or(0);
    PerfEvent::open(&attr, Whom::Thread(0), cpu)
}
