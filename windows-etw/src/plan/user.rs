//! What a provider is asked for (`EnableTraceEx2` and `ENABLE_TRACE_PARAMETERS` of `evntrace.h`).

use std::collections::BTreeSet;

use collector_common::event::Guid;
use collector_common::ids::Pid;

use super::PlanError;

/// Events that a filter by number may have (`MAX_EVENT_FILTER_EVENT_ID_COUNT`).
pub const MOST_IDS: usize = 64;
/// Processes that a filter by process may have (`MAX_EVENT_FILTER_PID_COUNT`).
pub const MOST_PIDS: usize = 8;

/// Severity up to which events are told (`TRACE_LEVEL_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 1.
    Critical = 1,
    /// 2, and what is worse.
    Error = 2,
    /// 3, and what is worse.
    Warning = 3,
    /// 4, and what is worse.
    Informational = 4,
    /// 5: all.
    Verbose = 5,
}

impl Level {
    /// All of them, by the names that people give them.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Critical, "critical"),
        (Self::Error, "error"),
        (Self::Warning, "warning"),
        (Self::Informational, "informational"),
        (Self::Verbose, "verbose"),
    ];

    /// As ETW has it.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("", |(_, name)| name)
    }
}

/// Which of a provider's events are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventIds {
    /// Those that level and keywords let through.
    All,
    /// Of those the ones with these numbers; [`MOST_IDS`] at most.
    Only(BTreeSet<u16>),
}

impl EventIds {
    /// These.
    pub fn only(ids: impl IntoIterator<Item = u16>) -> Self {
        Self::Only(ids.into_iter().collect())
    }

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(one), Self::Only(other)) if one.union(&other).count() <= MOST_IDS => {
                Self::Only(&one | &other)
            }
            _ => Self::All,
        }
    }
}

/// Which of a provider's events have stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// None.
    None,
    /// Those with these numbers; [`MOST_IDS`] at most.
    Only(BTreeSet<u16>),
    /// All.
    All,
}

impl Stacks {
    /// Those of these events.
    pub fn only(ids: impl IntoIterator<Item = u16>) -> Self {
        Self::Only(ids.into_iter().collect())
    }

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, stacks) | (stacks, Self::None) => stacks,
            (Self::Only(one), Self::Only(other)) if one.union(&other).count() <= MOST_IDS => {
                Self::Only(&one | &other)
            }
            _ => Self::All,
        }
    }
}

/// When a provider is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// From the session's start to its end.
    Always,
    /// Before the session stops, so that it tells once what there is.
    AtEnd,
}

/// A provider, and what it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderPlan {
    /// Which.
    pub guid: Guid,
    /// What it is called; its GUID where nobody knows.
    pub name: String,
    /// When.
    pub when: When,
    /// How much.
    pub level: Level,
    /// Events with one of these keywords, or without any, are told; 0 is all of them.
    pub any: u64,
    /// Events must have all of these keywords, too.
    pub all: u64,
    /// Which of those.
    pub ids: EventIds,
    /// Which of those have stacks.
    pub stacks: Stacks,
    /// Only in these processes; empty is all of them. Providers of the kernel take no notice.
    pub pids: BTreeSet<Pid>,
    /// Whether it is asked to tell its state at the start (`EVENT_CONTROL_CODE_CAPTURE_STATE`).
    pub capture_state: bool,
}

impl ProviderPlan {
    /// Only of these processes, of which there may be none: then it is not asked. A filter by process has no place for more than
    /// [`MOST_PIDS`], and all are asked then.
    pub fn of_only(self, pids: &BTreeSet<Pid>) -> Option<Self> {
        let has_place = pids.len() <= MOST_PIDS;
        let pids = if has_place { pids.clone() } else { BTreeSet::new() };
        (!has_place || !pids.is_empty()).then_some(Self { pids, ..self })
    }

    /// What both ask for, of one provider at one time.
    ///
    /// # Errors
    /// Where that is not the sum of the two: keywords that events must have all of.
    pub(super) fn add(&mut self, other: Self) -> Result<(), PlanError> {
        if self.all != other.all {
            let (provider, one, other) = (self.name.clone(), self.all, other.all);
            return Err(PlanError::Keywords { provider, one, other });
        }
        self.level = self.level.max(other.level);
        self.any = if self.any == 0 || other.any == 0 { 0 } else { self.any | other.any };
        self.ids = self.ids.clone().union(other.ids);
        self.stacks = self.stacks.clone().union(other.stacks);
        let everywhere = self.pids.is_empty() || other.pids.is_empty();
        self.pids = if everywhere { BTreeSet::new() } else { &self.pids | &other.pids };
        self.capture_state |= other.capture_state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Scenario, Scope};

    #[test]
    fn of_some_processes_of_too_many_and_of_none() {
        let plan =
            Scenario::by_name("cpu_profiling").unwrap().plan(&Scope { frequency_hz: 997, pids: vec![] });
        let asked = |count: u32| {
            let pids: BTreeSet<Pid> = (1..=count).map(Pid).collect();
            plan.providers[1].clone().of_only(&pids).map(|provider| provider.pids)
        };
        assert_eq!(asked(0), None);
        assert_eq!(asked(8), Some((1..=8).map(Pid).collect()));
        assert_eq!(asked(9), Some(BTreeSet::new()), "an empty filter is none");
    }
}
