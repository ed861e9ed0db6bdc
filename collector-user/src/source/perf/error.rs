//! Why plain perf events can't record.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why plain perf events can't record.
#[derive(Debug, Error)]
pub enum PerfError {
    /// The rights are missing for what others do.
    #[error(
        "recording the whole machine, or a cgroup, needs root, CAP_PERFMON or kernel.perf_event_paranoid=0: run it with \
         sudo, outside of user namespaces, or record your own processes with `-p PID` or `-- COMMAND`"
    )]
    WholeMachine,
    /// The rights are missing for a process.
    #[error("process {0} can't be recorded: it is another user's, or has more rights; run it with sudo")]
    OthersProcess(u32),
    /// The rights are missing for tracepoints.
    #[error("tracepoints need root, CAP_PERFMON or kernel.perf_event_paranoid=-1: run it with sudo")]
    Tracepoints,
    /// There is no unit that counts an event.
    #[error(
        "{event} is not counted here: the processor's unit for it is absent, as in most virtual machines; \
         record one of the kernel's own, as page-faults"
    )]
    NoUnit {
        /// The event.
        event: &'static str,
    },
    /// Two ways of choosing processes at once.
    #[error(
        "--cgroup can't be joined with -p or a command by plain perf events: leave one out, or use --backend ebpf"
    )]
    CgroupAndProcesses,
    /// The cgroup can't be opened, or is none.
    #[error("{} is no cgroup to record: {source}; name a folder of the cgroup v2 hierarchy, as below /sys/fs/cgroup", path.display())]
    Cgroup {
        /// The path as given.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel has no perf events.
    #[error("this kernel has no perf events (CONFIG_PERF_EVENTS)")]
    NoPerfEvents,
    /// A CPU's events could not be opened.
    #[error("the events of CPU {cpu} could not be opened: {source}")]
    Open {
        /// The CPU.
        cpu: u32,
        /// The system's reason.
        source: io::Error,
    },
}
