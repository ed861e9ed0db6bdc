//! Mappings of a process of which some held the same addresses in, with the names of code that was made at run time; what an address
//! holds at a time out.

use collector_common::intern::StringId;

use super::code::Mapping;
use crate::over_time::{Begins, OverTime};

/// All ticks: what does not depend on the time.
pub(super) const ALWAYS: [u64; 2] = [0, u64::MAX];

/// A name of code that was made at run time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) first: u64,
    /// The last address, not the one after it.
    pub(super) last: u64,
    /// When its mapping began, in ticks.
    pub(super) since: u64,
    /// By position.
    pub(super) mapping: u32,
    pub(super) name: StringId,
}

impl Begins for Named {
    fn since(&self) -> u64 {
        self.since
    }
}

/// What lies where, and when.
#[derive(Debug)]
pub(super) struct ByTime {
    mappings: OverTime,
    named: Vec<Named>,
    /// By position in `named`.
    names: OverTime,
}

impl ByTime {
    /// Of mappings at positions, and names, both in the order of time.
    pub(super) fn of(mappings: &[Mapping], positions: Vec<u32>, named: Vec<Named>) -> Self {
        let all = (0..named.len() as u32).collect();
        let names = OverTime::of(all, |at| {
            let Named { first, last, .. } = named[at as usize];
            [first, last.saturating_add(1)]
        });
        let mappings = OverTime::of(positions, |at| {
            let Mapping { first, end, .. } = mappings[at as usize];
            [first, end]
        });
        Self { mappings, named, names }
    }

    /// The mapping that holds an address, and at which ticks it is that one.
    pub(super) fn mapping(&self, mappings: &[Mapping], address: u64, time: u64) -> (Option<u32>, [u64; 2]) {
        let holding = self.mappings.holding(mappings, address, time);
        holding.map_or((None, ALWAYS), |holding| (Some(holding.at), holding.times))
    }

    /// The name of an address, with its mapping, and at which ticks it is that one.
    pub(super) fn named(&self, address: u64, time: u64) -> (Option<(u32, StringId)>, [u64; 2]) {
        match self.names.holding(&self.named, address, time) {
            Some(holding) => {
                let Named { mapping, name, .. } = self.named[holding.at as usize];
                (Some((mapping, name)), holding.times)
            }
            None => (None, ALWAYS),
        }
    }
}
