//! The compiled rows of a table: for each function that was asked for, a short run of (code offset, rule). Functions of
//! the same shape share one run, as half of all do.
//!
//! ```text
//!  states     [ FDE offset or start of a run, ... ]                         one per FDE, in the index' order
//!  lengths    [ u16, ... ]                                                  of compiled functions below 64 KiB
//!  needed     [ 2 bits, ... ]                                               how often a row was, until compiled
//!  narrow     [ (rows, 0), (u16 offset, u16 rule), ..., (rows, 0), ... ]    runs: nearly every function
//!  wide       [ (rows, length), (u32 offset, u32 rule), ... ]               functions of 64 KiB and more, or rule ids
//!                                                                           beyond 2^16
//! ```

use super::rules::RuleId;

/// Unwind sections are smaller than this: those of the largest programs have some ten megabytes, and what a damaged file
/// says costs memory. An FDE's offset leaves a bit for [`State`].
pub(crate) const MAX_SECTION: u32 = 1 << 28;
const COMPILED: u32 = 1 << 31;
const WIDE: u32 = 1 << 30;

/// How often one row of a function is computed alone, before all are compiled. Beyond 3, a count takes more than two bits.
pub(crate) const MAX_GLANCES: u64 = 3;

/// Slots that are looked at for a run, far more than it takes where hashes are not chosen to collide. A run that has none of
/// them is kept without a slot, and shared by no other function.
const MAX_PROBES: usize = 64;

/// A function's FDE offset until it is compiled; from then on [`COMPILED`] and where its run starts, in the wide runs
/// with [`WIDE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u32);

impl State {
    /// Compiled, and nothing could be made of its FDE.
    const NOTHING: State = State(u32::MAX);
}

/// An offset from its function's start, and the rule that holds from there. At the start of a run: the number of rows
/// in it, and in wide runs the function's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowStart<T> {
    pub(crate) offset: T,
    pub(crate) rule: T,
}

/// What is known of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It was not compiled yet.
    NotCompiled {
        /// Offset of its FDE in the unwind section.
        fde: u32,
    },
    /// The offset lies behind the function's end, or nothing could be made of its FDE.
    Outside,
    Rule(RuleId),
}

/// Append-only.
#[derive(Debug)]
pub(crate) struct RowStore {
    states: Box<[State]>,
    lengths: Box<[u16]>,
    /// Two bits for each function: how often one of its rows was needed.
    needed: Box<[u64]>,
    narrow: Vec<RowStart<u16>>,
    wide: Vec<RowStart<u32>>,
    /// Where narrow runs start, by open addressing with linear probing: the start plus 1, or 0. A power of two.
    slots: Vec<u32>,
    runs: usize,
    functions: usize,
}

impl RowStore {
    /// A store for functions with FDEs at these offsets, each less than [`MAX_SECTION`].
    pub(crate) fn new(fdes: Box<[u32]>) -> Self {
        RowStore {
            lengths: vec![0; fdes.len()].into(),
            needed: vec![0; fdes.len().div_ceil(32)].into(),
            states: fdes.into_iter().map(State).collect(),
            narrow: Vec::with_capacity(256),
            wide: Vec::new(),
            slots: vec![0; 64],
            runs: 0,
            functions: 0,
        }
    }

    /// Functions that are compiled.
    pub(crate) fn functions(&self) -> usize {
        self.functions
    }

    /// Rows that are stored, those that functions share once.
    pub(crate) fn rows(&self) -> usize {
        self.narrow.len() + self.wide.len() - self.runs
    }

    pub(crate) fn bytes_held(&self) -> usize {
        size_of_val(&*self.states)
            + size_of_val(&*self.lengths)
            + size_of_val(&*self.needed)
            + self.narrow.capacity() * size_of::<RowStart<u16>>()
            + self.wide.capacity() * size_of::<RowStart<u32>>()
            + self.slots.capacity() * size_of::<u32>()
    }

    /// Gives back what was reserved for further rows, when all functions are compiled.
    pub(crate) fn shrink(&mut self) {
        self.narrow.shrink_to_fit();
        self.wide.shrink_to_fit();
        self.slots = Vec::new();
        self.needed = Box::default();
    }

    /// Counts that a row of `function` is needed; whether that happens so often that all of them should be compiled.
    pub(crate) fn is_needed_again(&mut self, function: usize) -> bool {
        let Some(word) = self.needed.get_mut(function / 32) else { return true };
        let shift = function % 32 * 2;
        let count = *word >> shift & 3;
        if count < MAX_GLANCES {
            *word += 1 << shift;
        }
        count == MAX_GLANCES
    }

    /// The rule at `offset` bytes into `function`.
    pub(crate) fn find(&self, function: usize, offset: u32) -> Found {
        let Some(&state) = self.states.get(function) else { return Found::Outside };
        let State(place) = state;
        if place & COMPILED == 0 {
            return Found::NotCompiled { fde: place };
        }
        if state == State::NOTHING {
            return Found::Outside;
        }
        let start = (place & !(COMPILED | WIDE)) as usize;
        let rule = if place & WIDE != 0 {
            run_at(&self.wide, start)
                .filter(|(head, _)| offset < head.rule)
                .and_then(|(_, rows)| rule_at(rows, offset))
        } else if offset < self.lengths[function].into() {
            run_at(&self.narrow, start).and_then(|(_, rows)| rule_at(rows, offset as u16))
        } else {
            None
        };
        rule.map_or(Found::Outside, |rule| Found::Rule(RuleId(rule)))
    }

    /// Adds a function's rows, which are sorted by offset; no rows for an FDE of which nothing can be made.
    pub(crate) fn insert(&mut self, function: usize, length: u32, rows: &[RowStart<u32>]) {
        if self.states.get(function).is_none_or(|state| state.0 & COMPILED != 0) {
            return;
        }
        self.functions += 1;
        let fits = |row: &RowStart<u32>| row.offset <= u16::MAX.into() && row.rule <= u16::MAX.into();
        let place = match u16::try_from(length) {
            _ if rows.is_empty() => None,
            Ok(length) if rows.iter().all(fits) => {
                self.lengths[function] = length;
                Some(self.narrow_run(rows))
            }
            _ => {
                let start = self.wide.len();
                self.runs += 1;
                self.wide.push(RowStart { offset: rows.len() as u32, rule: length });
                self.wide.extend_from_slice(rows);
                Some(start).filter(|&start| start < WIDE as usize).map(|start| start as u32 | WIDE)
            }
        };
        self.states[function] = place.map_or(State::NOTHING, |place| State(COMPILED | place));
    }

    /// Where a run of just these rows starts, which is added if there is none. There are no more rows than a section
    /// has bytes, so that the place leaves two bits.
    fn narrow_run(&mut self, rows: &[RowStart<u32>]) -> u32 {
        if self.runs * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let narrowed = rows.iter().map(|row| RowStart { offset: row.offset as u16, rule: row.rule as u16 });
        let mut free = None;
        for slot in self.probes(hash_of(narrowed.clone())) {
            let Some(start) = self.slots[slot].checked_sub(1) else {
                free = Some(slot);
                break;
            };
            let known = run_at(&self.narrow, start as usize);
            if known.is_some_and(|(_, known)| known.iter().copied().eq(narrowed.clone())) {
                return start;
            }
        }
        let start = self.narrow.len() as u32;
        self.runs += 1;
        self.narrow.push(RowStart { offset: rows.len() as u16, rule: 0 });
        self.narrow.extend(narrowed);
        if let Some(slot) = free {
            self.slots[slot] = start + 1;
        }
        start
    }

    /// The slots that a run of this hash may have.
    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        (0..MAX_PROBES).map(move |step| (hash as usize).wrapping_add(step) & mask)
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(MAX_PROBES);
        self.slots.clear();
        self.slots.resize(length, 0);
        let mut start = 0;
        while let Some((_, rows)) = run_at(&self.narrow, start) {
            let free = self.probes(hash_of(rows.iter().copied())).find(|&slot| self.slots[slot] == 0);
            if let Some(slot) = free {
                self.slots[slot] = start as u32 + 1;
            }
            start += 1 + rows.len();
        }
    }
}

/// The head and the rows of the run that starts at `start`.
fn run_at<T: Copy + Into<u32>>(runs: &[RowStart<T>], start: usize) -> Option<(RowStart<T>, &[RowStart<T>])> {
    let (&head, rest) = runs.get(start..)?.split_first()?;
    Some((head, rest.get(..head.offset.into() as usize)?))
}

fn hash_of(rows: impl Iterator<Item = RowStart<u16>>) -> u64 {
    let hash = rows.fold(0_u64, |hash, row| {
        let word = u64::from(row.offset) << 16 | u64::from(row.rule);
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    hash ^ hash >> 32
}

fn rule_at<T: Copy + Ord + Into<u32>>(rows: &[RowStart<T>], offset: T) -> Option<u32> {
    let behind = rows.partition_point(|row| row.offset <= offset);
    Some(rows.get(behind.checked_sub(1)?)?.rule.into())
}

#[cfg(test)]
mod tests {
    use super::{Found, MAX_PROBES, RowStart, RowStore, hash_of};
    use crate::table::rules::RuleId;

    fn row(offset: u32, rule: u32) -> RowStart<u32> {
        RowStart { offset, rule }
    }

    #[test]
    fn rows_hold_until_the_next_and_functions_end() {
        let mut store = RowStore::new([100, 200, 300].into());
        assert_eq!(store.find(1, 0), Found::NotCompiled { fde: 200 });
        store.insert(1, 20, &[row(0, 5), row(4, 6)]);
        store.insert(0, 0xffff, &[row(0, 7), row(0xfffe, 8)]);
        store.insert(2, 0x1_0001, &[row(0, 9), row(0x1_0000, 70_000)]);
        let expected = [
            (1, 3, 5),
            (1, 4, 6),
            (1, 19, 6),
            (0, 0xfffd, 7),
            (0, 0xfffe, 8),
            (2, 0xffff, 9),
            (2, 0x1_0000, 70_000),
        ];
        for (function, offset, rule) in expected {
            assert_eq!(store.find(function, offset), Found::Rule(RuleId(rule)));
        }
        assert_eq!(store.find(1, 20), Found::Outside);
        assert_eq!(store.find(0, 0xffff), Found::Outside);
        assert_eq!(store.find(3, 0), Found::Outside);
    }

    #[test]
    fn functions_of_one_shape_share_their_rows_and_have_their_own_ends() {
        let mut store = RowStore::new((0..1000).collect());
        for function in 0..1000 {
            store.insert(function, 20 + function as u32, &[row(0, 5), row(4, function as u32 % 200)]);
        }
        assert_eq!((store.functions(), store.rows()), (1000, 400));
        for function in 0..1000 {
            let rule = RuleId(function as u32 % 200);
            assert_eq!(store.find(function, 3), Found::Rule(RuleId(5)));
            assert_eq!(store.find(function, 19 + function as u32), Found::Rule(rule));
            assert_eq!(store.find(function, 20 + function as u32), Found::Outside);
        }
    }

    #[test]
    fn runs_that_collide_are_kept_and_looked_for_no_longer_than_others() {
        let rows = |number: u32| [row(0, 5), row(1 + (number >> 8), number & 0xff)];
        let collides = |&number: &u32| {
            let narrowed =
                rows(number).map(|row| RowStart { offset: row.offset as u16, rule: row.rule as u16 });
            hash_of(narrowed.into_iter()).trailing_zeros() >= 12
        };
        let numbers: Vec<u32> = (0..1 << 24).filter(collides).take(3 * MAX_PROBES).collect();
        let mut store = RowStore::new((0..6 * MAX_PROBES as u32).collect());
        for (function, &number) in numbers.iter().chain(&numbers).enumerate() {
            let [_, last] = rows(number);
            store.insert(function, 0xffff, &rows(number));
            assert_eq!(store.find(function, last.offset), Found::Rule(RuleId(last.rule)));
        }
        // Those that had no slot are not shared.
        assert_eq!(store.rows(), 2 * 5 * MAX_PROBES);
    }

    #[test]
    fn the_fourth_need_of_a_row_is_one_for_all() {
        let mut store = RowStore::new((0..70).collect());
        for round in 0..6 {
            for function in 0..70 {
                assert_eq!(store.is_needed_again(function), round >= 3);
            }
        }
        assert!(store.is_needed_again(96), "there is no such function");
    }

    #[test]
    fn a_function_without_rows_is_known_to_have_none() {
        let mut store = RowStore::new([0].into());
        store.insert(0, 0, &[]);
        assert_eq!(store.find(0, 0), Found::Outside);
    }
}
