//! Why a tracepoint can't be had.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::format::FormatProblem;

/// Why a tracepoint can't be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TracefsError {
    /// The file system is neither mounted nor can it be opened.
    #[error(
        "tracepoints can't be seen: {source}; run it with sudo, or mount them: `sudo mount -t tracefs tracefs /sys/kernel/tracing`"
    )]
    Absent {
        /// The system's reason.
        source: io::Error,
    },
    /// The rights are missing.
    #[error("tracepoints, and probes, are root's to see: run it with sudo")]
    NotPermitted,
    /// No tracepoint is called so.
    #[error("this kernel has no event `{name}`{}; `collector list events` lists them", did_you_mean(near))]
    Unknown {
        /// The name as given.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A program's own event, on a kernel without such.
    #[error(
        "this kernel has no events of programs' own, as `{name}`: it was built without CONFIG_USER_EVENTS, which is there since \
         Linux 6.4; boot one that has it, or hook a marker or a function of the program by `usdt:` or `uprobe:`"
    )]
    NoUserEvents {
        /// The name as given.
        name: String,
    },
    /// A program's own event that no program has registered.
    #[error(
        "no program has registered `{name}`{}; it is there while its program runs: start that first",
        did_you_mean(near)
    )]
    NotRegistered {
        /// The name as given.
        name: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// The name is not of the form that tracepoints have.
    #[error("`{name}` names no event: a tracepoint is CATEGORY:NAME, as sched:sched_switch")]
    NoName {
        /// The name as given.
        name: String,
    },
    /// What a tracer of the kernel's own writes: it has a format, and perf events do not take it.
    #[error(
        "`{name}` can't be recorded: it is what a tracer of the kernel's own writes, which perf events do not take; use an event \
         that `collector list events` lists, or that tracer, by tracefs's file `current_tracer`"
    )]
    OfTracer {
        /// The name as given.
        name: String,
    },
    /// The format file can't be understood.
    #[error(
        "the format of event {name} can't be read: {problem}; use another one, as `collector list events` has"
    )]
    Format {
        /// The event's name.
        name: String,
        /// What is wrong.
        problem: FormatProblem,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file, below the file system's root.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl TracefsError {
    /// Whether what was asked for is wrong, and not the machine.
    pub fn is_of_the_request(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::NotRegistered { .. } | Self::NoName { .. } | Self::OfTracer { .. }
        )
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) }
}
