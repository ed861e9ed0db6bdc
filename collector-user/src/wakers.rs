//! Who woke whom: how often, and how long the woken had been blocked.

use std::cmp::Reverse;

use collector_common::intern::StringId;
use collector_common::record::{Column, ExportMachine, Table, Unit};
use rustc_hash::FxHashMap;

/// Pairs that are told.
const MOST_ROWS: usize = 20;

/// What stands for a waker that is no thread.
pub(crate) const INTERRUPT: &str = "[interrupt]";

/// Times and nanoseconds, by the names of the waker and of the woken.
#[derive(Default)]
pub(crate) struct Wakers {
    pairs: FxHashMap<(StringId, StringId), (f64, f64)>,
}

impl Wakers {
    /// Counts times that the waker ended, and the nanoseconds of all of them.
    pub(crate) fn count(&mut self, waker: StringId, woken: StringId, (times, blocked): (f64, f64)) {
        let sum = self.pairs.entry((waker, woken)).or_default();
        sum.0 += times;
        sum.1 += blocked;
    }

    /// The pairs of which the woken were blocked longest; `None` where there is none.
    pub(crate) fn table(&self, machine: &ExportMachine) -> Option<Table> {
        let mut pairs: Vec<_> = self
            .pairs
            .iter()
            .map(|(pair, (times, blocked))| (*pair, times.round() as u64, blocked.round() as u64))
            .collect();
        pairs.sort_by_key(|((waker, woken), _, blocked)| {
            (Reverse(*blocked), machine.string(*waker), machine.string(*woken))
        });
        pairs.truncate(MOST_ROWS);
        let rows = pairs.into_iter().map(|((waker, woken), times, blocked)| {
            let label = format!("{} -> {}", machine.string(waker), machine.string(woken));
            (label, vec![times, blocked])
        });
        let rows: Vec<_> = rows.collect();
        let column = |name: &str, unit| Column { name: name.to_owned(), unit };
        let columns = vec![column("times", Unit::Count), column("blocked", Unit::Nanoseconds)];
        (!rows.is_empty()).then(|| Table { name: "who woke whom".to_owned(), columns, rows })
    }
}
