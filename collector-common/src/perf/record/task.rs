//! What tasks do: get a name, begin, end, take turns on a CPU, have namespaces and cgroups.

use super::Body;
use crate::ids::{Nanos, Pid, Tid};
use crate::perf::fields::Fields;
use crate::perf::write::{WriteError, Writer};
use crate::perf::{Misc, ParseConfig, Text, Words};

/// `PERF_RECORD_COMM`: a thread was named; with [`Misc::COMM_EXEC`] by the execution of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The name, 15 bytes at most.
    pub name: Text<'a>,
}

impl<'a> Body<'a> for Comm<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { pid: fields.pid()?, tid: fields.tid()?, name: Text::from_field(fields.remaining()) })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.tid(self.tid);
        writer.text(self.name);
        Ok(())
    }
}

/// `PERF_RECORD_FORK`, a thread began, and `PERF_RECORD_EXIT`, it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The thread's process.
    pub pid: Pid,
    /// The parent's process.
    pub parent_pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The parent: of a fork who made it, of an exit the parent at the time.
    pub parent_tid: Tid,
    /// When.
    pub time: Nanos,
}

impl<'a> Body<'a> for Task {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self {
            pid: fields.pid()?,
            parent_pid: fields.pid()?,
            tid: fields.tid()?,
            parent_tid: fields.tid()?,
            time: fields.nanos()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.pid(self.parent_pid);
        writer.tid(self.tid);
        writer.tid(self.parent_tid);
        writer.nanos(self.time);
        Ok(())
    }
}

/// `PERF_RECORD_SWITCH`: the thread of the sample id got a CPU, or with [`Misc::SWITCH_OUT`] lost it. It has no fields
/// of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch;

impl<'a> Body<'a> for Switch {
    fn read(_: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self)
    }

    fn write(&self, _: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        Ok(())
    }
}

/// `PERF_RECORD_SWITCH_CPU_WIDE`: as [`Switch`], seen from the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCpuWide {
    /// The process of the thread before, or with [`Misc::SWITCH_OUT`] the next one.
    pub other_pid: Pid,
    /// That thread.
    pub other_tid: Tid,
}

impl<'a> Body<'a> for SwitchCpuWide {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { other_pid: fields.pid()?, other_tid: fields.tid()? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.other_pid);
        writer.tid(self.other_tid);
        Ok(())
    }
}

/// A namespace as `/proc/PID/ns` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// `PERF_RECORD_NAMESPACES`: the namespaces of a thread (Linux 4.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// Device and inode of each, in the order net, uts, ipc, pid, user, mnt, cgroup.
    pub words: Words<'a>,
}

impl<'a> Namespaces<'a> {
    /// One after the other, in the order of `enum perf_ns_index`: net, uts, ipc, pid, user, mnt, cgroup.
    pub fn iter(&self) -> impl Iterator<Item = Namespace> + use<'a> {
        let mut words = self.words.iter();
        std::iter::from_fn(move || Some(Namespace { device: words.next()?, inode: words.next()? }))
    }
}

impl<'a> Body<'a> for Namespaces<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        let (pid, tid) = (fields.pid()?, fields.tid()?);
        let count = fields.u64()?;
        Some(Self { pid, tid, words: fields.words(count.checked_mul(2)?)? })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.pid(self.pid);
        writer.tid(self.tid);
        writer.u64(self.words.len() as u64 / 2);
        writer.words(self.words);
        Ok(())
    }
}

/// `PERF_RECORD_CGROUP`: a cgroup and its name (Linux 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// Its id, as in samples.
    pub id: u64,
    /// Its path below the root of its hierarchy.
    pub path: Text<'a>,
}

impl<'a> Body<'a> for Cgroup<'a> {
    fn read(fields: &mut Fields<'a>, _: Misc, _: &ParseConfig) -> Option<Self> {
        Some(Self { id: fields.u64()?, path: Text::from_field(fields.remaining()) })
    }

    fn write(&self, writer: &mut Writer<'_>, _: &ParseConfig) -> Result<(), WriteError> {
        writer.u64(self.id);
        writer.text(self.path);
        Ok(())
    }
}
