//! A stack that notes whether an absent page was asked for: what a step would have found there is not known, while what is below
//! the copy is known to be none of the stack's.

use std::cell::Cell;

use crate::{StackMemory, StackReadError};

pub(super) struct Noting<'m, M> {
    stack: &'m M,
    was_absent: Cell<bool>,
}

impl<'m, M> Noting<'m, M> {
    pub(super) fn of(stack: &'m M) -> Self {
        Noting { stack, was_absent: Cell::new(false) }
    }

    /// Whether some word that was asked for lies on a page that is absent.
    pub(super) fn was_absent(&self) -> bool {
        self.was_absent.get()
    }

    fn note<T>(&self, read: Result<T, StackReadError>) -> Result<T, StackReadError> {
        if matches!(read, Err(StackReadError::Absent)) {
            self.was_absent.set(true);
        }
        read
    }
}

impl<M: StackMemory> StackMemory for Noting<'_, M> {
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        self.note(self.stack.read_u64(address))
    }

    fn read_u32(&self, address: u64) -> Result<u32, StackReadError> {
        self.note(self.stack.read_u32(address))
    }
}
