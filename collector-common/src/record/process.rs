//! Processes and threads. A process is an ordinal given to one lifetime of a pid, so that a reused pid is
//! another process.

use crate::ids::{Nanos, Pid, Tid};
use crate::intern::StringId;

/// Names one lifetime of a process in one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its pid.
    pub pid: Pid,
    /// Name of its main thread, the last one seen.
    pub name: StringId,
    /// The process that forked it, where the recording saw that.
    pub parent: Option<ProcessId>,
    /// When it was forked; 0 for a process that was there before the recording.
    pub start: Nanos,
    /// When its last thread exited; `None` while it runs.
    pub end: Option<Nanos>,
}

/// Names a thread, under one name, in one [`super::ExportMachine`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// A thread under one name: a thread that renames itself, or that executes another program, has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Its tid.
    pub tid: Tid,
    /// Its name at the time of its samples (`comm`).
    pub name: StringId,
}
