//! A thread's stack, and those that signals interrupted when their handlers ran on others.

use unwinder::{CopiedStack, StackMemory, StackReadError};

/// The copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacks<'a> {
    own: CopiedStack<'a>,
    others: &'a [(u64, Vec<u8>)],
}

impl<'a> Stacks<'a> {
    pub(super) fn new(own: CopiedStack<'a>, others: &'a [(u64, Vec<u8>)]) -> Self {
        Self { own, others }
    }
}

impl Stacks<'_> {
    #[cold]
    fn read_other(&self, address: u64, error: StackReadError) -> Result<u64, StackReadError> {
        let mut others = self.others.iter().map(|(base, bytes)| CopiedStack::new(*base, bytes, 0));
        others.find_map(|other| other.read_u64(address).ok()).ok_or(error)
    }
}

impl StackMemory for Stacks<'_> {
    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        self.own.read_u64(address).or_else(|error| self.read_other(address, error))
    }
}
