//! From code address to rule without asking a table: a direct-mapped cache, one per [`crate::Unwinder`].
//!
//! The key is the table's identity and the address relative to the table's text, never the address in a process, so
//! processes that map one file share entries and never confuse them.
//!
//! For each entry the cache also remembers where the rule of the next frame was found the last time. A walk applies what it
//! finds there while the return address, which confirms it, is still on its way from memory: the steps of a stack that
//! goes as one before wait for nothing but the loads of the entries themselves.
//!
//! ```text
//!  entries   | key, rule | key, rule | key, rule | ...      by the hash of the key
//!  next      |     2     |     0     |     1     | ...      the entry that came behind this one
//! ```

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
    fn slot(self) -> Slot {
        Slot((self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> SHIFT) as u16)
    }
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot(u16);

impl Slot {
    #[inline]
    fn index(self) -> usize {
        usize::from(self.0) % ENTRIES
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
    next: Box<[Slot; ENTRIES]>,
}

/// `value` for each entry.
#[allow(clippy::unnecessary_box_returns, reason = "a debug build would put the array on the stack")]
fn of_each<T: Copy>(value: T) -> Box<[T; ENTRIES]> {
    match vec![value; ENTRIES].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the slice was made with exactly this length"),
    }
}

impl<A: Architecture> RuleCache<A> {
    /// Four to a cache line.
    const ENTRY_SIZE: () = assert!(size_of::<Entry<A>>() == 16);

    pub(crate) fn new() -> Self {
        let () = Self::ENTRY_SIZE;
        // Key 0 is no table's: an empty entry never hits.
        let empty = Entry { key: CacheKey(0), rule: Rule::Missing };
        RuleCache { entries: of_each(empty), next: of_each(Slot::default()) }
    }

    /// The rule of `key`, if it is where the one behind `last` was.
    #[inline]
    pub(crate) fn foretold(&self, key: CacheKey, last: Slot) -> Option<(RuleOf<A>, Slot)> {
        // Which entry this is must not depend on the key, or nothing is gained.
        let slot = self.next[last.index()];
        let entry = &self.entries[slot.index()];
        (entry.key == key).then_some((entry.rule, slot))
    }

    /// The cached rule of `key`, or else the one that `compute` gives, which is kept, and where it is. `compute` may have
    /// none, and then nothing is kept.
    #[inline]
    pub(crate) fn rule(
        &mut self,
        key: CacheKey,
        compute: impl FnOnce() -> Option<RuleOf<A>>,
    ) -> (RuleOf<A>, Slot) {
        let slot = key.slot();
        let entry = &mut self.entries[slot.index()];
        if entry.key != key {
            let Some(rule) = compute() else { return (Rule::Missing, slot) };
            *entry = Entry { key, rule };
        }
        (entry.rule, slot)
    }

    /// The rule in `slot` is behind that in `last`, and will be foretold there.
    #[inline]
    pub(crate) fn foretell(&mut self, last: Slot, slot: Slot) {
        self.next[last.index()] = slot;
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
        let mut rule = |table, relative, rule| cache.rule(CacheKey::new(table, relative), || rule).0;
        assert_eq!(rule(1, 0x1000, Some(Rule::Root)), Rule::Root);
        assert_eq!(rule(2, 0x1000, Some(Rule::Missing)), Rule::Missing);
        assert_eq!(rule(1, 0x1000, Some(Rule::Root)), Rule::Root);
        assert_eq!(rule(2, 0x1000, Some(Rule::Unsupported)), Rule::Missing);
        assert_eq!(rule(3, 0, None), Rule::Missing);
        assert_eq!(rule(3, 0, Some(Rule::Root)), Rule::Root);
    }

    #[test]
    fn what_is_foretold_is_of_the_key_that_was_asked_for() {
        let mut cache = RuleCache::<X86_64>::new();
        let rule_of = |address: u32| match address % 3 {
            0 => Rule::Root,
            1 => Rule::Unsupported,
            _ => Rule::Missing,
        };
        let (mut state, mut foretold) = (1_u32, 0);
        // More keys than entries, the second half of a walk always the same.
        for _ in 0..20_000 {
            let (_, mut last) = cache.rule(CacheKey::new(1, 0), || Some(rule_of(0)));
            for depth in 0..8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let address = if depth < 4 { state >> 16 } else { depth };
                let key = CacheKey::new(1, address);
                let (rule, slot) =
                    cache.foretold(key, last).inspect(|_| foretold += 1).unwrap_or_else(|| {
                        let (rule, slot) = cache.rule(key, || Some(rule_of(address)));
                        cache.foretell(last, slot);
                        (rule, slot)
                    });
                assert_eq!(rule, rule_of(address));
                last = slot;
            }
        }
        assert!(foretold > 50_000, "{foretold}");
    }
}
