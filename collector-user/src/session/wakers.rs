//! Who woke whom: how often, and how long the woken had been blocked.

use std::borrow::Cow;
use std::cmp::Reverse;

use collector_common::intern::StringId;
use collector_common::record::{Column, ExportMachine, Table, Unit};
use collector_common::wire::COMM_LEN;
use rustc_hash::FxHashMap;

use super::times_off::Joined;
use crate::scenario::TimeOff;

/// Pairs that are told.
const MOST_ROWS: usize = 20;

/// What stands for a waker that is no thread.
const INTERRUPT: &str = "[interrupt]";

/// Times and nanoseconds, by the names of the waker and of the woken.
#[derive(Default)]
pub(super) struct Wakers {
    pairs: FxHashMap<(StringId, StringId), (f64, f64)>,
}

impl Wakers {
    /// Counts a time off, if somebody ended it.
    pub(super) fn count(&mut self, machine: &mut ExportMachine, joined: &Joined) {
        let data = &joined.data;
        if data.state == 0 || data.waker_comm[0] == 0 {
            return;
        }
        let waker = machine.intern_string(&waker_of(data));
        let woken = machine.thread(joined.taken.thread).name;
        let (times, blocked) = self.pairs.entry((waker, woken)).or_default();
        *times += data.weight;
        *blocked += data.weight * data.blocked_ns as f64;
    }

    /// The pairs of which the woken were blocked longest; `None` where there is none.
    pub(super) fn table(&self, machine: &ExportMachine) -> Option<Table> {
        let rows = self.pairs.iter().map(|(&(waker, woken), &(times, blocked))| {
            let label = format!("{} -> {}", machine.string(waker), machine.string(woken));
            (label, vec![times.round() as u64, blocked.round() as u64])
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_cached_key(|(label, numbers)| (Reverse(numbers.last().copied()), label.clone()));
        rows.truncate(MOST_ROWS);
        let column = |name: &str, unit| Column { name: name.to_owned(), unit };
        let columns = vec![column("times", Unit::Count), column("blocked", Unit::Nanoseconds)];
        (!rows.is_empty()).then(|| Table { name: "who woke whom".to_owned(), columns, rows })
    }
}

/// Who woke a thread, as text; empty where nobody did. Idle CPUs wake nobody: that was an interrupt.
pub(super) fn waker_of(data: &TimeOff) -> Cow<'_, str> {
    if data.waker_tid == 0 && data.waker_comm[0] != 0 { INTERRUPT.into() } else { name_of(&data.waker_comm) }
}

/// A thread's name, as the kernel has it.
pub(super) fn name_of(comm: &[u8; COMM_LEN]) -> Cow<'_, str> {
    String::from_utf8_lossy(comm.split(|byte| *byte == 0).next().unwrap_or_default())
}
