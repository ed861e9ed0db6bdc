//! What a query for a time must answer, written down by hand.

use super::*;
use crate::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use crate::record::{ModuleId, ProcessId};

fn mapping(start: u64, end: u64, module: u32, since: u64) -> MappedModule {
    MappedModule {
        start: Avma(start),
        end: Avma(end),
        file_offset: FileOffset(0),
        bias: start,
        module: ModuleId(module),
        since: Nanos(since),
    }
}

fn module_at(tracker: &Tracker, pid: u32, address: u64, time: u64) -> Option<u32> {
    let process = tracker.process_at(Pid(pid), Nanos(time))?;
    tracker.mapping_at(process, Avma(address), Nanos(time)).map(|mapping| mapping.module.0)
}

#[test]
fn a_mapping_laid_over_another_replaces_it_from_then_on() {
    let mut tracker = Tracker::default();
    let process = tracker.existing(Pid(7), [Tid(7)]);
    tracker.map(process, mapping(0x1000, 0x5000, 1, 0));
    tracker.map(process, mapping(0x2000, 0x3000, 2, 100));
    assert_eq!(module_at(&tracker, 7, 0x2800, 99), Some(1));
    assert_eq!(module_at(&tracker, 7, 0x2800, 100), Some(2));
    assert_eq!(module_at(&tracker, 7, 0x1800, 100), Some(1));
    assert_eq!(module_at(&tracker, 7, 0x3800, 100), Some(1));
    assert_eq!(module_at(&tracker, 7, 0x5000, 100), None);
    let space = tracker.space_at(process, Nanos(100)).unwrap();
    let offsets: Vec<u64> = space.mappings().map(|m| m.file_offset.0).collect();
    assert_eq!(offsets, [0, 0, 0x2000], "the rest behind the new mapping starts later in the file");
}

#[test]
fn history_goes_with_the_watermark_in_running_processes_too() {
    let mut tracker = Tracker::default();
    let process = tracker.existing(Pid(7), [Tid(7)]);
    assert!(tracker.map(process, mapping(0x1000, 0x2000, 1, 0)));
    assert!(!tracker.map(process, mapping(0x1000, 0x2000, 1, 5)), "mapped again as it was");
    assert!(tracker.map(process, mapping(0x1000, 0x2000, 2, 10)));
    assert!(tracker.space_at(process, Nanos(10)).unwrap().has_history());
    assert_eq!(module_at(&tracker, 7, 0x1800, 9), Some(1));
    tracker.prune(Nanos(10));
    assert!(!tracker.space_at(process, Nanos(10)).unwrap().has_history());
    assert_eq!(module_at(&tracker, 7, 0x1800, 10), Some(2));
}

#[test]
fn a_reused_pid_is_another_process() {
    let mut tracker = Tracker::default();
    let parent = tracker.existing(Pid(1), [Tid(1)]);
    tracker.map(parent, mapping(0x1000, 0x2000, 1, 0));
    let (first, of) = tracker.fork(Pid(1), Pid(7), Nanos(10));
    assert_eq!(of, Some(parent));
    assert!(tracker.thread_ended(first, Tid(7), Nanos(20)));
    let (second, _) = tracker.fork(Pid(1), Pid(7), Nanos(30));
    tracker.exec(second, Nanos(35));
    assert_ne!(first, second);
    assert_eq!(tracker.process_at(Pid(7), Nanos(15)), Some(first));
    assert_eq!(tracker.process_at(Pid(7), Nanos(25)), Some(first), "the exit itself is still the first's");
    assert_eq!(tracker.process_at(Pid(7), Nanos(30)), Some(second));
    assert_eq!(module_at(&tracker, 7, 0x1800, 32), Some(1), "the child has its parent's mappings");
    assert_eq!(module_at(&tracker, 7, 0x1800, 40), None, "the program it executed has not");
    tracker.prune(Nanos(50));
    assert_eq!(tracker.process_at(Pid(7), Nanos(60)), Some(second));
    assert_eq!(module_at(&tracker, 7, 0x1800, 60), None);
}

#[test]
fn a_thread_that_ends_does_not_end_its_process() {
    let mut tracker = Tracker::default();
    let process = tracker.existing(Pid(7), [Tid(7), Tid(8)]);
    tracker.map(process, mapping(0x1000, 0x2000, 1, 0));
    assert!(!tracker.thread_ended(process, Tid(7), Nanos(10)), "the main thread may end first");
    tracker.prune(Nanos(20));
    assert_eq!(module_at(&tracker, 7, 0x1800, 30), Some(1));
    tracker.thread_started(process, Tid(9));
    assert!(!tracker.is_last_thread(process, Tid(9)));
    assert!(!tracker.thread_ended(process, Tid(8), Nanos(35)));
    assert!(!tracker.thread_ended(process, Tid(8), Nanos(36)), "told twice");
    assert!(
        !tracker.thread_ended(process, Tid(6), Nanos(37)),
        "one that had ended before the look at the process"
    );
    assert!(tracker.is_last_thread(process, Tid(9)));
    assert!(tracker.thread_ended(process, Tid(9), Nanos(40)));
    tracker.prune(Nanos(50));
    assert_eq!(tracker.process_at(Pid(7), Nanos(60)), None);
}

#[test]
fn a_program_runs_in_the_main_thread_whichever_executed_it() {
    let mut tracker = Tracker::default();
    let process = tracker.existing(Pid(7), [Tid(7), Tid(8)]);
    assert!(
        !tracker.thread_ended(process, Tid(7), Nanos(10)),
        "the one that executes it waits for the others"
    );
    tracker.exec(process, Nanos(20));
    tracker.map(process, mapping(0x1000, 0x2000, 1, 25));
    assert!(tracker.thread_ended(process, Tid(7), Nanos(30)));
}

#[test]
fn a_program_that_may_not_be_watched_has_not_ended_when_it_starts() {
    let mut tracker = Tracker::default();
    let (process, _) = tracker.fork(Pid(1), Pid(7), Nanos(10));
    tracker.exec(process, Nanos(20));
    assert!(
        !tracker.thread_ended(process, Tid(7), Nanos(21)),
        "the kernel takes the thread's own events from it"
    );
    tracker.map(process, mapping(0x1000, 0x2000, 1, 22));
    tracker.prune(Nanos(30));
    assert_eq!(module_at(&tracker, 7, 0x1800, 40), Some(1));
    assert!(tracker.thread_ended(process, Tid(7), Nanos(50)));
    let (unmapped, _) = tracker.fork(Pid(1), Pid(8), Nanos(60));
    assert!(tracker.thread_ended(unmapped, Tid(8), Nanos(70)), "it has executed nothing");
}

#[test]
fn a_change_in_the_parent_is_not_the_childs() {
    let mut tracker = Tracker::default();
    let parent = tracker.existing(Pid(1), [Tid(1)]);
    tracker.map(parent, mapping(0x1000, 0x2000, 1, 0));
    tracker.fork(Pid(1), Pid(2), Nanos(10));
    tracker.map(parent, mapping(0x1000, 0x2000, 9, 20));
    assert_eq!(module_at(&tracker, 1, 0x1800, 30), Some(9));
    assert_eq!(module_at(&tracker, 2, 0x1800, 30), Some(1));
}

/// The simplest thing that can be right: which mapping each page has.
#[test]
fn thousands_of_mappings_in_any_order_are_as_page_by_page() {
    const PAGES: u64 = 4096;
    let mut state = 7;
    let mut random = move |below: u64| {
        state = u64::wrapping_mul(state, 6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for longest in [1, 3, 2000] {
        let mut tracker = Tracker::default();
        let process = tracker.existing(Pid(7), [Tid(7)]);
        let mut pages = vec![None; PAGES as usize];
        for module in 0..6000 {
            let start = random(PAGES);
            let end = (start + 1 + random(longest)).min(PAGES);
            tracker.map(process, mapping(start << 12, end << 12, module, 1));
            pages[start as usize..end as usize].fill(Some((module, start << 12)));
        }
        for (page, &expected) in pages.iter().enumerate() {
            let found = tracker.mapping_at(process, Avma((page as u64) << 12), Nanos(1));
            assert_eq!(found.map(|mapping| (mapping.module.0, mapping.bias)), expected, "page {page}");
            let offset = found.map(|mapping| mapping.file_offset.0 - (mapping.start.0 - mapping.bias));
            assert_eq!(offset.unwrap_or(0), 0, "page {page}: what is left begins later in the file");
        }
        let mut last = Avma(0);
        for mapping in tracker.space_at(process, Nanos(1)).unwrap().mappings() {
            assert!(last <= mapping.start && mapping.start < mapping.end, "sorted, without overlap");
            last = mapping.end;
        }
    }
}

#[test]
fn a_pid_that_is_given_again_and_again_has_a_bound() {
    let mut tracker = Tracker::default();
    let pid = Pid(7);
    let ids: Vec<ProcessId> = (1..=1000).map(|time| tracker.fork(Pid(1), pid, Nanos(time)).0).collect();
    assert_eq!(tracker.process_at(pid, Nanos(1000)), Some(ids[999]));
    assert_eq!(tracker.process_at(pid, Nanos(990)), Some(ids[989]));
    // The first that is still known.
    let first = tracker.process_at(pid, Nanos(0)).unwrap();
    assert!(first > ids[900], "{first:?}");
    // Nobody told of the ends of those before the last.
    tracker.prune(Nanos(1000));
    assert_eq!(tracker.process_at(pid, Nanos(990)), Some(ids[999]));
}

/// Each child of a process with many mappings changes one: that costs what the change does, and not what the parent has.
#[test]
fn children_of_many_mappings_have_them_in_common() {
    const MAPPINGS: u64 = 20_000;
    const CHILDREN: u32 = 2_000;
    let place = |number: u64| 0x1_0000 + number * 0x2000;
    let mut tracker = Tracker::default();
    let parent = tracker.existing(Pid(1), [Tid(1)]);
    for number in 0..MAPPINGS {
        tracker.map(parent, mapping(place(number), place(number) + 0x1000, 1, 0));
    }
    // All of them again for each child would be 2.2 GB.
    let used = allocation_counter::measure(|| {
        for child in 2..2 + CHILDREN {
            let (id, _) = tracker.fork(Pid(1), Pid(child), Nanos(10));
            let at = place(u64::from(child) * 7 % MAPPINGS);
            assert!(tracker.map(id, mapping(at, at + 0x1000, child, 20)));
        }
    });
    assert!(used.bytes_max < 96 << 20, "{} bytes were held", used.bytes_max);
    for child in [2, 1 + CHILDREN] {
        let at = place(u64::from(child) * 7 % MAPPINGS);
        let [own, parents] = [child, 1].map(|pid| module_at(&tracker, pid, at, 30));
        assert_eq!((own, parents), (Some(child), Some(1)));
        assert_eq!(module_at(&tracker, child, at + 0x2000, 30), Some(1));
    }
    // The same of children that map something over all of it, which is remembered as it was.
    let used = allocation_counter::measure(|| {
        for child in 10_000..10_000 + CHILDREN {
            let (id, _) = tracker.fork(Pid(1), Pid(child), Nanos(30));
            assert!(tracker.map(id, mapping(0, place(MAPPINGS), child, 40)));
        }
    });
    assert!(used.bytes_max < 96 << 20, "{} bytes were held", used.bytes_max);
    for number in [0, 1, 100, 12_345, MAPPINGS - 1] {
        let at = |address, time| module_at(&tracker, 10_007, place(number) + address, time);
        assert_eq!([at(0, 35), at(0xfff, 39), at(0, 40)], [Some(1), Some(1), Some(10_007)]);
    }
    tracker.prune(Nanos(40));
    assert_eq!(module_at(&tracker, 10_007, place(5), 39), Some(10_007), "nobody asks for that any more");
}
