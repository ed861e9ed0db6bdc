//! Times that threads were blocked, by switches of which all is known.

use std::collections::BTreeSet;

use collector_common::record::{ExportMachine, Sample, Unit};

use crate::made::Made;

const WAITS: u8 = 5;
const LOST_ITS_CPU: u8 = 1;

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
    assert_eq!(made.finish().machine.samples().len(), 0);
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
