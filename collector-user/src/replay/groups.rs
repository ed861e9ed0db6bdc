//! Counters that are read with each sample of another one, their group's leader, as `perf record -e '{a,b}:S'` has it.
//!
//! The kernel writes what each had counted by then: a sample is made of how much that is more than at the sample before. `perf script`
//! does the same (`deliver_sample_group` of `tools/perf/util/session.c`), and like there a counter's first sample has all until then.

use collector_common::ids::Tid;
use collector_common::perf::file::FileEvent;
use collector_common::perf::{AttrFlags, ReadValue};
use rustc_hash::FxHashMap;

/// The counters of a file.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By their ids.
    counters: FxHashMap<u64, Counter>,
    /// What a counter had at the sample before.
    before: FxHashMap<(u64, Tid), u64>,
}

#[derive(Debug)]
struct Counter {
    /// Its place among the file's events.
    event: usize,
    /// Children inherit it under the same id, and each thread has a value of its own.
    is_of_threads: bool,
}

impl Groups {
    pub(super) fn of(events: &[FileEvent]) -> Self {
        let mut counters = FxHashMap::default();
        for (event, file_event) in events.iter().enumerate() {
            let is_of_threads = file_event.attr.flags.contains(AttrFlags::INHERIT);
            for id in &file_event.ids {
                counters.entry(*id).or_insert(Counter { event, is_of_threads });
            }
        }
        Self { counters, before: FxHashMap::default() }
    }

    /// Which event a value is of, and how much more it is than at the sample before; `None` where no event has its id.
    pub(super) fn since(&mut self, value: &ReadValue, tid: Tid) -> Option<(usize, u64)> {
        let id = value.id?;
        let counter = self.counters.get(&id)?;
        let thread = if counter.is_of_threads { tid } else { Tid(0) };
        let before = self.before.insert((id, thread), value.value).unwrap_or(0);
        Some((counter.event, value.value.saturating_sub(before)))
    }
}

#[cfg(test)]
mod tests {
    use collector_common::perf::{Attr, ByteOrder, ParseConfig};

    use super::*;

    #[test]
    fn an_inherited_counter_is_one_of_each_thread() {
        let event = |flags, id| {
            let attr = Attr { flags, ..Attr::default() };
            let config = ParseConfig::from(&attr, ByteOrder::Little);
            FileEvent { attr, config, ids: vec![id], name: None }
        };
        let mut groups = Groups::of(&[event(AttrFlags::default(), 7), event(AttrFlags::INHERIT, 8)]);
        let mut since =
            |id, tid, value| groups.since(&ReadValue { value, id: Some(id), lost: None }, Tid(tid));
        let told = [(7, 1, 100), (7, 2, 130), (8, 1, 100), (8, 2, 130), (8, 1, 105), (8, 2, 130), (9, 1, 1)];
        let since = told.map(|(id, tid, value)| since(id, tid, value));
        let expected =
            [Some((0, 100)), Some((0, 30)), Some((1, 100)), Some((1, 130)), Some((1, 5)), Some((1, 0)), None];
        assert_eq!(since, expected);
    }
}
