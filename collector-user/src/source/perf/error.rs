//! Why plain perf events can't record.

use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use crate::source::remedy::remedy;
use crate::source::{EventIndex, EventRequest};

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
    /// The rights are missing for anything, one's own processes too.
    #[error(
        "kernel.perf_event_paranoid is {level}, and this kernel then leaves perf events to root and CAP_PERFMON: run it with \
         sudo, or allow them for your own processes with `sudo sysctl kernel.perf_event_paranoid=2`"
    )]
    Forbidden {
        /// Its value.
        level: i64,
    },
    /// Too few files may be open.
    #[error(
        "{threads} threads on {cpus} CPUs need {needed} open files, and {limit} may be open: raise the limit (`ulimit -n`, its \
         hard one with `ulimit -Hn` as root), name fewer processes or events, or record the whole machine"
    )]
    OpenFiles {
        /// Threads of the processes to record.
        threads: usize,
        /// CPUs that are online.
        cpus: usize,
        /// Files in all.
        needed: u64,
        /// As many may be open.
        limit: u64,
    },
    /// More samples a second than the kernel takes for events of the processor.
    #[error(
        "-F {frequency} is more than the kernel samples events of the processor, {limit} times a second: give a lower -F, or \
         raise the limit with `sudo sysctl kernel.perf_event_max_sample_rate={frequency}`"
    )]
    Frequency {
        /// As asked for.
        frequency: u32,
        /// `kernel.perf_event_max_sample_rate`.
        limit: i64,
    },
    /// The rights are missing for tracepoints.
    #[error("tracepoints need root, CAP_PERFMON or kernel.perf_event_paranoid=-1: run it with sudo")]
    Tracepoints,
    /// There is no unit that counts an event.
    #[error(
        "{name} is not counted here: the processor's unit for it is absent, as in most virtual machines; \
         record one of the kernel's own, as page-faults"
    )]
    NoUnit {
        /// Which one.
        event: EventIndex,
        /// What it is called, as far as its trigger tells.
        name: String,
    },
    /// What happens in the kernel may not be recorded.
    #[error(
        "{name} happen in the kernel, which this user may not record: run it with sudo, or leave them out"
    )]
    OfKernel {
        /// Which one.
        event: EventIndex,
        /// What it is called, as far as its trigger tells.
        name: String,
    },
    /// The kernel refuses an event to everybody.
    #[error("{name} can't be recorded: the kernel refuses it: {source}; {}", remedy(source))]
    Event {
        /// Which one.
        event: EventIndex,
        /// What it is called, as far as its trigger tells.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Two ways of choosing processes at once.
    #[error(
        "--cgroup can't be joined with -p or a command by plain perf events, which record all that -e names: leave one out, or \
         use --backend ebpf without -e"
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
    #[error(
        "this kernel has no perf events: boot one that was built with CONFIG_PERF_EVENTS=y, and leave sandboxes that hide them"
    )]
    NoPerfEvents,
    /// A CPU's events could not be opened.
    #[error("the events of CPU {cpu} could not be opened: {source}; {}", remedy(source))]
    Open {
        /// The CPU.
        cpu: u32,
        /// The system's reason.
        source: io::Error,
    },
}

impl PerfError {
    /// Why a process's events may not be opened. `forbids_all` is `kernel.perf_event_paranoid` of a kernel that refuses them
    /// for this process itself, too.
    pub(crate) fn refused(process: u32, forbids_all: Option<i64>) -> Self {
        match forbids_all {
            Some(level) => Self::Forbidden { level },
            None => Self::OthersProcess(process),
        }
    }

    /// Whether as many events as these may be open.
    ///
    /// # Errors
    /// When they may not.
    pub(crate) fn check_open_files(threads: usize, cpus: usize, events: usize) -> Result<(), Self> {
        /// Beside the events.
        const OTHERS: usize = 64;
        let needed = (threads * cpus * events + OTHERS) as u64;
        match getrlimit(Resource::Nofile).current {
            Some(limit) if limit < needed => Err(Self::OpenFiles { threads, cpus, needed, limit }),
            _ => Ok(()),
        }
    }

    /// Whether the kernel takes a frequency for events of the processor. The sampling clock is asked for by its period, which
    /// no setting bounds.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check_frequency(
        requests: &[EventRequest],
        frequency: u32,
        limit: Option<i64>,
    ) -> Result<(), Self> {
        let is_asked_for = requests.iter().any(|request| request.trigger.is_of_processor());
        match limit.filter(|&limit| is_asked_for && i64::from(frequency) > limit) {
            Some(limit) => Err(Self::Frequency { frequency, limit }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{EventIndex, Trigger};

    #[test]
    fn a_kernel_that_forbids_all_blames_no_process() {
        let says = PerfError::refused(7, Some(4)).to_string();
        assert!(says.contains("kernel.perf_event_paranoid is 4") && says.contains("CAP_PERFMON"), "{says}");
        assert!(PerfError::refused(7, None).to_string().contains("process 7"));
    }

    /// What helps, in the words of each error.
    fn helps(error: &PerfError) -> &'static str {
        match error {
            PerfError::WholeMachine => {
                "run it with sudo, outside of user namespaces, or record your own processes with `-p PID`"
            }
            PerfError::OthersProcess(_) | PerfError::Tracepoints => "run it with sudo",
            PerfError::Forbidden { .. } => "sudo sysctl kernel.perf_event_paranoid=2",
            PerfError::OpenFiles { .. } => "raise the limit (`ulimit -n`",
            PerfError::Frequency { .. } => "give a lower -F",
            PerfError::NoUnit { .. } => "record one of the kernel's own",
            PerfError::OfKernel { .. } => "run it with sudo, or leave them out",
            PerfError::Event { .. } => "another tool has it: end that",
            PerfError::CgroupAndProcesses => "leave one out",
            PerfError::Cgroup { .. } => "name a folder of the cgroup v2 hierarchy",
            PerfError::NoPerfEvents => "boot one that was built with CONFIG_PERF_EVENTS=y",
            PerfError::Open { .. } => "end what takes memory",
        }
    }

    #[test]
    fn each_error_says_what_helps_in_one_line() {
        let (event, name) = (EventIndex(1), || "r01c2".to_owned());
        let system = io::Error::from_raw_os_error;
        let all = [
            PerfError::WholeMachine,
            PerfError::OthersProcess(7),
            PerfError::Tracepoints,
            PerfError::Forbidden { level: 4 },
            PerfError::OpenFiles { threads: 1, cpus: 2, needed: 66, limit: 10 },
            PerfError::Frequency { frequency: 997, limit: 500 },
            PerfError::NoUnit { event, name: name() },
            PerfError::OfKernel { event, name: name() },
            PerfError::Event { event, name: name(), source: system(libc::EBUSY) },
            PerfError::CgroupAndProcesses,
            PerfError::Cgroup { path: "/x".into(), source: system(libc::ENOENT) },
            PerfError::NoPerfEvents,
            PerfError::Open { cpu: 3, source: system(libc::ENOMEM) },
        ];
        for error in all {
            let says = error.to_string();
            assert!(says.contains(helps(&error)) && !says.contains('\n'), "{says}");
        }
    }

    #[test]
    fn a_frequency_that_the_kernel_does_not_take() {
        let request = |trigger| EventRequest { stack: true, ..EventRequest::new(EventIndex(1), trigger) };
        let check = |trigger, limit| PerfError::check_frequency(&[request(trigger)], 997, limit);
        let says = check(Trigger::Hardware(0), Some(500)).unwrap_err().to_string();
        assert!(says.contains("-F 997") && says.contains("500 times a second"), "{says}");
        for fine in [check(Trigger::Hardware(0), Some(997)), check(Trigger::Hardware(0), None)] {
            assert!(fine.is_ok(), "{fine:?}");
        }
        assert!(check(Trigger::Software(2), Some(500)).is_ok(), "each is recorded");
    }
}
