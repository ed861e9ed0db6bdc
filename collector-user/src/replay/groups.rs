//! Counters that are read with each sample of another one, their group's leader, as `perf record -e '{a,b}:S'` has it.
//!
//! The kernel writes what each had counted by then: a sample is made of how much that is more than at the sample before. `perf script`
//! does the same (`deliver_sample_group` of `tools/perf/util/session.c`), and like there a counter's first sample has all until then.

use collector_common::ids::Tid;
use collector_common::perf::file::FileEvent;
use collector_common::perf::{AttrFlags, Counters, Sample};
use rustc_hash::FxHashMap;

/// The counters of a file.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By their ids.
    counters: FxHashMap<u64, Counter>,
    /// The most that a counter had at a sample.
    before: FxHashMap<(u64, Tid), u64>,
    /// Of each event, the sample that had a value of it last.
    told: Vec<u64>,
    samples: u64,
    /// Values that nothing tells whose they are.
    of_no_event: u64,
}

#[derive(Debug)]
struct Counter {
    /// Its place among the file's events.
    event: usize,
    /// Children inherit it under the same id, and each thread has a value of its own.
    is_of_threads: bool,
}

/// How much more was counted than at the sample before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Of the sample's own event, where that is read with it.
    pub(super) own: Option<u64>,
    /// Of others, by their places among the file's events: those that have counted anything.
    pub(super) others: Vec<(usize, u64)>,
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
        Self { counters, told: vec![0; events.len()], ..Self::default() }
    }

    /// What the counters had that were read with a sample of `event`. To be called in the order in which samples were recorded.
    pub(super) fn counted(&mut self, event: Option<usize>, sample: &Sample<'_>) -> Counted {
        let mut counted = Counted::default();
        let Some(Counters::Group(values)) = sample.read.map(|read| read.counters) else { return counted };
        self.samples += 1;
        for value in values.iter() {
            let Some((id, counter)) = value.id.and_then(|id| Some((id, self.counters.get(&id)?))) else {
                self.of_no_event += 1;
                continue;
            };
            // The kernel tells each once.
            if std::mem::replace(&mut self.told[counter.event], self.samples) == self.samples {
                continue;
            }
            let thread = sample.tid.filter(|_| counter.is_of_threads).unwrap_or(Tid(0));
            let before = self.before.entry((id, thread)).or_default();
            let since = value.value.saturating_sub(*before);
            *before = value.value.max(*before);
            if Some(counter.event) == event {
                counted.own = Some(since);
            } else if since > 0 {
                counted.others.push((counter.event, since));
            }
        }
        counted
    }

    /// How many values nothing told whose they were.
    pub(super) fn of_no_event(&self) -> u64 {
        self.of_no_event
    }
}

#[cfg(test)]
mod tests {
    use collector_common::perf::{Attr, ByteOrder, GroupValues, ParseConfig, ReadFormat, ReadValues, Words};

    use super::*;

    /// Of an event whose counters no thread has its own of, and one whose counters each has.
    fn groups() -> Groups {
        let event = |flags, ids| {
            let attr = Attr { flags, ..Attr::default() };
            let config = ParseConfig::from(&attr, ByteOrder::Little);
            FileEvent { attr, config, ids, name: None }
        };
        Groups::of(&[event(AttrFlags::default(), vec![7, 6]), event(AttrFlags::INHERIT, vec![8])])
    }

    /// What a sample of the first event tells that has these values and ids.
    fn counted(groups: &mut Groups, tid: u32, values: &[u64]) -> Counted {
        let values = GroupValues::new(Words::from(values), ReadFormat::ID);
        let read = ReadValues { time_enabled: None, time_running: None, counters: Counters::Group(values) };
        groups.counted(Some(0), &Sample { tid: Some(Tid(tid)), read: Some(read), ..Sample::default() })
    }

    #[test]
    fn an_inherited_counter_is_one_of_each_thread() {
        let mut groups = groups();
        let told =
            [(1, [100, 7, 100, 8]), (2, [130, 7, 130, 8]), (1, [131, 7, 105, 8]), (2, [131, 7, 130, 8])];
        let counted = told.map(|(tid, values)| counted(&mut groups, tid, &values));
        let expected = [(100, Some(100)), (30, Some(130)), (1, Some(5)), (0, None)];
        let expected = expected.map(|(own, other)| Counted {
            own: Some(own),
            others: other.map(|since| (1, since)).into_iter().collect(),
        });
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_sample_has_one_value_of_each_event_whatever_it_says() {
        let mut groups = groups();
        let values: Vec<u64> = (1..=2_000).flat_map(|value| [value, 8]).collect();
        assert_eq!(counted(&mut groups, 1, &values), Counted { own: None, others: vec![(1, 1)] });
        assert_eq!(counted(&mut groups, 1, &[5, 7, 9, 6]), Counted { own: Some(5), others: vec![] });
        assert_eq!(groups.of_no_event(), 0);
        assert_eq!(counted(&mut groups, 1, &[9, 9]), Counted::default());
        assert_eq!(groups.of_no_event(), 1);
    }

    #[test]
    fn what_falls_is_counted_when_it_is_more_than_it_ever_was() {
        let mut groups = groups();
        let own = [10, 15, 10, 20].map(|value| counted(&mut groups, 1, &[value, 7]).own);
        assert_eq!(own, [10, 5, 0, 5].map(Some));
    }
}
