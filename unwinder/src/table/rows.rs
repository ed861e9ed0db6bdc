//! The compiled rows of a table: for each function that was asked for, a short run of (code offset, rule).
//!
//! ```text
//!  states     [ FDE offset or place in `functions`, ... ]     one per FDE, in the index' order
//!                  |
//!  functions  [ (first row, rows, length, width), ... ]       one per compiled FDE
//!                  |
//!  narrow     [ (u16 offset, u16 rule), ... ]         4 bytes a row: nearly every function
//!  wide       [ (u32 offset, u32 rule), ... ]         functions of 64 KiB and more, or rule ids beyond 2^16
//! ```

use super::rules::RuleId;

/// Unwind sections are smaller than this, so that an FDE's offset leaves a bit for [`State`].
pub(crate) const MAX_SECTION: u32 = 1 << 31;
const COMPILED: u32 = 1 << 31;

/// A function's FDE offset until it is compiled; from then on [`COMPILED`] and its place among the compiled functions.
#[derive(Clone, Copy, Debug)]
struct State(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compiled {
    first_row: u32,
    rows: u32,
    /// Length of the function in bytes.
    length: u32,
    wide: bool,
}

/// An offset from its function's start, and the rule that holds from there.
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
#[derive(Debug, Default)]
pub(crate) struct RowStore {
    states: Box<[State]>,
    functions: Vec<Compiled>,
    narrow: Vec<RowStart<u16>>,
    wide: Vec<RowStart<u32>>,
}

impl RowStore {
    /// A store for functions with FDEs at these offsets, each less than [`MAX_SECTION`].
    pub(crate) fn new(fdes: Box<[u32]>) -> Self {
        RowStore { states: fdes.into_iter().map(State).collect(), ..Self::default() }
    }

    pub(crate) fn functions(&self) -> usize {
        self.functions.len()
    }

    pub(crate) fn rows(&self) -> usize {
        self.narrow.len() + self.wide.len()
    }

    pub(crate) fn bytes_held(&self) -> usize {
        size_of_val(&*self.states)
            + self.functions.capacity() * size_of::<Compiled>()
            + self.narrow.capacity() * size_of::<RowStart<u16>>()
            + self.wide.capacity() * size_of::<RowStart<u32>>()
    }

    /// Gives back what was reserved for further rows.
    pub(crate) fn shrink(&mut self) {
        self.functions.shrink_to_fit();
        self.narrow.shrink_to_fit();
        self.wide.shrink_to_fit();
    }

    /// The rule at `offset` bytes into `function`.
    pub(crate) fn find(&self, function: usize, offset: u32) -> Found {
        let Some(&State(state)) = self.states.get(function) else { return Found::Outside };
        if state & COMPILED == 0 {
            return Found::NotCompiled { fde: state };
        }
        let Some(compiled) = self.functions.get((state & !COMPILED) as usize) else { return Found::Outside };
        if offset >= compiled.length {
            return Found::Outside;
        }
        let range = compiled.first_row as usize..(compiled.first_row + compiled.rows) as usize;
        let rule = if compiled.wide {
            self.wide.get(range).and_then(|rows| rule_at(rows, offset))
        } else {
            self.narrow.get(range).and_then(|rows| rule_at(rows, offset as u16))
        };
        rule.map_or(Found::Outside, |rule| Found::Rule(RuleId(rule)))
    }

    /// Adds a function's rows, which are sorted by offset; no rows for an FDE of which nothing can be made.
    pub(crate) fn insert(&mut self, function: usize, length: u32, rows: &[RowStart<u32>]) {
        let Some(state) = self.states.get_mut(function) else { return };
        let fits = |row: &RowStart<u32>| row.offset <= u16::MAX.into() && row.rule <= u16::MAX.into();
        let wide = length > u32::from(u16::MAX) + 1 || !rows.iter().all(fits);
        let first_row = if wide {
            self.wide.extend_from_slice(rows);
            self.wide.len() - rows.len()
        } else {
            let narrow = rows.iter().map(|row| RowStart { offset: row.offset as u16, rule: row.rule as u16 });
            self.narrow.extend(narrow);
            self.narrow.len() - rows.len()
        };
        *state = State(COMPILED | self.functions.len() as u32);
        self.functions.push(Compiled { first_row: first_row as u32, rows: rows.len() as u32, length, wide });
    }
}

fn rule_at<T: Copy + Ord + Into<u32>>(rows: &[RowStart<T>], offset: T) -> Option<u32> {
    let behind = rows.partition_point(|row| row.offset <= offset);
    Some(rows.get(behind.checked_sub(1)?)?.rule.into())
}

#[cfg(test)]
mod tests {
    use super::{Found, RowStart, RowStore};
    use crate::table::rules::RuleId;

    fn row(offset: u32, rule: u32) -> RowStart<u32> {
        RowStart { offset, rule }
    }

    #[test]
    fn rows_hold_until_the_next_and_functions_end() {
        let mut store = RowStore::new([100, 200, 300].into());
        assert_eq!(store.find(1, 0), Found::NotCompiled { fde: 200 });
        store.insert(1, 20, &[row(0, 5), row(4, 6)]);
        store.insert(0, 0x1_0000, &[row(0, 7), row(0xffff, 8)]);
        store.insert(2, 0x1_0001, &[row(0, 9), row(0x1_0000, 70_000)]);
        let expected = [
            (1, 3, 5),
            (1, 4, 6),
            (1, 19, 6),
            (0, 0xfffe, 7),
            (0, 0xffff, 8),
            (2, 0xffff, 9),
            (2, 0x1_0000, 70_000),
        ];
        for (function, offset, rule) in expected {
            assert_eq!(store.find(function, offset), Found::Rule(RuleId(rule)));
        }
        assert_eq!(store.find(1, 20), Found::Outside);
        assert_eq!(store.find(0, 0x1_0000), Found::Outside);
        assert_eq!(store.find(3, 0), Found::Outside);
    }

    #[test]
    fn a_function_without_rows_is_known_to_have_none() {
        let mut store = RowStore::new([0].into());
        store.insert(0, 0, &[]);
        assert_eq!(store.find(0, 0), Found::Outside);
    }
}
