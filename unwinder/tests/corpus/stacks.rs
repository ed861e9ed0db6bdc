//! A thread's stack, and those that signals interrupted when their handlers ran on others.

use unwinder::{CopiedStack, StackMemory, StackReadError};

/// The copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacks<'a> {
    own: CopiedStack<'a>,
    others: &'a [(u64, Vec<u8>)],
}

impl<'a> Stacks<'a> {
    pub(super) fn new(base: u64, bytes: &'a [u8], others: &'a [(u64, Vec<u8>)]) -> Self {
        Self { own: CopiedStack::new(base, bytes, 0), others }
    }
}

impl StackMemory for Stacks<'_> {
    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, StackReadError> {
        let own = self.own.read_u64(address);
        if own.is_ok() || self.others.is_empty() {
            return own;
        }
        let mut others = self.others.iter().map(|(base, bytes)| CopiedStack::new(*base, bytes, 0));
        others.find_map(|other| other.read_u64(address).ok()).map_or(own, Ok)
    }
}
