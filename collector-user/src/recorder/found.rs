//! What was found in `/proc` and no record tells of, for who wants to hand on everything that the recording knows.

use std::fs;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};

use super::thread_names::{Name, kept_name};
use crate::procfs::{Identity, MapsEntry};

/// Something that was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// A thread of a process, with its name as the kernel keeps it.
    Thread { pid: Pid, tid: Tid, name: Name },
    /// A mapping of a file.
    Mapping {
        pid: Pid,
        tid: Tid,
        start: Avma,
        end: Avma,
        file_offset: FileOffset,
        executable: bool,
        identity: Identity,
        path: Box<[u8]>,
        /// 0 for before the recording.
        since: Nanos,
    },
}

impl Found {
    /// A thread, with the name that it has now.
    pub(super) fn thread(pid: Pid, tid: Tid) -> Option<Self> {
        let line = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
        let name = kept_name(line.strip_suffix(b"\n").unwrap_or(&line));
        Some(Self::Thread { pid, tid, name })
    }

    pub(super) fn mapping(pid: Pid, tid: Tid, entry: &MapsEntry<'_>, since: Nanos) -> Self {
        let MapsEntry { start, end, executable, file_offset, identity, ref path, .. } = *entry;
        Self::Mapping {
            pid,
            tid,
            start,
            end,
            file_offset,
            executable,
            identity,
            path: (**path).into(),
            since,
        }
    }
}
