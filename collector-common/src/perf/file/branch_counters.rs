//! What the counts of branches ([`BranchEntry::counters`](crate::perf::BranchEntry::counters)) are of: `PERF_SAMPLE_BRANCH_COUNTERS`,
//! Linux 6.8.
//!
//! ```text
//! group of events:     leader, asks for counts   second, asks for none   third, asks for counts
//!                              │                                                │
//! counts, from bit 0 on:  │ width bits │                                  │ width bits │ ...
//! ```
//!
//! A count has as many bits as the PMU's `branch_counter_width` says, and is of an event of the group that asks for counts, in
//! the order of the group (`intel_pmu_lbr_counters_reorder` of `arch/x86/events/intel/lbr.c`). There are `branch_counter_nr` of them at most
//! (`Documentation/ABI/testing/sysfs-bus-event_source-devices-caps`). The highest number that fits stands for as many or more.

use super::{Features, FileEvent, GroupDescription};
use crate::perf::BranchSampleType;

/// What the counts of a group's branches are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCounters {
    /// Indices of the events, the first of which the lowest bits are of.
    events: Vec<usize>,
    /// Bits of each count, 1 to 64.
    width: u32,
}

/// How often an event happened since the branch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCount {
    /// The event: an index into [`FileReader::events`](super::FileReader::events).
    pub event: usize,
    /// So often.
    pub count: u64,
    /// Or more often: there is no room for a higher number.
    pub is_full: bool,
}

impl BranchCounters {
    /// Of the group of an event, if it asks for counts and the file says how they are laid out.
    pub(super) fn of(event: usize, events: &[FileEvent], features: &Features) -> Option<Self> {
        let groups = features.groups().unwrap_or_default();
        let members = |group| members(group, events.len());
        let group = groups.iter().find_map(|group| members(group).filter(|members| members.contains(&event)));
        let members = group.unwrap_or(event..event.checked_add(1)?);
        let counted: Vec<usize> = members.filter(|&member| events.get(member).is_some_and(asks)).collect();
        let leader = events.get(*counted.first()?)?;
        let [count, width] = layout(leader, features)?;
        let width = u32::try_from(width).ok().filter(|width| (1..=u64::BITS).contains(width))?;
        let most = usize::try_from(count).ok()?.min((u64::BITS / width) as usize);
        Some(Self { events: counted.into_iter().take(most).collect(), width })
    }

    /// Indices of the events that are counted, in the order of their counts.
    pub fn events(&self) -> &[usize] {
        &self.events
    }

    /// The counts of a branch, event by event.
    pub fn counts(&self, counters: u64) -> impl Iterator<Item = BranchCount> + use<'_> {
        let highest = u64::MAX >> (u64::BITS - self.width);
        self.events.iter().zip(0..).map(move |(&event, place)| {
            // Of all that there are, the last one begins below bit 64.
            let count = counters.checked_shr(place * self.width).unwrap_or(0) & highest;
            BranchCount { event, count, is_full: count == highest }
        })
    }
}

/// Has all members of a group read counts if one of them asks for them: the kernel writes them for each then.
pub(super) fn group(events: &mut [FileEvent], groups: &[GroupDescription]) {
    let mut behind_last = 0;
    let count = events.len();
    for members in groups.iter().filter_map(|group| members(group, count)) {
        // Each event is of one group, in the order of the events: so this takes no longer than there are events.
        if members.start < behind_last {
            continue;
        }
        behind_last = members.end;
        let Some(members) = events.get_mut(members) else { continue };
        if members.iter().any(asks) {
            for member in members {
                let asked = &mut member.config.branch_sample_type;
                *asked = *asked | BranchSampleType::COUNTERS;
            }
        }
    }
}

/// Indices of the events of a group: a leader, and those that come next. A file may tell of more members than there are events.
fn members(group: &GroupDescription, events: usize) -> Option<std::ops::Range<usize>> {
    let (leader, members) = (usize::try_from(group.leader).ok()?, usize::try_from(group.members).ok()?);
    Some(leader..leader.checked_add(members)?.min(events))
}

fn asks(event: &FileEvent) -> bool {
    event.attr.branch_sample_type.contains(BranchSampleType::COUNTERS)
}

/// How many counts there may be, and the bits of each, by the event's PMU.
fn layout(event: &FileEvent, features: &Features) -> Option<[u64; 2]> {
    /// `PERF_TYPE_HARDWARE` and `PERF_TYPE_HW_CACHE`, whose events name the PMU in the upper half of their number.
    const WITH_PMU: [u32; 2] = [0, 3];
    let number =
        if WITH_PMU.contains(&event.attr.kind) { (event.attr.config >> 32) as u32 } else { event.attr.kind };
    let pmus = features.pmus().unwrap_or_default();
    let name = pmus.iter().find(|(of, _)| *of == number && number != 0).map(|(_, name)| name.as_str());
    let all = features.pmu_caps();
    // An event of no PMU by name is of the CPU's, or of the first of them where there are several kinds of CPUs.
    let known = all.iter().filter(|caps| name.is_none_or(|name| caps.name == name));
    known.chain(&all).find_map(|caps| {
        let number = |wanted: &str| {
            let found = caps.capabilities.iter().find(|(name, _)| name == wanted);
            found.and_then(|(_, value)| value.parse().ok())
        };
        Some([number("branch_counter_nr")?, number("branch_counter_width")?])
    })
}
