//! For whom perf events are opened, and what this process may open.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;

use perf_event_open_sys::bindings::perf_event_attr;

use super::Targets;
use crate::doctor;
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

    /// Opens an event on a CPU for all of them.
    pub(crate) fn open(&self, attr: &perf_event_attr, cpu: u32) -> io::Result<Vec<PerfEvent>> {
        match self {
            Self::Machine => Ok(vec![PerfEvent::open(attr, Whom::Anyone, cpu)?]),
            Self::Cgroup(folder) => Ok(vec![PerfEvent::open(attr, Whom::Cgroup(folder.as_fd()), cpu)?]),
            Self::Processes(pids) => {
                let mut events = Vec::new();
                for &pid in pids {
                    events.extend(open_for_process(attr, pid, cpu)?);
                }
                if events.is_empty() { Err(rustix::io::Errno::SRCH.into()) } else { Ok(events) }
            }
        }
    }
}

/// Opens an event on a CPU for all threads of a process and what they make from now on: none of a process that has ended.
pub(crate) fn open_for_process(attr: &perf_event_attr, pid: u32, cpu: u32) -> io::Result<Vec<PerfEvent>> {
    let mut attr = *attr;
    attr.set_inherit(1);
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let threads = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let opened = threads.filter_map(|thread| match PerfEvent::open(&attr, Whom::Thread(thread), cpu) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        result => Some(result),
    });
    opened.collect()
}
