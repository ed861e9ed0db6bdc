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
    /// After the others, so that it tells once what was there before; until the session ends.
    Rundown,
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
    /// With one of these it is enabled once more before the session stops, and tells again what there is; 0 is not at all.
    pub any_at_end: u64,
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
    /// What it is asked for before the session stops, if anything.
    pub fn at_end(&self) -> Option<Self> {
        let again = || Self { any: self.any_at_end, any_at_end: 0, ..self.clone() };
        (self.any_at_end != 0).then(again)
    }

    /// What both ask for, of one provider.
    ///
    /// # Errors
    /// Where that is not the sum of the two: keywords that events must have all of.
    pub(super) fn add(&mut self, other: Self) -> Result<(), PlanError> {
        if self.all != other.all {
            let (provider, one, other) = (self.name.clone(), self.all, other.all);
            return Err(PlanError::Keywords { provider, one, other });
        }
        self.when = self.when.min(other.when);
        self.level = self.level.max(other.level);
        self.any = if self.any == 0 || other.any == 0 { 0 } else { self.any | other.any };
        self.any_at_end |= other.any_at_end;
        self.ids = self.ids.clone().union(other.ids);
        self.stacks = self.stacks.clone().union(other.stacks);
        let everywhere = self.pids.is_empty() || other.pids.is_empty();
        self.pids = if everywhere { BTreeSet::new() } else { &self.pids | &other.pids };
        self.capture_state |= other.capture_state;
        Ok(())
    }
}
