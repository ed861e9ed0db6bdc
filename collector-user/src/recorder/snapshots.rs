//! Pages of stacks that are read after their samples, each between two looks at the words that lead there: what is in it is believed if these
//! are as they were copied, right before and right behind.
//!
//! What one walk reads is kept together, for it was all there at one time. A later walk of the round goes on in it if the words that lead out
//! of its own copy are in it, too, and reads itself otherwise: a page that was read for one stack says nothing of another one.

use std::sync::Arc;

use collector_common::ids::Pid;
use collector_common::wire::PAGE_SIZE;
use rustc_hash::{FxHashMap, FxHashSet};

/// Pages of stacks kept in one round: 8 MiB.
const MOST_PAGES: usize = 2048;

/// Pages that may be read in a round, and more for each walk that asks for one: reading takes its time, and there may be ten thousands of
/// walks, each through a thousand pages. What is not read then is missing from its stack.
const LOOKS: u32 = 1024;
const LOOKS_A_WALK: u32 = 32;

pub(super) type Page = Arc<[u8; PAGE_SIZE]>;

/// A word that was read from a copy; of address 0 where there is none.
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

/// The words that a walk read last from its copy: the outermost copied frame's return address and registers. They are the same one twice where
/// there is one alone.
pub(super) type Leading = [Word; 2];

/// Reads the page that starts at `start`. `None`: it can't be read; in that, `None`: the leading words are others by now.
pub(super) fn look(
    start: u64,
    leading: Leading,
    mut read: impl FnMut(u64, &mut [u8]) -> Option<()>,
) -> Option<Option<Page>> {
    let are_there = |read: &mut _| -> Option<bool> {
        let [one, other] = leading;
        Some(one.is_there(read)? && (one == other || other.is_there(read)?))
    };
    if !are_there(&mut read)? {
        return Some(None);
    }
    let mut page = [0; PAGE_SIZE];
    read(start, &mut page)?;
    Some(are_there(&mut read)?.then(|| Arc::new(page)))
}

/// The page that an address is on, and where on it.
pub(super) fn page_and_offset(address: u64) -> (u64, usize) {
    let offset = address % PAGE_SIZE as u64;
    (address - offset, offset as usize)
}

/// Whose snapshots a walk has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    has_begun: bool,
    /// The number of its own.
    own: Option<usize>,
    /// The number of the last one that had what it asked for.
    last: Option<usize>,
}

/// What a walk has read.
#[derive(Debug)]
struct Snapshot {
    pid: Pid,
    leading: Leading,
    /// By their addresses.
    pages: FxHashMap<u64, Page>,
}

impl Snapshot {
    /// A page, if the words that lead a walk there are as they were when it was read.
    fn page(&self, pid: Pid, start: u64, leading: Leading) -> Option<&Page> {
        let page = (self.pid == pid).then(|| self.pages.get(&start)).flatten()?;
        leading.iter().all(|word| self.has(*word)).then_some(page)
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
    /// Pages in all of them.
    pages: usize,
    looks_left: u32,
    /// Pages that can't be read.
    unreadable: FxHashSet<(Pid, u64)>,
}

impl Default for Snapshots {
    fn default() -> Self {
        let (kept, unreadable) = Default::default();
        Self { kept, first: 0, pages: 0, looks_left: LOOKS, unreadable }
    }
}

impl Snapshots {
    /// A page as an earlier walk read it, or this one.
    pub(super) fn page(&self, used: &mut Used, pid: Pid, start: u64, leading: Leading) -> Option<Page> {
        let of = |number: usize| self.kept.get(number.checked_sub(self.first)?);
        let found = |number: usize| of(number)?.page(pid, start, leading).map(|page| (number, page));
        let newest_first = (self.first..self.first + self.kept.len()).rev();
        let (number, page) = used.last.into_iter().chain(newest_first).find_map(found)?;
        used.last = Some(number);
        Some(Arc::clone(page))
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
        looked: Option<Option<Page>>,
    ) -> Option<Page> {
        if self.pages >= MOST_PAGES || self.unreadable.len() >= MOST_PAGES {
            self.forget();
        }
        let Some(page) = looked else {
            self.unreadable.insert((pid, start));
            return None;
        };
        let page = page?;
        let own = used.own.and_then(|own| self.kept.get_mut(own.checked_sub(self.first)?));
        match own.filter(|own| own.leading == leading) {
            Some(own) => drop(own.pages.insert(start, Arc::clone(&page))),
            None => {
                used.own = Some(self.first + self.kept.len());
                self.kept.push(Snapshot {
                    pid,
                    leading,
                    pages: FxHashMap::from_iter([(start, Arc::clone(&page))]),
                });
            }
        }
        self.pages += 1;
        used.last = used.own;
        Some(page)
    }

    fn forget(&mut self) {
        self.first += self.kept.len();
        self.kept.clear();
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
        look: impl FnOnce() -> Option<Option<Page>>,
    ) -> Option<Page> {
        snapshots.page(used, PID, start, [by; 2]).or_else(|| {
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
            assert_eq!(looked, Some(is_believed.then(|| Arc::new([1; PAGE_SIZE]))));
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
        assert!(unreadable(0).unwrap().is_some());
    }

    /// Two stacks by turns, of which both begin at the same place: none has the other's page, whichever came first.
    #[test]
    fn a_page_is_for_those_whose_words_were_there_with_it() {
        let mut snapshots = Snapshots::default();
        let [one, other] = [LEADING, Word { value: 77, ..LEADING }];
        let [of_one, of_other] = [1, 2].map(|value| page_of(move |_| value));
        for (word, page) in [(one, &of_one), (other, &of_other)] {
            let told =
                walk(&mut snapshots, &mut Used::default(), NEXT, word, || Some(Some(Arc::clone(page))));
            assert_eq!(told.as_ref(), Some(page));
        }
        for (word, page) in [(one, &of_one), (other, &of_other), (one, &of_one)] {
            let told = walk(&mut snapshots, &mut Used::default(), NEXT, word, || panic!("it is there"));
            assert_eq!(told.as_ref(), Some(page));
        }
        // One that is gone, and is there again: the first look says nothing of the second.
        let third = Word { value: 99, ..LEADING };
        assert_eq!(walk(&mut snapshots, &mut Used::default(), NEXT, third, || Some(None)), None);
        let told = walk(&mut snapshots, &mut Used::default(), NEXT, third, || Some(Some(page_of(|_| 3))));
        assert!(told.is_some());
    }

    /// A walk from further out finds its own words on a page that another one has read.
    #[test]
    fn what_one_walk_has_read_serves_those_that_begin_in_it() {
        let mut snapshots = Snapshots::default();
        let mut used = Used::default();
        let pages = [0x6000, 0x7000, 0x8000].map(|start| (start, page_of(move |word| start + word)));
        for (start, page) in &pages {
            let look = || Some(Some(Arc::clone(page)));
            assert!(walk(&mut snapshots, &mut used, *start, LEADING, look).is_some());
        }
        let inside = |value: u64| Word { address: 0x7000 + 8 * 5, value, is_long: true };
        let told =
            walk(&mut snapshots, &mut Used::default(), 0x8000, inside(0x7005), || panic!("it is there"));
        assert_eq!(told.as_ref(), Some(&pages[2].1));
        // Another value is of another time.
        assert_eq!(walk(&mut snapshots, &mut Used::default(), 0x8000, inside(0x7006), || Some(None)), None);
        // Nor is it of another process.
        assert_eq!(snapshots.page(&mut Used::default(), Pid(8), 0x8000, [LEADING; 2]), None);
    }

    /// What two walks have read by the same words may be of two times: they are not taken together.
    #[test]
    fn each_walk_has_its_own() {
        let mut snapshots = Snapshots::default();
        for (start, value) in [(0x6000, 1), (0x7000, 2)] {
            let look = || Some(Some(page_of(|_| value)));
            assert!(walk(&mut snapshots, &mut Used::default(), start, LEADING, look).is_some());
        }
        // It leads from the first page, which was read alone.
        let from_first = Word { address: 0x6008, value: 1, is_long: true };
        assert_eq!(walk(&mut snapshots, &mut Used::default(), 0x7000, from_first, || Some(None)), None);
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
                    Some(Some(page_of(|_| 0)))
                });
            }
            assert!(snapshots.pages <= MOST_PAGES);
        }
        assert_eq!(looks, LOOKS + 50 * LOOKS_A_WALK);
        snapshots.end_round();
        assert_eq!(snapshots.pages, 0);
        assert!(
            walk(&mut snapshots, &mut Used::default(), NEXT, LEADING, || Some(Some(page_of(|_| 0))))
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
