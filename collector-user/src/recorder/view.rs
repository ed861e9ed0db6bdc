//! One process's memory at one time, as the unwinder asks about it.

use std::cell::RefCell;
use std::num::NonZeroU64;

use collector_common::ids::{Avma, Nanos};
use collector_common::track::Space;
use unwinder::{AddressSpace, Mapping};

use super::late::{LateMemory, Owner};
use crate::modules::{Modules, Recorded};

/// A process's mappings at the time of a sample, and its code as it is now.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) owner: Owner,
    pub(super) space: Option<&'a Space>,
    pub(super) time: Nanos,
    pub(super) modules: &'a Modules,
    pub(super) late: &'a RefCell<LateMemory>,
}

impl<A: Recorded> AddressSpace<A> for View<'_> {
    fn generation(&self) -> Option<NonZeroU64> {
        self.space?.generation_at(self.time)
    }

    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        let mapping = self.space?.mapping_at(Avma(address), self.time)?;
        Some(Mapping {
            start: mapping.start.0,
            end: mapping.end.0,
            bias: mapping.bias,
            table: self.modules.table(mapping.module),
        })
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.late.borrow_mut().bytes(self.owner, address, buffer)
    }
}
