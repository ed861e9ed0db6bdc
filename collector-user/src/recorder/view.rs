//! One process's memory at one time, as the unwinder asks about it.

use std::cell::RefCell;
use std::num::NonZeroU64;

use collector_common::ids::{Avma, Nanos};
use collector_common::track::Space;
use unwinder::{AddressSpace, Mapping};

use super::late::{LateMemory, Owner};
use crate::modules::{Modules, Recorded};
use crate::this_machine::read_at;

/// A process's mappings at the time of a sample, and its code as it is now.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) owner: Owner,
    pub(super) space: Option<&'a Space>,
    pub(super) time: Nanos,
    pub(super) modules: &'a Modules,
    pub(super) late: &'a RefCell<LateMemory>,
}

impl View<'_> {
    /// Fills `buffer` with the file's code at an address, of a process that is gone.
    fn code_in_file(&self, address: u64, buffer: &mut [u8]) -> Option<usize> {
        let mapping = self.space?.mapping_at(Avma(address), self.time)?;
        let len =
            usize::try_from(mapping.end.0.checked_sub(address)?).unwrap_or(usize::MAX).min(buffer.len());
        let at = mapping.file_offset.0.checked_add(address.checked_sub(mapping.start.0)?)?;
        read_at(self.modules.file(mapping.module)?, buffer.get_mut(..len)?, at).ok()
    }
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
        match self.late.borrow_mut().code(self.owner, address, buffer) {
            0 => self.code_in_file(address, buffer).unwrap_or(0),
            read => read,
        }
    }
}
