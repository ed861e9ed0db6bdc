//! Pages of stacks that are read after their samples, each between two looks at the words that lead there: what is in it is believed if these
//! are as they are to be, right before and right behind.
//!
//! The words are those of the outermost frame that is known: while it is there, its callers are what they were. So a walk may go on in
//! what another walk of the round has read, if that has these words, too; and what it finds there leads it on to the next page.

use std::sync::Arc;

use collector_common::ids::Pid;
use collector_common::wire::PAGE_SIZE;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::packed::{Packed, Unpacker};

/// Pages of stacks kept in one round: 8 MiB.
const MOST_PAGES: usize = 2048;

/// Readings of a page that are looked through for one that has the words of a walk, the newest ones.
const MOST_READINGS: usize = 16;

/// Pages that may be read in a round, and more for each walk that asks for one: reading takes its time, and there may be ten thousands of
/// walks, each through a thousand pages. What is not read then is missing from its stack.
const LOOKS: u32 = 1024;
const LOOKS_A_WALK: u32 = 32;

pub(super) type Page = Arc<[u8; PAGE_SIZE]>;

/// A word of a stack; of address 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) address: u64,
    /// Of up to 8 bytes, the others being zero.
    pub(super) value: u64,
    pub(super) is_long: bool,
}

impl Word {
    /// Whether it is what is on its page.
    fn is_on(self, page: &[u8; PAGE_SIZE]) -> bool {
        let (_, offset) = page_and_offset(self.address);
        self.is_in(&page[offset..])
    }

    /// Whether it is what bytes begin with.
    fn is_in(self, bytes: &[u8]) -> bool {
        let value = if self.is_long {
            bytes.first_chunk().copied().map(u64::from_le_bytes)
        } else {
            bytes.first_chunk().copied().map(u32::from_le_bytes).map(u64::from)
        };
        value == Some(self.value)
    }

    /// Whether it is what is in memory, which `read` reads at an address.
    fn is_there(self, read: &mut impl FnMut(u64, &mut [u8]) -> Option<()>) -> Option<bool> {
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..if self.is_long { 8 } else { 4 }];
        read(self.address, bytes)?;
        Some(self.is_in(bytes))
    }
}

/// The words that the outermost frame that is known was found by: its return address, and what it has saved. They are the same one twice where
/// there is one alone.
pub(super) type Leading = [Word; 2];

/// What became of a look at a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// The words that lead there were as they are to be, before and behind.
    Read(Page),
    /// They were others.
    Changed,
}

impl Packed for Looked {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Changed => 0_u8.pack(out),
            Self::Read(page) => {
                1_u8.pack(out);
                page.pack(out);
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Option<Self> {
        match u8::unpack(from)? {
            0 => Some(Self::Changed),
            1 => Page::unpack(from).map(Self::Read),
            _ => None,
        }
    }
}

/// Reads the page that starts at `start`, where it can be read.
pub(super) fn look(
    start: u64,
    leading: Leading,
    mut read: impl FnMut(u64, &mut [u8]) -> Option<()>,
) -> Option<Looked> {
    let are_there = |read: &mut _| -> Option<bool> {
        let [one, other] = leading;
        Some(one.is_there(read)? && (one == other || other.is_there(read)?))
    };
    if !are_there(&mut read)? {
        return Some(Looked::Changed);
    }
    let mut page = [0; PAGE_SIZE];
    read(start, &mut page)?;
    Some(if are_there(&mut read)? { Looked::Read(Arc::new(page)) } else { Looked::Changed })
}

/// A number below a page's size, by which a question for a page tells which words lead there.
pub(super) fn digest(leading: Leading) -> u64 {
    let words = leading.iter().flat_map(|word| [word.address, word.value]);
    let mixed = words
        .fold(0_u64, |mixed, number| (mixed ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    mixed % PAGE_SIZE as u64
}

/// The page that an address is on, and where on it.
pub(super) fn page_and_offset(address: u64) -> (u64, usize) {
    let offset = address % PAGE_SIZE as u64;
    (address - offset, offset as usize)
}

/// What a walk has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    has_begun: bool,
    /// The number of its own snapshot.
    own: Option<usize>,
}

/// What a walk has read.
#[derive(Debug)]
struct Snapshot {
    /// What led to the first page.
    leading: Leading,
    /// By their addresses.
    pages: FxHashMap<u64, Page>,
}

impl Snapshot {
    /// Whether words were there when it was read.
    fn has_all(&self, leading: Leading) -> bool {
        leading.iter().all(|word| self.has(*word))
    }

    fn has(&self, word: Word) -> bool {
        self.leading.contains(&word)
            || self.pages.get(&page_and_offset(word.address).0).is_some_and(|page| word.is_on(page))
    }
}

/// The snapshots of a round.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// The oldest first.
    kept: Vec<Snapshot>,
    /// The number of the first of them.
    first: usize,
    /// Numbers of those that have a page, the oldest first.
    of_page: FxHashMap<(Pid, u64), Vec<usize>>,
    /// Pages in all of them.
    pages: usize,
    looks_left: u32,
    /// Pages that can't be read.
    unreadable: FxHashSet<(Pid, u64)>,
}

impl Default for Snapshots {
    fn default() -> Self {
        let (kept, of_page, unreadable) = Default::default();
        Self { kept, first: 0, of_page, pages: 0, looks_left: LOOKS, unreadable }
    }
}

impl Snapshots {
    /// A page as some walk read it together with these words.
    pub(super) fn page(&self, pid: Pid, start: u64, leading: Leading) -> Option<&Page> {
        let newest = self.of_page.get(&(pid, start))?.iter().rev().take(MOST_READINGS);
        let snapshots = newest.filter_map(|number| self.kept.get(number.checked_sub(self.first)?));
        let mut found = snapshots.filter(|snapshot| snapshot.has_all(leading));
        found.find_map(|snapshot| snapshot.pages.get(&start))
    }

    /// Whether a page that none has may be looked at, which counts as done then.
    pub(super) fn begin_look(&mut self, used: &mut Used, pid: Pid, start: u64) -> bool {
        if !std::mem::replace(&mut used.has_begun, true) {
            self.looks_left = self.looks_left.saturating_add(LOOKS_A_WALK);
        }
        let may_look = self.looks_left > 0 && !self.unreadable.contains(&(pid, start));
        self.looks_left -= u32::from(may_look);
        may_look
    }

    /// Keeps what was looked at.
    pub(super) fn keep(
        &mut self,
        used: &mut Used,
        (pid, start, leading): (Pid, u64, Leading),
        looked: Option<Looked>,
    ) -> Option<Page> {
        if self.pages >= MOST_PAGES || self.unreadable.len() >= MOST_PAGES {
            self.forget();
        }
        let page = match looked {
            Some(Looked::Read(page)) => page,
            Some(Looked::Changed) => return None,
            None => {
                self.unreadable.insert((pid, start));
                return None;
            }
        };
        let kept = Arc::clone(&page);
        let own = used.own.and_then(|own| Some((own, self.kept.get_mut(own.checked_sub(self.first)?)?)));
        let number = if let Some((number, own)) = own.filter(|(_, own)| own.has_all(leading)) {
            own.pages.insert(start, kept);
            number
        } else {
            self.kept.push(Snapshot { leading, pages: FxHashMap::from_iter([(start, kept)]) });
            self.first + self.kept.len() - 1
        };
        used.own = Some(number);
        self.of_page.entry((pid, start)).or_default().push(number);
        self.pages += 1;
        Some(page)
    }

    fn forget(&mut self) {
        self.first += self.kept.len();
        self.kept.clear();
        self.of_page.clear();
        self.pages = 0;
        self.unreadable.clear();
    }

    /// The next round reads anew.
    pub(super) fn end_round(&mut self) {
        self.forget();
        self.looks_left = LOOKS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    /// What leads to the page behind its own.
    const LEADING: Word = Word { address: 0x5010, value: 15, is_long: true };
    const NEXT: u64 = 0x6000;

    fn page_of(words: impl Fn(u64) -> u64) -> Page {
        let bytes: Vec<u8> = (0..512).map(words).flat_map(u64::to_le_bytes).collect();
        Arc::new(bytes.try_into().unwrap())
    }

    /// A walk that is led to a page by a word.
    fn walk(
        snapshots: &mut Snapshots,
        used: &mut Used,
        start: u64,
        by: Word,
        look: impl FnOnce() -> Option<Looked>,
    ) -> Option<Page> {
        snapshots.page(PID, start, [by; 2]).cloned().or_else(|| {
            snapshots.begin_look(used, PID, start).then_some(())?;
            snapshots.keep(used, (PID, start, [by; 2]), look())
        })
    }

    #[test]
    fn what_leads_there_is_looked_at_right_before_and_right_behind() {
        // What a second word is in turn, and whether the page is believed.
        let short = Word { address: 0x5018, value: 3, is_long: false };
        for (values, is_believed) in [([3_u32, 3], true), ([4, 3], false), ([3, 4], false)] {
            let mut values = values.into_iter();
            let mut asked = Vec::new();
            let looked = look(NEXT, [LEADING, short], |address, bytes| {
                asked.push(address);
                match bytes.len() {
                    4 => bytes.copy_from_slice(&values.next()?.to_le_bytes()),
                    8 => bytes.copy_from_slice(&15_u64.to_le_bytes()),
                    _ => bytes.fill(1),
                }
                Some(())
            });
            let read = Looked::Read(Arc::new([1; PAGE_SIZE]));
            assert_eq!(looked, Some(if is_believed { read } else { Looked::Changed }));
            let all = [LEADING.address, short.address, NEXT, LEADING.address, short.address];
            assert!(all.starts_with(&asked) && (asked.len() == 5 || !is_believed), "{asked:x?}");
        }
        let unreadable = |missing: u64| {
            look(NEXT, [LEADING; 2], |address, bytes| {
                bytes.fill(0);
                bytes[0] = 15;
                (address != missing).then_some(())
            })
        };
        assert_eq!([unreadable(NEXT), unreadable(LEADING.address)], [None, None]);
        assert!(matches!(unreadable(0), Some(Looked::Read(_))));
    }

    /// Two stacks by turns, of which both begin at the same place: none has the other's page, whichever came first.
    #[test]
    fn a_page_is_for_those_whose_words_were_there_with_it() {
        let mut snapshots = Snapshots::default();
        let [one, other] = [LEADING, Word { value: 77, ..LEADING }];
        let [of_one, of_other] = [1, 2].map(|value| page_of(move |_| value));
        for (word, page) in [(one, &of_one), (other, &of_other)] {
            let told = walk(&mut snapshots, &mut Used::default(), NEXT, word, || {
                Some(Looked::Read(Arc::clone(page)))
            });
            assert_eq!(told.as_ref(), Some(page));
        }
        for (word, page) in [(one, &of_one), (other, &of_other), (one, &of_one)] {
            let told = walk(&mut snapshots, &mut Used::default(), NEXT, word, || panic!("it is there"));
            assert_eq!(told.as_ref(), Some(page));
        }
        // One that is gone, and is there again: the first look says nothing of the second.
        let third = Word { value: 99, ..LEADING };
        assert_eq!(walk(&mut snapshots, &mut Used::default(), NEXT, third, || Some(Looked::Changed)), None);
        let told =
            walk(&mut snapshots, &mut Used::default(), NEXT, third, || Some(Looked::Read(page_of(|_| 3))));
        assert!(told.is_some());
    }

    /// A page of many words, each its page's address and its place.
    fn numbered(start: u64) -> Page {
        page_of(move |word| start + word)
    }

    fn word(start: u64, word: u64) -> Word {
        Word { address: start + 8 * word, value: start + word, is_long: true }
    }

    /// A walk from further out finds its own words on a page that another one has read.
    #[test]
    fn what_one_walk_has_read_serves_those_that_come_to_it() {
        let mut snapshots = Snapshots::default();
        let mut used = Used::default();
        let mut by = LEADING;
        for start in [0x6000, 0x7000, 0x8000] {
            let look = || Some(Looked::Read(numbered(start)));
            assert_eq!(walk(&mut snapshots, &mut used, start, by, look), Some(numbered(start)));
            by = word(start, 9);
        }
        let other = |snapshots: &mut _, start, by| {
            walk(snapshots, &mut Used::default(), start, by, || Some(Looked::Changed))
        };
        assert_eq!(other(&mut snapshots, 0x8000, word(0x7000, 5)), Some(numbered(0x8000)));
        // Another value is of another time.
        assert_eq!(other(&mut snapshots, 0x8000, Word { value: 1, ..word(0x7000, 5) }), None);
        // Nor is it of another process.
        assert_eq!(snapshots.page(Pid(8), 0x8000, [LEADING; 2]), None);

        // What led elsewhere reads the first page itself, and goes on in what was read.
        let mut used = Used::default();
        let elsewhere = Word { address: 0x5800, value: 1, is_long: true };
        let look = || Some(Looked::Read(numbered(0x6000)));
        assert!(walk(&mut snapshots, &mut used, 0x6000, elsewhere, look).is_some());
        let look = || panic!("it is there");
        assert!(walk(&mut snapshots, &mut used, 0x7000, word(0x6000, 9), look).is_some());
    }

    /// Two walks that the same words have led, each to one page: of two times, of which the second page's is not the first one's.
    #[test]
    fn pages_of_two_times_are_not_taken_together() {
        let mut snapshots = Snapshots::default();
        let look = || Some(Looked::Read(numbered(0x6000)));
        assert!(walk(&mut snapshots, &mut Used::default(), 0x6000, LEADING, look).is_some());
        // Beyond it, by words that were on the first page then.
        let later = Word { value: 7, ..word(0x6000, 9) };
        let look = || Some(Looked::Read(numbered(0x7000)));
        assert!(walk(&mut snapshots, &mut Used::default(), 0x7000, later, look).is_some());
        let mut used = Used::default();
        assert!(walk(&mut snapshots, &mut used, 0x6000, LEADING, || panic!("it is there")).is_some());
        assert_eq!(walk(&mut snapshots, &mut used, 0x7000, word(0x6000, 9), || Some(Looked::Changed)), None);
    }

    #[test]
    fn what_is_read_in_a_round_has_its_bounds() {
        let mut snapshots = Snapshots::default();
        let mut looks = 0;
        for number in 0..50_u64 {
            let mut used = Used::default();
            let by = Word { value: number, ..LEADING };
            for page in 0..200 {
                walk(&mut snapshots, &mut used, NEXT + page * PAGE_SIZE as u64, by, || {
                    looks += 1;
                    Some(Looked::Read(page_of(|_| 0)))
                });
            }
            assert!(snapshots.pages <= MOST_PAGES);
        }
        assert_eq!(looks, LOOKS + 50 * LOOKS_A_WALK);
        snapshots.end_round();
        assert_eq!(snapshots.pages, 0);
        assert!(
            walk(&mut snapshots, &mut Used::default(), NEXT, LEADING, || Some(Looked::Read(page_of(|_| 0))))
                .is_some()
        );

        // What can't be read is not tried again, until the next round.
        for _ in 0..2 {
            let mut tried = 0;
            for _ in 0..5 {
                let by = Word { value: 1, ..LEADING };
                let told = walk(&mut snapshots, &mut Used::default(), 0x9000, by, || {
                    tried += 1;
                    None
                });
                assert_eq!(told, None);
            }
            assert_eq!(tried, 1);
            snapshots.end_round();
        }
    }
}
