//! From code address to rule without asking a table: a direct-mapped cache, one per [`crate::Unwinder`].
//!
//! The key is the table's identity and the address relative to the table's text, never the address in a process, so
//! processes that map one file share entries and never confuse them.
//!
//! For each entry the cache also remembers where the rule of the next frame was found the last time. A walk applies what it
//! finds there while the return address, which confirms it, is still on its way from memory: the steps of a stack that
//! goes as one before wait for nothing but the loads of the entries themselves.
//!
//! Code without a table has keys of its own: the address space's number and the address in the process. What its frames
//! lead to is a guess, which is believed because there is a call before the return address: an entry says whether that has
//! been seen of its address.
//!
//! ```text
//!  entries   | key, rule | key, rule | key, rule | ...      by the hash of the key
//!  next      |  2, call  |     0     |  1, call  | ...      the entry that came behind this one
//! ```

use crate::Architecture;
use crate::rule::{Rule, RuleOf};

/// Entries; 16 bytes each.
const ENTRIES: usize = 8192;
const SHIFT: u32 = 64 - ENTRIES.trailing_zeros();

/// Table identity (never 0) in the upper half, address relative to the start of the table's text in the lower; or, with
/// the highest bit set, number of an address space and address of code without a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheKey(u64);

/// The number of an address space whose code is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpaceNumber(u16);

impl SpaceNumber {
    pub(crate) const FIRST: SpaceNumber = SpaceNumber(0);
    const BITS: u32 = u64::BITS - 1 - CODE_BITS;

    pub(crate) fn following(self) -> Option<Self> {
        let next = self.0 + 1;
        (u32::from(next) >> Self::BITS == 0).then_some(SpaceNumber(next))
    }
}

/// Bits of the addresses that code of user space has; with five levels of page tables it gets more only if it asks for them.
const CODE_BITS: u32 = 48;
const OF_CODE: u64 = 1 << (u64::BITS - 1);

impl CacheKey {
    /// Of what is mapped, but can't be remembered.
    pub(crate) const NONE: CacheKey = CacheKey(0);
    /// Of what is not mapped. No code of user space has this address.
    pub(crate) const UNMAPPED: CacheKey = CacheKey(u64::MAX);

    /// The largest identity that a table may have.
    pub(crate) const LAST_TABLE: u32 = i32::MAX as u32;

    pub(crate) fn of_text(table: u32, relative: u32) -> Self {
        CacheKey(u64::from(table) << 32 | u64::from(relative))
    }

    /// Whether there are keys for code at `address`.
    pub(crate) fn has_code(address: u64) -> bool {
        address >> CODE_BITS == 0
    }

    /// Of code at `address`, for which there are keys, in an address space.
    pub(crate) fn of_code(space: SpaceNumber, address: u64) -> Self {
        CacheKey(OF_CODE | u64::from(space.0) << CODE_BITS | address)
    }

    /// Whether it is that of an entry.
    #[inline]
    pub(crate) fn is_one(self) -> bool {
        // Neither all ones nor zero.
        self.0.wrapping_add(1) > 1
    }

    pub(crate) fn is_of_code(self) -> bool {
        self.0 & OF_CODE != 0
    }

    /// The key of an address `distance` bytes further on in the same text or code.
    #[inline]
    pub(crate) fn advanced(self, distance: u64) -> Self {
        CacheKey(self.0.wrapping_add(distance))
    }

    /// Fibonacci hashing: the top bits of a product with 2^64 / phi depend on all bits of the key.
    #[inline]
    fn slot(self) -> Slot {
        Slot(((self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> SHIFT) as u16).max(1))
    }
}

/// The place of an entry, in the bits that count one; what the others are makes no difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(u16);

impl Slot {
    /// The one that stays empty.
    pub(crate) const EMPTY: Slot = Slot(0);
    /// Where an entry keeps this for the one behind it: there is a call before its own address.
    const CALLED: u16 = 1 << (u16::BITS - 1);

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
    const ROOM_FOR_CALLED: () = assert!(ENTRIES <= Slot::CALLED as usize);

    pub(crate) fn new() -> Self {
        let ((), ()) = (Self::ENTRY_SIZE, Self::ROOM_FOR_CALLED);
        // An empty entry never hits.
        let empty = Entry { key: CacheKey::NONE, rule: Rule::Missing };
        RuleCache { entries: of_each(empty), next: of_each(Slot::EMPTY) }
    }

    /// Forgets what follows from code.
    pub(crate) fn forget_code(&mut self) {
        for entry in self.entries.iter_mut() {
            if entry.key.is_of_code() || matches!(entry.rule, Rule::Interrupted | Rule::Guessed(_)) {
                *entry = Entry { key: CacheKey::NONE, rule: Rule::Missing };
            }
        }
        for next in self.next.iter_mut() {
            next.0 &= !Slot::CALLED;
        }
    }

    /// The rule of `key`, if it is where the one behind `last` was.
    #[inline]
    pub(crate) fn foretold(&self, key: CacheKey, last: Slot) -> Option<(RuleOf<A>, Slot)> {
        // Which entry this is must not depend on the key, or nothing is gained.
        let slot = self.next[last.index()];
        let entry = &self.entries[slot.index()];
        (entry.key == key).then_some((entry.rule, slot))
    }

    /// The cached rule of `key`, and where it is.
    #[inline]
    pub(crate) fn known(&self, key: CacheKey) -> Option<(RuleOf<A>, Slot)> {
        let slot = key.slot();
        let entry = &self.entries[slot.index()];
        (entry.key == key).then_some((entry.rule, slot))
    }

    /// Keeps the rule of `key`, and says where.
    pub(crate) fn remember(&mut self, key: CacheKey, rule: RuleOf<A>) -> Slot {
        let slot = key.slot();
        self.entries[slot.index()] = Entry { key, rule };
        self.next[slot.index()] = Slot::EMPTY;
        slot
    }

    /// The rule in `slot` is behind that in `last`, and will be foretold there.
    #[inline]
    pub(crate) fn foretell(&mut self, last: Slot, slot: Slot) {
        let next = &mut self.next[last.index()];
        next.0 = next.0 & Slot::CALLED | slot.0 & !Slot::CALLED;
    }

    /// There is a call before the address of the entry in `slot`.
    #[inline]
    pub(crate) fn set_called(&mut self, slot: Slot) {
        self.next[slot.index()].0 |= Slot::CALLED;
    }

    /// Whether that has been said of the entry in `slot`.
    #[inline]
    pub(crate) fn is_called(&self, slot: Slot) -> bool {
        self.next[slot.index()].0 & Slot::CALLED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheKey, RuleCache, SpaceNumber};
    use crate::rule::Rule;
    use crate::x86_64::X86_64;

    #[test]
    fn the_same_address_in_two_tables_is_two_entries() {
        let mut cache = RuleCache::<X86_64>::new();
        let [first, second] = [1, 2].map(|table| CacheKey::of_text(table, 0x1000));
        cache.remember(first, Rule::Root);
        assert_eq!(cache.known(second).map(|(rule, _)| rule), None);
        cache.remember(second, Rule::Unsupported);
        for (key, rule) in [(first, Rule::Root), (second, Rule::Unsupported)] {
            assert_eq!(cache.known(key).map(|(rule, _)| rule), Some(rule));
        }
    }

    #[test]
    fn keys_of_code_are_no_tables() {
        let last = SpaceNumber(0x7fff);
        assert_eq!(last.following(), None);
        assert_eq!(SpaceNumber::FIRST.following(), Some(SpaceNumber(1)));
        let highest = CacheKey::of_code(SpaceNumber::FIRST, 0xffff_ffff_f000).advanced(0xfff);
        assert!(highest.is_of_code() && CacheKey::has_code(0xffff_ffff_ffff));
        assert!(!CacheKey::has_code(0x1_0000_0000_0000));
        assert_eq!(highest.advanced(1), CacheKey::of_code(SpaceNumber(1), 0));
        assert!(!CacheKey::of_text(CacheKey::LAST_TABLE, u32::MAX).is_of_code());
    }

    #[test]
    fn a_new_entry_foretells_nothing() {
        let mut cache = RuleCache::<X86_64>::new();
        let rules = (0..100_000).map(|relative| CacheKey::of_text(1, relative));
        for key in rules {
            let slot = cache.remember(key, Rule::Root);
            assert!(cache.foretold(key, slot).is_none());
            cache.foretell(slot, slot);
            assert_eq!(cache.foretold(key, slot).map(|(rule, _)| rule), Some(Rule::Root));
        }
    }

    #[test]
    fn a_call_is_of_one_address() {
        let mut cache = RuleCache::<X86_64>::new();
        let key = |relative| CacheKey::of_text(1, relative);
        let first = cache.remember(key(0), Rule::Root);
        // Another address whose entry would be in the same place.
        let other = (1..100_000).map(key).find(|other| other.slot().index() == first.index()).unwrap();
        let behind = cache.remember(key(1), Rule::Root);
        assert!(!cache.is_called(first));
        cache.set_called(first);
        cache.foretell(first, behind);
        assert!(cache.is_called(first) && !cache.is_called(behind));
        assert_eq!(cache.foretold(key(1), first).map(|(rule, _)| rule), Some(Rule::Root));
        // What is read of an entry whose address is called leads to the same one.
        let (_, foretold) = cache.foretold(key(1), first).unwrap();
        assert!(!cache.is_called(foretold));
        cache.remember(other, Rule::Root);
        assert!(cache.known(key(0)).is_none() && !cache.is_called(first));
        cache.set_called(first);
        cache.forget_code();
        assert!(cache.known(other).is_some() && !cache.is_called(first));
    }

    #[test]
    fn what_follows_from_code_is_forgotten() {
        let mut cache = RuleCache::<X86_64>::new();
        let [text, stub] = [1, 2].map(|table| CacheKey::of_text(table, 0x1000));
        let code = CacheKey::of_code(SpaceNumber::FIRST, 0x1000);
        cache.remember(text, Rule::Root);
        cache.remember(stub, Rule::Interrupted);
        cache.remember(code, Rule::Missing);
        cache.forget_code();
        assert!(cache.known(text).is_some() && cache.known(stub).is_none() && cache.known(code).is_none());
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
            let mut last = cache.remember(CacheKey::of_text(1, 0), rule_of(0));
            for depth in 0..8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let address = if depth < 4 { state >> 16 } else { depth };
                let key = CacheKey::of_text(1, address);
                let (rule, slot) =
                    cache.foretold(key, last).inspect(|_| foretold += 1).unwrap_or_else(|| {
                        let kept = cache.known(key);
                        let found = kept.unwrap_or_else(|| {
                            let rule = rule_of(address);
                            (rule, cache.remember(key, rule))
                        });
                        cache.foretell(last, found.1);
                        found
                    });
                assert_eq!(rule, rule_of(address));
                last = slot;
            }
        }
        assert!(foretold > 50_000, "{foretold}");
    }
}
