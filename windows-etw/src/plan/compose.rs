//! A whole plan, and the sum of several.

use std::collections::BTreeSet;

use collector_common::ids::Pid;

use super::buffers::Buffers;
use super::error::PlanError;
use super::heap::HeapPlan;
use super::interval::SampleInterval;
use super::kernel::{Flags, KernelEvent};
use super::user::{MOST_PIDS, ProviderPlan};

/// What a recording asks ETW for. Times are those of the performance counter (`Wnode.ClientContext` 1), raw, so that an event and
/// its stack have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is for.
    pub names: Vec<String>,
    /// What the kernel tells.
    pub system: SystemPlan,
    /// What providers tell, in the order in which they are enabled.
    pub providers: Vec<ProviderPlan>,
    /// What the heaps of processes tell, in a session of its own.
    pub heap: Option<HeapPlan>,
    /// Sizes of each session's buffers.
    pub buffers: Buffers,
    /// What it can't have.
    pub notes: Vec<Note>,
}

/// What the system logger tells (`EVENT_TRACE_SYSTEM_LOGGER_MODE`). It knows no processes: what is of others comes, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemPlan {
    /// Kinds of events.
    pub flags: Flags,
    /// Events that have stacks (`TraceStackTracingInfo`), 256 at most.
    pub stacks: BTreeSet<KernelEvent>,
    /// How often CPUs are sampled (`TraceSampledProfileIntervalInfo`). It is the whole machine's.
    pub interval: Option<SampleInterval>,
}

/// What starting sessions takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// To be an administrator, in an elevated process.
    Administrator,
    /// `SeSystemProfilePrivilege`, which administrators have, but must turn on: to set the interval of samples.
    SystemProfile,
}

/// What a plan can't have, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Blocks of heaps are told for a command and for processes that are named only.
    HeapNeedsProcesses,
    /// A filter by process has no place for so many: what is of others is left out later.
    ManyProcesses(usize),
    /// So many samples a second are more than [`SampleInterval::MOST_HZ`].
    Frequency(u32),
}

impl Note {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::HeapNeedsProcesses => {
                "blocks of heaps are recorded for a command and for processes that are named by -p only; without, what processes get from the \
                 system by VirtualAlloc"
                    .to_owned()
            }
            Self::Frequency(hz) => {
                format!("CPUs are sampled {} times a second at most here, not {hz} times", SampleInterval::MOST_HZ)
            }
            Self::ManyProcesses(count) => {
                format!("providers take no more than {MOST_PIDS} processes to tell of, and these are {count}: all tell, and what is of \
                         others is left out")
            }
        }
    }
}

impl Plan {
    /// Has it ask for all that `other` does, too.
    ///
    /// # Errors
    /// Where one session can't do both.
    pub fn add(&mut self, other: Self) -> Result<(), PlanError> {
        match (self.system.interval, other.system.interval) {
            (Some(one), Some(other)) if one != other => return Err(PlanError::Intervals { one, other }),
            (one, other) => self.system.interval = one.or(other),
        }
        self.system.flags = self.system.flags | other.system.flags;
        self.system.stacks.extend(other.system.stacks);
        for provider in other.providers {
            let is_same =
                |known: &&mut ProviderPlan| (known.guid, known.when) == (provider.guid, provider.when);
            match self.providers.iter_mut().find(is_same) {
                Some(known) => known.add(provider)?,
                None => self.providers.push(provider),
            }
        }
        self.providers.sort_by_key(|provider| (provider.when, provider.guid));
        self.heap = match (self.heap.take(), other.heap) {
            (Some(one), Some(other)) => {
                let pids: BTreeSet<Pid> = one.pids.into_iter().chain(other.pids).collect();
                Some(HeapPlan { pids: pids.into_iter().collect() })
            }
            (one, other) => one.or(other),
        };
        self.buffers = self.buffers.or_larger(other.buffers);
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        for name in other.names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        Ok(())
    }

    /// What it takes to start it.
    pub fn privileges(&self) -> Vec<Privilege> {
        let profile = self.system.interval.map(|_| Privilege::SystemProfile);
        std::iter::once(Privilege::Administrator).chain(profile).collect()
    }
}
