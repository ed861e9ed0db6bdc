//! From code address to rule without asking a table: a direct-mapped cache, one per [`crate::Unwinder`].
//!
//! The key is the table's identity and the address relative to the table's text, never the address in a process, so
//! processes that map one file share entries and never confuse them.

use crate::Architecture;
use crate::rule::{Rule, RuleOf};

/// Entries; 16 bytes each.
const ENTRIES: usize = 8192;
const SHIFT: u32 = 64 - ENTRIES.trailing_zeros();

/// Table identity (never 0) in the upper half, address relative to the start of the table's text in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheKey(u64);

impl CacheKey {
    pub(crate) fn new(table: u32, relative: u32) -> Self {
        CacheKey(u64::from(table) << 32 | u64::from(relative))
    }

    /// The key of an address `distance` bytes further on in the same text.
    #[inline]
    pub(crate) fn advanced(self, distance: u64) -> Self {
        CacheKey(self.0.wrapping_add(distance))
    }

    /// Fibonacci hashing: the top bits of a product with 2^64 / phi depend on all bits of the key.
    #[inline]
    fn slot(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> SHIFT) as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry<A: Architecture> {
    key: CacheKey,
    rule: RuleOf<A>,
}

#[derive(Debug)]
pub(crate) struct RuleCache<A: Architecture> {
    entries: Box<[Entry<A>; ENTRIES]>,
}

impl<A: Architecture> RuleCache<A> {
    /// Four to a cache line.
    const ENTRY_SIZE: () = assert!(size_of::<Entry<A>>() == 16);

    pub(crate) fn new() -> Self {
        let () = Self::ENTRY_SIZE;
        // Key 0 is no table's: an empty entry never hits. Made on the heap, for a debug build would otherwise put
        // the array on the stack first.
        let empty = vec![Entry { key: CacheKey(0), rule: Rule::Missing }; ENTRIES].into_boxed_slice();
        match empty.try_into() {
            Ok(entries) => RuleCache { entries },
            Err(_) => unreachable!("the slice was made with exactly this length"),
        }
    }

    /// The cached rule of `key`, or else the one that `compute` gives, which is kept. `compute` may have none, and
    /// then nothing is kept.
    #[inline]
    pub(crate) fn rule(&mut self, key: CacheKey, compute: impl FnOnce() -> Option<RuleOf<A>>) -> RuleOf<A> {
        let entry = &mut self.entries[key.slot() % ENTRIES];
        if entry.key != key {
            let Some(rule) = compute() else { return Rule::Missing };
            *entry = Entry { key, rule };
        }
        entry.rule
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheKey, RuleCache};
    use crate::rule::Rule;
    use crate::x86_64::X86_64;

    #[test]
    fn the_same_address_in_two_tables_is_two_entries() {
        let mut cache = RuleCache::<X86_64>::new();
        assert_eq!(cache.rule(CacheKey::new(1, 0x1000), || Some(Rule::Root)), Rule::Root);
        assert_eq!(cache.rule(CacheKey::new(2, 0x1000), || Some(Rule::Missing)), Rule::Missing);
        assert_eq!(cache.rule(CacheKey::new(1, 0x1000), || Some(Rule::Root)), Rule::Root);
        assert_eq!(cache.rule(CacheKey::new(2, 0x1000), || Some(Rule::Unsupported)), Rule::Missing);
        assert_eq!(cache.rule(CacheKey::new(3, 0), || None), Rule::Missing);
        assert_eq!(cache.rule(CacheKey::new(3, 0), || Some(Rule::Root)), Rule::Root);
    }
}
