//! Filters that the kernel applies: it records what they let through, by what they come to when each occurrence is read.

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use collector_common::event::filter::{self, Predicate};
use collector_common::event::{Event, EventData};
use collector_common::ids::Nanos;
use collector_common::loss::{Ledger, LossCause};
use collector_user::kernel::online_cpus;
use collector_user::source::perf::PerfEvents;
use collector_user::source::{EventIndex, EventRequest, Settings, Source as _, Targets, Trigger};
use collector_user::tracefs::Tracefs;

use crate::prerequisites::live;

/// The number of `getpgrp`, which nothing else calls here.
const RARELY: i64 = libc::SYS_getpgrp;

/// Records plain perf events of this process and what it makes while `work` runs. Gives the data of all records by the
/// position of their request, and what was lost.
fn record_own(requests: &[EventRequest], work: impl FnOnce()) -> (Vec<Vec<Vec<u8>>>, Ledger) {
    let targets = Targets { pids: [std::process::id()].into(), ..Targets::default() };
    let settings = Settings { clock: false, targets, ..Settings::default() };
    let mut events = PerfEvents::open(&settings, false, requests, &online_cpus().unwrap()).unwrap();
    events.start().unwrap();
    work();
    events.stop().unwrap();
    let mut records = vec![Vec::new(); requests.len()];
    events.drain(Nanos(u64::MAX), &mut |record| {
        records[usize::from(record.event.0) - 1].push(record.data.to_vec());
    });
    let mut ledger = Ledger::default();
    events.close(&mut ledger).unwrap();
    (records, ledger)
}

/// A request for a tracepoint with its filter as the kernel gets it.
fn request(position: usize, event: &Event) -> EventRequest {
    let filter = event.kernel_filter().map(|text| std::ffi::CString::new(text).unwrap());
    let index = EventIndex::of_hook(position.try_into().unwrap());
    EventRequest { filter, ..EventRequest::new(index, Trigger::Tracepoint(event.id().0)) }
}

fn tracepoint(name: &str, text: &str) -> Event {
    let mut event = Tracefs::open().unwrap().event(name).unwrap();
    event.set_filter(Some(&filter::parse(text).unwrap())).unwrap();
    event
}

#[test]
fn what_a_filter_leaves_out_is_not_recorded_and_not_lost() {
    const RARE: usize = 100;
    let Some(_live) = live("what_a_filter_leaves_out_is_not_recorded_and_not_lost") else { return };
    let event = tracepoint("raw_syscalls:sys_enter", &format!("id == {RARELY}"));
    let passing = request(0, &event);
    let all = EventRequest { filter: None, ..request(1, &event) };
    // The kernel has no such field, and takes no filter.
    let refused = EventRequest { filter: Some(c"nonsense == 1".to_owned()), ..request(2, &event) };
    let (records, ledger) = record_own(&[passing, all, refused], || {
        for _ in 0..RARE {
            _ = rustix::process::getpgrp();
            (1..100).for_each(|_| _ = rustix::process::getppid());
        }
    });
    let [passing, all, refused] = &records[..] else { panic!() };
    let predicate = filter::parse(&format!("id == {RARELY}")).unwrap().compile(event.format()).unwrap();
    let read: Vec<_> = all.iter().filter(|data| accepts(&predicate, &event, data)).cloned().collect();
    assert_eq!([passing.len(), read.len()], [RARE; 2]);
    assert_eq!(*passing, read);
    assert!(all.len() >= 100 * RARE && refused.len() >= 100 * RARE, "{} {}", all.len(), refused.len());
    // Each occurrence that an event counts is a record: what its filter leaves out is not counted.
    assert_eq!(ledger.total_lost(), 0, "{ledger:?}");
}

fn accepts(predicate: &Predicate, event: &Event, data: &[u8]) -> bool {
    predicate.accepts(&EventData::new(data, data, event.format())).unwrap()
}

/// A tracepoint, what tells its occurrences between the start and the end of [`work`], and filters. The kernel can say all
/// of those that end without a comment sign `#`.
const FILTERS: [(&str, &str, &[&str]); 4] = [
    (
        "sched:sched_switch",
        "prev_comm == 'marked-0'",
        &[
            "prev_comm == 'marked-0'",
            "prev_comm != 'marked-1'",
            "prev_comm starts_with 'mark'",
            "prev_comm contains 'ed-'",
            "not prev_comm starts_with 'other'",
            "prev_comm ~ '*d-*'",
            "prev_comm ends_with '-0' and prev_state & 1 #",
            "prev_comm ~ 'm*d-?' and prev_pid > 0 #",
            "prev_state & 1",
            "prev_state & 3 != 0 or prev_comm == 'nobody'",
            "not prev_state & 0x8000",
            "prev_prio >= -2147483648 and next_prio > -1",
            "next_pid > -1 and common_preempt_count <= 255",
            "not (prev_pid <= 0 or next_pid < 0)",
            "next_pid == 0 or next_pid != 0",
            "common_pid > 1 and common_flags < 256 #",
        ],
    ),
    (
        "sched:sched_waking",
        "comm == 'wakee'",
        &[
            "comm == 'wakee'",
            "comm ~ 'wak*'",
            "comm != 'marked-0'",
            "not (comm != 'wakee' and comm != 'other')",
            "prio <= 139 and target_cpu >= 0",
        ],
    ),
    (
        "sched:sched_process_exec",
        "pid > 0",
        &[
            "filename == '/bin/true'",
            "filename starts_with '/bin/'",
            "filename contains 'n/tr'",
            "old_pid > 0 and filename ends_with 'true' #",
        ],
    ),
    (
        "raw_syscalls:sys_enter",
        "id == 110 or id == 111",
        &["id == 111", "id >= 111", "id & 1", "not id & 1", "id > 110 and id < 0x70"],
    ),
];

/// Things of all these kinds happen to threads that are called so meanwhile alone.
fn work() {
    let name = |name| rustix::thread::set_name(name).unwrap();
    let (go, told) = mpsc::channel::<()>();
    let (tell, done) = mpsc::channel::<()>();
    let wakee = thread::Builder::new().name("wakee".to_owned()).spawn(move || {
        tell.send(()).unwrap();
        while told.recv().is_ok() {
            tell.send(()).unwrap();
        }
    });
    done.recv().unwrap();
    let marked = thread::spawn(move || {
        name(c"marked-0");
        for _ in 0..100 {
            _ = rustix::process::getppid();
            _ = rustix::process::getpgrp();
            go.send(()).unwrap();
            done.recv().unwrap();
            thread::sleep(std::time::Duration::from_micros(50));
        }
        name(c"no more");
    });
    marked.join().unwrap();
    wakee.unwrap().join().unwrap();
    for program in ["/bin/true", "/bin/cat"] {
        let status = Command::new(program).stdin(std::process::Stdio::null()).status();
        assert!(status.unwrap().success());
    }
}

#[test]
fn the_kernel_takes_filters_as_they_are_meant() {
    let Some(_live) = live("the_kernel_takes_filters_as_they_are_meant") else { return };
    for (name, marked, filters) in FILTERS {
        let events: Vec<Event> =
            filters.iter().map(|text| tracepoint(name, text.trim_end_matches('#'))).collect();
        let mut requests: Vec<_> = events.iter().enumerate().map(|(at, event)| request(at, event)).collect();
        let refused: Vec<_> = requests.iter().filter(|request| request.filter.is_none()).collect();
        assert!(refused.is_empty(), "{refused:?}");
        requests.push(EventRequest { filter: None, ..request(events.len(), &events[0]) });
        let (mut records, ledger) = record_own(&requests, work);
        assert_eq!(ledger.lost(LossCause::RingFull), 0, "{name}: {ledger:?}");
        let all = records.pop().unwrap();
        for ((text, event), mut recorded) in filters.iter().zip(&events).zip(records) {
            let compiled = |text: &str| filter::parse(text).unwrap().compile(event.format()).unwrap();
            let (is_meant, is_marked) = (compiled(text.trim_end_matches('#')), compiled(marked));
            recorded.retain(|data| accepts(&is_marked, event, data));
            if text.ends_with('#') {
                recorded.retain(|data| accepts(&is_meant, event, data));
            }
            let passes =
                |data: &&Vec<u8>| accepts(&is_marked, event, data) && accepts(&is_meant, event, data);
            let mut expected: Vec<_> = all.iter().filter(passes).cloned().collect();
            // Of two CPUs, at nearly one time.
            expected.sort();
            recorded.sort();
            assert!(!expected.is_empty(), "{name}: {text}: nothing of it happened");
            assert_eq!(recorded.len(), expected.len(), "{name}: {text}: {:?}", event.kernel_filter());
            assert_eq!(recorded, expected, "{name}: {text}");
        }
    }
}
