//! Processes and threads. A process is an ordinal given to one lifetime of a pid, so that a reused pid is
//! another process.

use super::{Exit, ProgramId};
use crate::ids::{Nanos, Pid, Tid, Uid};
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
    /// How it ended, where that was told.
    pub exit: Option<Exit>,
    /// Its pid in the pid namespace that it lives in, where that is known: another one than [`Self::pid`] in most containers.
    pub namespace_pid: Option<Pid>,
    /// Whose rights it had when it was last looked at (the effective uid), where that is known.
    pub user: Option<Uid>,
    /// Path of its cgroup below the root of the hierarchy; empty where that is not known.
    pub cgroup: StringId,
    /// Id of the container that the cgroup is of; empty where it is of none.
    pub container: StringId,
    /// The last program that it executed: see [`super::ExportMachine::programs_of`].
    pub(super) program: Option<ProgramId>,
}

impl Process {
    /// One of which nothing else is known.
    pub(super) fn new(pid: Pid, name: StringId, parent: Option<ProcessId>, start: Nanos) -> Self {
        Self {
            pid,
            name,
            parent,
            start,
            end: None,
            exit: None,
            namespace_pid: None,
            user: None,
            cgroup: StringId::EMPTY,
            container: StringId::EMPTY,
            program: None,
        }
    }
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
