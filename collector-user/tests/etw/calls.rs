//! System calls and page faults, by records of which all is known, and by `PerfView`'s list of a real trace.

use windows_etw::decode::kernel::{LOST_EVENT, PAGE_FAULT, PERF_INFO};

use crate::data::{baseline, counts, import, value};
use crate::made::{Made, Payload};
use crate::shown::{Shown, histograms, samples, table};

const KERNEL: u64 = 0xffff_f800_0000_0000;
const READ: u64 = KERNEL + 0x1230;
const CLOSE: u64 = KERNEL + 0x4560;

fn enter(made: &mut Made, at: i64, cpu: u16, address: u64) {
    made.classic(at, (PERF_INFO, 51, 2), cpu, &Payload::default().u64(&[address]));
}

fn exit(made: &mut Made, at: i64, cpu: u16, status: u32) {
    made.classic(at, (PERF_INFO, 52, 2), cpu, &Payload::default().u32(&[status]));
}

#[test]
fn a_call_is_of_the_thread_that_runs_and_ends_on_any_cpu() {
    let mut made = Made::of(&["syscalls"]);
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "worker");
    made.image(3, 10, 0, KERNEL, r"\SystemRoot\system32\ntoskrnl.exe");
    // Nobody knows who runs there.
    enter(&mut made, 10, 1, READ);
    made.switch(1000, 0, 0, 2, 71);
    enter(&mut made, 1100, 0, READ);
    // It waits within the call, and another thread calls meanwhile.
    made.switch(1200, 0, 71, 5, 72);
    enter(&mut made, 1300, 0, CLOSE);
    exit(&mut made, 1350, 0, 0xc000_0008);
    made.switch(1400, 1, 0, 2, 71);
    exit(&mut made, 1600, 1, 0);
    made.stack(1601, 1600, 70, 71, &[0x10_0010]);
    // Its beginning was not seen.
    exit(&mut made, 1700, 1, 0);
    enter(&mut made, 1800, 1, READ);
    exit(&mut made, 1900, 1, 0x8000_0005);
    let machine = made.finish().machine;
    let all = samples(&machine, "syscalls");
    let attributes = "call=ntoskrnl.exe+0x1230".to_owned();
    let addresses = vec![0x1230, 0x10_0010];
    assert_eq!(all[1], Shown { at: 1100, value: 500, pid: 70, tid: 71, addresses, attributes });
    assert_eq!((all[0].tid, all[0].value), (72, 50));
    assert_eq!(all[0].attributes, "call=ntoskrnl.exe+0x4560 error=0xc0000008");
    assert_eq!((all[2].at, all[2].value, all.len()), (1800, 100, 3));
    let row = |label: &str, numbers: [u64; 5]| (label.to_owned(), numbers.to_vec());
    let expected =
        [row("ntoskrnl.exe+0x1230", [2, 0, 600, 300, 500]), row("ntoskrnl.exe+0x4560", [1, 1, 50, 50, 50])];
    assert_eq!(table(&machine, "system calls"), expected);
    assert_eq!(histograms(&machine, "times of system calls")[0], ("all calls".to_owned(), 3, 650));
    assert_eq!(
        machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name),
        "syscalls"
    );
}

#[test]
fn a_call_whose_exit_was_lost_does_not_last_to_another_ones() {
    let mut made = Made::of(&["syscalls"]);
    made.switch(1000, 0, 0, 2, 71);
    enter(&mut made, 1100, 0, READ);
    made.classic(1200, (LOST_EVENT, 32, 2), 0, &Payload::default());
    made.switch(1300, 0, 0, 2, 71);
    exit(&mut made, 9000, 0, 0);
    enter(&mut made, 9100, 0, CLOSE);
    exit(&mut made, 9200, 0, 0);
    let machine = made.finish().machine;
    let values: Vec<_> = samples(&machine, "syscalls").iter().map(|it| it.value).collect();
    assert_eq!(values, [100]);
}

#[test]
fn faults_are_minor_or_wait_for_a_disk() {
    let mut made = Made::of(&["page_faults"]);
    made.process(1, 1, 70, "made.exe");
    made.thread(2, 70, 71, "");
    for (at, opcode) in [(1000, 11), (1100, 12), (1200, 10), (1300, 13)] {
        made.classic(at, (PAGE_FAULT, opcode, 2), 0, &Payload::default().u64(&[0x1234, 0x10_0010]));
        // Whose they are, their stacks alone tell.
        made.stack(at + 1, at as u64, 70, 71, &[0x10_0010]);
    }
    let hard = |began: u64| Payload::default().u64(&[began, 0, 0x1234, 0]).u32(&[71, 8192]);
    made.classic(9000, (PAGE_FAULT, 32, 2), 0, &hard(2500));
    let machine = made.finish().machine;
    let said: Vec<_> =
        samples(&machine, "minor-faults").into_iter().map(|it| (it.tid, it.attributes)).collect();
    let kinds = ["demand zero", "copy on write", "transition", "guard page"];
    assert_eq!(said, kinds.map(|kind| (71, format!("kind={kind}"))));
    assert_eq!(samples(&machine, "major-faults").len(), 1);
    let waits = samples(&machine, "fault_wait");
    let attributes = "bytes=8192".to_owned();
    assert_eq!(waits, [Shown { at: 2500, value: 6500, pid: 70, tid: 71, addresses: vec![], attributes }]);
    let rows = table(&machine, "page faults");
    assert_eq!(rows, [("made.exe (70)".to_owned(), vec![4, 1, 6500])]);
    assert_eq!(
        machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name),
        "minor-faults"
    );
}

/// `PerfView` lists how long major faults took, and of which files.
#[test]
fn major_faults_are_as_they_are_listed() {
    let Some(imported) = import("net.4.5.2.x64.etl") else { return };
    let (machine, baseline) = (&imported.machine, baseline("net.4.5.2.x64.etl"));
    let all = samples(machine, "fault_wait");
    let count = counts(&baseline).find(|(name, _)| *name == "Windows Kernel/Memory/HardFault").unwrap().1;
    assert_eq!((all.len() as u64, samples(machine, "major-faults").len() as u64), (count, count));
    let (start, mut listed) = (machine.system().start.0 as f64, 0);
    for line in baseline.lines().filter(|line| line.contains(" Windows Kernel/Memory/HardFault PID=")) {
        let millis: f64 = line[6..].split_once(": ").unwrap().0.replace(',', "").parse().unwrap();
        let took: f64 = value(line, "ElapsedTimeMSec").replace(',', "").parse().unwrap();
        let path = value(line, "FileName").trim_end_matches("...");
        let is_it = |it: &&Shown| {
            ((it.at as f64 + it.value as f64 - start) / 1e6 - millis).abs() < 0.001
                && (it.value as f64 / 1e6 - took).abs() < 0.001
                && it.pid.to_string() == value(line, "PID")
                && it.attributes.starts_with(&format!("path={path}"))
        };
        assert_eq!(all.iter().filter(is_it).count(), 1, "{line}");
        listed += 1;
    }
    assert!(listed >= 4, "{listed}");
}
