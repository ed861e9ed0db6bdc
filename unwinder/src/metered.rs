//! The code of an address space, of which the guesses of one walk may read no more than so much, and ask as often where it lies.

use std::cell::Cell;
use std::num::NonZeroU64;

use crate::{AddressSpace, Architecture, Mapping};

/// What a look for a mapping takes, in bytes of code that are read and understood in about that time.
const LOOKUP: usize = 64;

/// Bytes of code that the guesses of one walk may still read, or a program could hold up whoever walks through it. `None` once that
/// was not enough.
#[derive(Debug)]
pub(crate) struct CodeBudget(Cell<Option<usize>>);

impl CodeBudget {
    /// For a walk of so many frames.
    pub(crate) fn of_frames(frames: usize) -> Self {
        const OF_ALL: usize = 256 << 10;
        const OF_EACH: usize = 2 << 10;
        CodeBudget(Cell::new(Some(OF_ALL.saturating_add(frames.saturating_mul(OF_EACH)))))
    }

    /// Whether something was not read any more: what followed from it says nothing.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.get().is_none()
    }

    fn take(&self, bytes: usize) -> bool {
        self.0.set(self.0.get().and_then(|left| left.checked_sub(bytes)));
        !self.is_spent()
    }
}

/// An address space that has no code once a walk has read enough, nor mappings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metered<'a, S> {
    pub(crate) space: &'a S,
    pub(crate) budget: &'a CodeBudget,
}

impl<A: Architecture, S: AddressSpace<A>> AddressSpace<A> for Metered<'_, S> {
    fn lookup(&self, address: u64) -> Option<Mapping<'_, A>> {
        if self.budget.take(LOOKUP) { self.space.lookup(address) } else { None }
    }

    fn generation(&self) -> Option<NonZeroU64> {
        self.space.generation()
    }

    fn code(&self, address: u64, buffer: &mut [u8]) -> usize {
        if self.budget.take(buffer.len()) { self.space.code(address, buffer) } else { 0 }
    }
}
