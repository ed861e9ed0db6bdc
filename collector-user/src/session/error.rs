//! Why a recording could not be made.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use collector_common::ids::{Pid, Tid};
use collector_common::perf::file::FileWriteError;
use thiserror::Error;

use crate::journal::JournalError;
use crate::source::bpf_map::BpfMapError;
#[cfg(feature = "ebpf")]
use crate::source::ebpf::LoadError;
use crate::source::perf::PerfError;

/// Why a recording could not be made.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The eBPF programs do not run here.
    #[cfg(feature = "ebpf")]
    #[error(transparent)]
    Load(#[from] LoadError),
    /// This build can't load programs.
    #[cfg(not(feature = "ebpf"))]
    #[error("this build can't load eBPF programs: build it with the feature `ebpf`, or use --backend perf")]
    NoEbpf,
    /// What programs in the kernel do was asked for where there are none.
    #[error("{scenario} is measured by programs in the kernel, and {why}")]
    NoPrograms {
        /// The scenario that was asked for.
        scenario: &'static str,
        /// Why there are none, and what helps.
        why: &'static str,
    },
    /// Plain perf events can't record this.
    #[error(transparent)]
    Perf(#[from] PerfError),
    /// The kernel refuses an event that is there.
    #[error(
        "{name} can't be recorded: the kernel has it, and refuses it with stacks ({source}): leave it out"
    )]
    Event {
        /// Its name.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A map of somebody's programs can't be read.
    #[error(transparent)]
    BpfMap(#[from] BpfMapError),
    /// The records can't be written as they come.
    #[error(transparent)]
    Capture(#[from] FileWriteError),
    /// A journal can't be replayed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An event can't be in a journal.
    #[error("{0} can't be in a journal: nobody but who asked for it knows what its records have")]
    NotForJournal(String),
    /// The CPUs to record are not there.
    #[error("none of the CPUs {0:?} is online: /sys/devices/system/cpu/online lists those that are")]
    NoCpu(Vec<u32>),
    /// Programs that keep account of threads can't leave out CPUs.
    #[error(
        "{scenario} is of all CPUs: programs in the kernel follow threads, and what those have, from one to another; record it without \
         naming CPUs"
    )]
    ProgramsOfSomeCpus {
        /// The scenario that was asked for.
        scenario: &'static str,
    },
    /// A process to record is not there.
    #[error("process {0} does not exist: `ps -e` lists those that do")]
    NoProcess(u32),
    /// What is to be recorded is one thread of a process.
    #[error("{thread} is a thread, not a process: record its process with `-p {process}`")]
    OneThread {
        /// The thread.
        thread: Tid,
        /// Its process.
        process: Pid,
    },
    /// The kernel does not give the sideband.
    #[error("the kernel refuses to tell about processes and mappings: {source}{hint}")]
    Sideband {
        /// The system's reason.
        source: io::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// More events than a recording has kinds of sample for.
    #[error("{named} events are too many: a recording has at most {most}; name fewer")]
    Events {
        /// How many there are.
        named: usize,
        /// How many there may be.
        most: usize,
    },
    /// Too few files may be open.
    #[error(
        "{limit} files may be open at once, and a recording needs {needed}: raise the limit (`ulimit -n`)"
    )]
    OpenFiles {
        /// As it is.
        limit: u64,
        /// As it must be at least.
        needed: u64,
    },
    /// The command to record cannot be executed.
    #[error("{program:?} can't be executed: {source}{}", remedy(program, source))]
    Command {
        /// The program.
        program: OsString,
        /// The system's reason.
        source: io::Error,
    },
    /// A step that works on any healthy system failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// What to do about a command that can't be executed; nothing where the reason tells it.
fn remedy(program: &OsStr, source: &io::Error) -> &'static str {
    let path = Path::new(program);
    match source.raw_os_error() {
        Some(libc::ENOENT) if path.is_file() && path.components().count() > 1 => {
            "; install the interpreter that its first line, or its ELF header, names"
        }
        Some(libc::ENOENT) => "; name a program that is on PATH, or its path",
        Some(libc::EACCES) if path.is_dir() => "; it is a folder: name a program",
        Some(libc::EACCES) => "; make it executable, with `chmod +x`, for the user that it runs as",
        Some(libc::ENOEXEC) => "; start it with its interpreter, as in `-- sh FILE`",
        Some(libc::EAGAIN | libc::ENOMEM) => "; end other processes, or raise their limit (`ulimit -u`)",
        _ => "",
    }
}

impl SessionError {
    /// For `map_err`: a step that failed.
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// The sideband's failure, with what helps against it.
    pub(super) fn sideband(source: io::Error) -> Self {
        let hint = match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                "; run it with sudo, outside of user namespaces, in a container with --privileged"
            }
            Some(libc::EMFILE) => "; raise the limit of open files (`ulimit -n`)",
            _ => "",
        };
        Self::Sideband { source, hint }
    }
}
