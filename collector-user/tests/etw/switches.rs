//! Times that threads were blocked, by switches of which all is known.

use std::collections::BTreeSet;

use collector_common::record::{ExportMachine, Sample, Unit};
use export::import::Imported;

use crate::made::Made;
use crate::shown::{self, histograms};

const WAITS: u8 = 5;
const LOST_ITS_CPU: u8 = 1;
const HAS_ENDED: u8 = 4;

/// Samples of a kind: time, value, thread, addresses.
fn samples(machine: &ExportMachine, name: &str) -> Vec<(u64, i64, u32, Vec<u64>)> {
    let is_of = |sample: &Sample| {
        let kind = machine.kinds()[usize::from(sample.kind.0)];
        machine.string(kind.name) == name
    };
    let of = |sample: Sample| {
        let frames = machine.stacks().get(sample.stack).iter();
        let addresses = frames.map(|frame| machine.frames().get(*frame).address.0).collect();
        (sample.time.0, sample.value, machine.thread(sample.thread).tid.0, addresses)
    };
    machine.samples().iter().filter(is_of).map(of).collect()
}

#[test]
fn a_blocked_time_is_from_the_wait_to_the_next_switch_in() {
    let mut made = Made::new();
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "waiter");
    made.thread(3, 70, 72, "");
    made.switch(1000, 0, 71, WAITS, 0);
    made.switch(1500, 1, 72, LOST_ITS_CPU, 73);
    // On another CPU than it left.
    made.switch(4000, 1, 73, WAITS, 71);
    made.stack(4100, 4000, 70, 71, &[0x10_0010, 0x10_0020]);
    made.switch(4200, 0, 0, 2, 72);
    made.stack(4300, 4200, 70, 72, &[0x10_0030]);
    let imported = made.finish();
    assert_eq!(imported.left_out, [""; 0]);
    let machine = &imported.machine;
    // What 72 lost its CPU for is no wait, and 73 has not come back.
    assert_eq!(samples(machine, "off_cpu"), [(1000, 3000, 71, vec![0x10_0010, 0x10_0020])]);
    let sample = machine.samples().at(0);
    let kind = machine.kinds()[usize::from(sample.kind.0)];
    assert_eq!(kind.unit, Unit::Nanoseconds);
    assert_eq!(machine.attribute(sample.attributes, "wait_reason").as_deref(), Some("DelayExecution"));
    let thread = machine.thread(sample.thread);
    assert_eq!(machine.string(thread.name), "waiter");
    assert_eq!(machine.string(machine.process(thread.process).name), "made.exe");
    // Each switch is an event all the same, with its stack where it has one.
    let switches = machine.event_records().iter().filter(|(_, record, _)| {
        machine.string(machine.event_kinds()[usize::from(record.kind.0)].name)
            == "Windows Kernel/Thread/CSwitch"
    });
    let stacks: Vec<_> =
        switches.map(|(_, record, _)| (record.time.0, machine.stacks().get(record.stack).len())).collect();
    assert_eq!(stacks, [(1000, 0), (1500, 0), (4000, 2), (4200, 1)]);
}

#[test]
fn a_number_that_is_used_again_was_not_blocked_before() {
    let mut made = Made::new();
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "");
    made.switch(1000, 0, 71, WAITS, 0);
    made.thread(2000, 70, 71, "");
    made.switch(4000, 0, 0, 2, 71);
    let machine = made.finish().machine;
    assert_eq!(samples(&machine, "off_cpu"), []);
    // The new one waited for a CPU since it was made.
    assert_eq!(samples(&machine, "run_queue"), [(2000, 2000, 71, vec![])]);
}

#[test]
fn idle_cpus_are_no_samples_but_for_interrupts() {
    let mut made = Made::new();
    made.interval(0, 2500);
    made.sample(10, 0, 0, 0xffff_8000_0000_1000, 0);
    made.sample(20, 0, 0, 0xffff_8000_0000_1000, 1);
    made.sample(30, 1, 71, 0x10_0000, 0);
    made.stack(31, 30, 70, 71, &[0xffff_8000_0000_2000]);
    made.stack(32, 30, 70, 71, &[0x10_0000, 0x10_0010]);
    let imported = made.finish();
    let machine = &imported.machine;
    let kernel = 0xffff_8000_0000_1000;
    assert_eq!(
        samples(machine, "cpu"),
        [(20, 1, 0, vec![kernel]), (30, 1, 71, vec![kernel + 0x1000, 0x10_0000, 0x10_0010])]
    );
    assert_eq!(machine.kinds()[0].period, 250_000);
    let names = machine.processes().iter().map(|process| machine.string(process.name));
    assert_eq!(names.collect::<BTreeSet<_>>(), ["Idle", "[unknown]"].into());
}

/// The kind that is looked at first, of a trace that has a blocked time before its first sample.
fn shown(scenarios: &[&str]) -> String {
    let mut made = Made::of(scenarios);
    made.switch(1000, 0, 71, WAITS, 0);
    made.switch(1500, 0, 0, 2, 71);
    made.sample(1600, 0, 71, 0x10_0000, 0);
    let machine = made.finish().machine;
    machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name).to_owned()
}

#[test]
fn what_was_asked_for_is_looked_at_first_and_not_what_came_first() {
    assert_eq!(shown(&[]), "cpu");
    assert_eq!(shown(&["off_cpu"]), "off_cpu");
    assert_eq!(shown(&["off_cpu", "cpu_profiling"]), "cpu");
}

/// A thread from when it may run first, at 1100, to its end at 4200: every nanosecond is known.
fn life(made: &mut Made) {
    made.process(1, 1, 70, "made.exe");
    made.switch(900, 0, 50, WAITS, 0);
    made.thread(1000, 70, 71, "worker");
    made.ready(1100, 71);
    made.switch(1300, 0, 0, 2, 71);
    made.sample(2000, 0, 71, 0x10_0000, 0);
    made.stack(2001, 2000, 70, 71, &[0x10_0001]);
    made.switch(2500, 0, 71, LOST_ITS_CPU, 60);
    // On another CPU.
    made.switch(2700, 1, 61, WAITS, 71);
    made.switch(3000, 1, 71, WAITS, 0);
    made.ready(3600, 71);
    made.switch(3700, 0, 60, WAITS, 71);
    made.stack(3701, 3700, 70, 71, &[0x10_0002]);
    made.sample(4000, 0, 71, 0x10_0000, 0);
    made.switch(4200, 0, 71, HAS_ENDED, 0);
}

#[test]
fn all_time_of_a_thread_is_one_of_three_states() {
    let mut made = Made::of(&["wall_clock"]);
    life(&mut made);
    let machine = made.finish().machine;
    let all: Vec<_> = shown::samples(&machine, "wall_clock").into_iter().filter(|it| it.tid == 71).collect();
    let told: Vec<_> =
        all.iter().map(|it| (it.at, it.value, it.attributes.as_str(), it.addresses.clone())).collect();
    let expected = [
        (1100, 200, "state=runnable", vec![]),
        (1300, 700, "state=running", vec![0x10_0001]),
        (2500, 200, "state=runnable", vec![]),
        (3000, 600, "state=blocked wait_reason=DelayExecution", vec![0x10_0002]),
        (3600, 100, "state=runnable", vec![0x10_0002]),
        // It ran for 500 before it waited.
        (2900, 1100, "state=running", vec![0x10_0000]),
        (4000, 200, "state=running", vec![]),
    ];
    assert_eq!(told, expected);
    assert_eq!(all.iter().map(|it| it.value).sum::<i64>(), 4200 - 1100);
    // What the clock and the waits are for themselves was not asked for.
    assert!(["cpu", "off_cpu", "run_queue"].iter().all(|kind| shown::samples(&machine, kind).is_empty()));
}

/// Times and values of 71's samples of a kind, for these shortest times of `off_cpu` and `wall_clock`.
fn longer(shortest: [u64; 2], kind: &str) -> Vec<(u64, i64)> {
    let mut made = Made::of_longer(&["off_cpu", "wall_clock", "scheduling"], shortest);
    life(&mut made);
    let of_it = shown::samples(&made.finish().machine, kind).into_iter().filter(|it| it.tid == 71);
    of_it.map(|it| (it.at, it.value)).collect()
}

/// It waits for 200, 200 and, blocked for 600 and ready for 100, for 700.
#[test]
fn a_time_off_is_left_out_whole_by_how_long_it_took_in_all() {
    let running = [(1300, 700), (2900, 1100), (4000, 200)];
    let longest = [(1300, 700), (3000, 600), (3600, 100), (2900, 1100), (4000, 200)];
    assert_eq!(longer([0, 0], "wall_clock").len(), 7);
    assert_eq!(longer([0, 200], "wall_clock"), longer([0, 0], "wall_clock"));
    assert_eq!(longer([0, 201], "wall_clock"), longest);
    assert_eq!(longer([0, 700], "wall_clock"), longest);
    assert_eq!(longer([0, 701], "wall_clock"), running);
    assert_eq!(longer([700, 0], "off_cpu"), [(3000, 600)]);
    assert_eq!(longer([701, 0], "off_cpu"), []);
    // Each has its own, and waits for a CPU have none.
    assert_eq!(longer([701, 0], "wall_clock"), longer([0, 0], "wall_clock"));
    assert_eq!(longer([0, 701], "off_cpu"), [(3000, 600)]);
    assert_eq!(longer([701, 701], "run_queue"), [(1100, 200), (2500, 200), (3600, 100)]);
}

#[test]
fn who_woke_whom_is_told_of_the_kind_that_leaves_out_less() {
    let table = |shortest| {
        let mut made = Made::of_longer(&["off_cpu", "wall_clock"], shortest);
        woken(&mut made, [(0, None, 0)]);
        shown::table(&made.finish().machine, "who woke whom")
    };
    let row = [("sender -> waiter".to_owned(), vec![1, 600])];
    for shortest in [[0, 0], [700, 700], [701, 0], [0, 701]] {
        assert_eq!(table(shortest), row, "{shortest:?}");
    }
    assert_eq!(table([701, 701]), []);
}

#[test]
fn what_goes_on_at_the_end_is_time_of_threads_too() {
    let of = |tid, at, value, state: &str| (tid, at, value, format!("state={state}"));
    let told = [
        of(71, 1000, 1000, "blocked wait_reason=DelayExecution open=yes"),
        of(72, 1000, 200, "running"),
        of(72, 1200, 300, "blocked wait_reason=DelayExecution open=yes"),
        of(72, 1500, 500, "runnable open=yes"),
        of(73, 1100, 900, "runnable open=yes"),
        of(74, 1200, 800, "running"),
    ];
    assert_eq!(goes_on(0), told);
    // What there was of them up to then is how long they took.
    assert_eq!(goes_on(800), told);
    let without = |tids: &[u32]| {
        let is_left = |it: &&(u32, u64, i64, String)| it.3 == "state=running" || !tids.contains(&it.0);
        told.iter().filter(is_left).cloned().collect::<Vec<_>>()
    };
    assert_eq!(goes_on(801), without(&[72]));
    assert_eq!(goes_on(901), without(&[72, 73]));
}

/// Threads that are off their CPU for 1000, 800 and 900 when the trace ends, and those that ran: thread, time, value and attributes.
fn goes_on(shortest: u64) -> Vec<(u32, u64, i64, String)> {
    let mut made = Made::of_longer(&["wall_clock"], [0, shortest]);
    made.process(1, 1, 70, "made.exe");
    made.switch(1000, 0, 71, WAITS, 72);
    made.switch(1100, 1, 73, LOST_ITS_CPU, 0);
    made.switch(1200, 0, 72, WAITS, 74);
    made.ready(1500, 72);
    made.switch(2000, 2, 0, WAITS, 0);
    // What is told behind the last switch says nothing of threads.
    made.interval(9000, 10_000);
    let machine = made.finish().machine;
    shown::samples(&machine, "wall_clock")
        .into_iter()
        .map(|it| (it.tid, it.at, it.value, it.attributes))
        .collect()
}

#[test]
fn waits_for_a_cpu_are_counted_by_thread() {
    let mut made = Made::of(&["scheduling"]);
    life(&mut made);
    let machine = made.finish().machine;
    let waits: Vec<_> =
        samples(&machine, "run_queue").into_iter().map(|(at, value, tid, _)| (at, value, tid)).collect();
    assert_eq!(waits, [(1100, 200, 71), (2500, 200, 71), (3600, 100, 71)]);
    let of = |label: &str| (label.to_owned(), 3, 500);
    assert_eq!(histograms(&machine, "waits for a CPU"), [of("all threads"), of("worker")]);
    assert!(machine.kinds().iter().all(|kind| machine.string(kind.name) != "off_cpu"));
}

#[test]
fn where_it_is_told_when_a_thread_could_go_on_it_was_blocked_until_then() {
    let mut made = Made::of(&["off_cpu"]);
    life(&mut made);
    let machine = made.finish().machine;
    let of_it: Vec<_> = samples(&machine, "off_cpu").into_iter().filter(|it| it.2 == 71).collect();
    assert_eq!(of_it, [(3000, 600, 71, vec![0x10_0002])]);
}

/// 71 waits each 1000 nanoseconds for 600, and is made ready as `ready` does it.
fn woken(made: &mut Made, ready: impl IntoIterator<Item = (u16, Option<u32>, u8)>) {
    made.process(1, 1, 70, "made.exe");
    made.process(1, 1, 80, "other.exe");
    made.thread(2, 70, 71, "waiter");
    made.thread(3, 80, 81, "sender");
    made.thread(4, 80, 82, "");
    for ((cpu, of, flag), at) in ready.into_iter().zip((1000..).step_by(1000)) {
        made.switch(at, 0, 71, WAITS, 81);
        made.switch(at, 1, 61, LOST_ITS_CPU, 0);
        made.switch(at, 2, 61, LOST_ITS_CPU, 82);
        made.ready_by(at + 600, (cpu, of), flag, 71);
        made.switch(at + 700, 0, 81, LOST_ITS_CPU, 71);
    }
}

const BY_DPC: u8 = 1;

#[test]
fn a_blocked_time_has_who_ended_it() {
    let mut made = Made::of(&["off_cpu"]);
    let of_header = (0, Some(82), 0);
    woken(&mut made, [(0, None, 0), (1, None, 0), (2, None, 0), of_header, (0, None, BY_DPC), (9, None, 0)]);
    // It wakes once more under another name.
    made.rename(7000, 80, 81, "renamed");
    made.switch(8000, 0, 71, WAITS, 81);
    made.ready(8100, 71);
    made.switch(8200, 0, 81, LOST_ITS_CPU, 71);
    let machine = made.finish().machine;
    let of_it = shown::samples(&machine, "off_cpu").into_iter().filter(|it| it.tid == 71);
    let told: Vec<_> = of_it.map(|it| (it.at, it.value, it.attributes)).collect();
    let expected = [
        (1000, 600, " waker=sender"),
        (2000, 600, " waker=[interrupt]"),
        (3000, 600, " waker=other.exe"),
        (4000, 600, " waker=other.exe"),
        (5000, 600, " waker=[interrupt]"),
        (6000, 600, ""),
        (8000, 100, " waker=renamed"),
    ];
    let expected = expected.map(|(at, took, waker)| (at, took, format!("wait_reason=DelayExecution{waker}")));
    assert_eq!(told, expected);
    let row = |label: &str, numbers: [u64; 2]| (label.to_owned(), numbers.to_vec());
    let rows = [
        row("[interrupt] -> waiter", [2, 1200]),
        row("other.exe -> waiter", [2, 1200]),
        row("sender -> waiter", [1, 600]),
        row("renamed -> waiter", [1, 100]),
    ];
    assert_eq!(shown::table(&machine, "who woke whom"), rows);
}

#[test]
fn a_time_that_is_told_twice_was_ended_once() {
    let mut made = Made::new();
    woken(&mut made, [(0, None, 0)]);
    made.sample(1900, 0, 71, 0x10_0000, 0);
    let machine = made.finish().machine;
    let blocked = shown::samples(&machine, "wall_clock").into_iter().find(|it| it.at == 1000 && it.tid == 71);
    assert_eq!(
        blocked.map(|it| it.attributes).as_deref(),
        Some("state=blocked wait_reason=DelayExecution waker=sender")
    );
    let rows: Vec<_> = machine.tables().iter().flat_map(|table| &table.rows).cloned().collect();
    assert_eq!(rows, [("sender -> waiter".to_owned(), vec![1, 600])]);
}

/// 71 is off its CPU for 900 and 72 for 900, while switches are lost.
fn cut(shortest: u64) -> Imported {
    let mut made = Made::of_longer(&["off_cpu", "wall_clock"], [shortest; 2]);
    made.process(1, 1, 70, "made.exe");
    made.switch(100, 1, 71, WAITS, 0);
    made.switch(200, 0, 72, WAITS, 73);
    // 73 went, and 74 came.
    made.switch(500, 0, 74, WAITS, 0);
    made.ready(800, 71);
    made.switch(1000, 0, 0, 2, 71);
    made.stack(1001, 1000, 70, 71, &[0x10_0010]);
    // 72 has a CPU again, as nothing told that it could.
    made.switch(1100, 1, 0, 2, 72);
    made.finish()
}

#[test]
fn where_switches_were_lost_a_thread_did_what_nobody_knows() {
    let imported = cut(0);
    let machine = &imported.machine;
    let told = |kind, tid| {
        let of_it = shown::samples(machine, kind).into_iter().filter(|it| it.tid == tid);
        of_it.map(|it| (it.at, it.value, it.attributes, it.addresses.len())).collect::<Vec<_>>()
    };
    let line = |at, took, text: &str, depth| (at, took, text.to_owned(), depth);
    let of_71 = [
        line(100, 100, "state=blocked wait_reason=DelayExecution cut=yes", 0),
        line(200, 600, "state=unknown", 0),
        line(800, 200, "state=runnable", 1),
    ];
    assert_eq!(told("wall_clock", 71)[..3], of_71);
    assert_eq!(told("off_cpu", 71), [line(100, 100, "wait_reason=DelayExecution cut=yes", 0)]);
    assert_eq!(told("wall_clock", 72)[..1], [line(200, 900, "state=unknown", 0)]);
    assert_eq!(told("off_cpu", 72), []);
    let left_out = imported.left_out.join("\n");
    assert!(left_out.contains("2 times off a CPU are cut where switches of threads were lost"), "{left_out}");

    // How long they were gone for counts, whatever is known of it.
    let of_both = |shortest| {
        let machine = cut(shortest).machine;
        let told = |kind| shown::samples(&machine, kind).into_iter().filter(|it| [71, 72].contains(&it.tid));
        let is_off = |it: &shown::Shown| !it.attributes.starts_with("state=running");
        (told("off_cpu").count(), told("wall_clock").filter(is_off).count())
    };
    assert_eq!((of_both(0), of_both(900), of_both(901)), ((1, 4), (1, 4), (0, 0)));
}

#[test]
fn a_wait_that_another_cpu_ends_at_once_has_its_waker() {
    let mut made = Made::of(&["off_cpu"]);
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "waiter");
    made.thread(3, 70, 72, "sender");
    made.switch(100, 1, 0, 2, 72);
    made.switch(200, 0, 0, 2, 71);
    // 72 makes it ready at the tick of the switch, and once more a tick before it.
    made.ready_by(1000, (1, Some(72)), 0, 71);
    made.switch(1000, 0, 71, WAITS, 0);
    made.switch(1300, 0, 0, 2, 71);
    made.ready_by(1999, (1, None), 0, 71);
    made.switch(2000, 0, 71, WAITS, 0);
    made.switch(2700, 0, 0, 2, 71);
    made.switch(3000, 0, 71, WAITS, 0);
    made.switch(3600, 0, 0, 2, 71);
    let machine = made.finish().machine;
    let told = |kind| {
        let of_it = shown::samples(&machine, kind).into_iter().filter(|it| it.tid == 71);
        of_it.map(|it| (it.at, it.value, it.attributes)).collect::<Vec<_>>()
    };
    let expected = [
        (1000, 0, "wait_reason=DelayExecution waker=sender"),
        (2000, 0, "wait_reason=DelayExecution waker=sender"),
        (3000, 600, "wait_reason=DelayExecution"),
    ];
    assert_eq!(told("off_cpu"), expected.map(|(at, took, text)| (at, took, text.to_owned())));
    assert_eq!(shown::table(&machine, "who woke whom"), [("sender -> waiter".to_owned(), vec![2, 0])]);
}
