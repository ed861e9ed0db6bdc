//! Blocks of heaps and memory of the system, by records of which all is known.

use collector_common::ids::{Pid, Tid};
use collector_common::record::FrameId;
use windows_etw::decode::kernel::{HEAP, PAGE_FAULT};

use crate::made::{Made, Payload};
use crate::shown::{Shown, samples, table};

const HEAP_HANDLE: u64 = 0x20_0000;

/// An event of a heap: what it tells behind the heap's handle.
fn heap(made: &mut Made, at: i64, opcode: u8, (pid, tid): (u32, u32), words: &[u64]) {
    let payload = Payload::default().u64(&[HEAP_HANDLE]).u64(words).u32(&[0]);
    made.classic_of((Pid(pid), Tid(tid)), at, (HEAP, opcode, 2), &payload);
}

fn alloc(made: &mut Made, at: i64, who: (u32, u32), size: u64, address: u64) {
    heap(made, at, 33, who, &[size, address]);
}

fn free(made: &mut Made, at: i64, who: (u32, u32), address: u64) {
    heap(made, at, 36, who, &[address]);
}

fn values(samples: Vec<Shown>) -> Vec<(u64, i64)> {
    samples.into_iter().map(|it| (it.at, it.value)).collect()
}

#[test]
fn blocks_are_in_use_until_they_are_given_back() {
    let (one, other) = ((70, 71), (80, 81));
    let mut made = Made::of(&["memory_tracking"]);
    made.process(1, 1, 70, "made.exe");
    made.process(1, 1, 80, "other.exe");
    made.image(3, 10, 70, 0x10_0000, r"C:\made.exe");
    alloc(&mut made, 1000, one, 100, 0xa000);
    made.stack(1001, 1000, 70, 71, &[0x10_0010, 0x10_0020]);
    alloc(&mut made, 1100, one, 200, 0xb000);
    // The same address of another process.
    alloc(&mut made, 1200, other, 300, 0xa000);
    // The code that asked is not there any more when it is known that the block was kept.
    made.image(1300, 2, 70, 0x10_0000, r"C:\made.exe");
    // It is given another place and size: new, old, new size, old size.
    heap(&mut made, 1400, 34, one, &[0xc000, 0xb000, 250, 200]);
    free(&mut made, 1500, one, 0xd000);
    alloc(&mut made, 1600, other, 50, 0xe000);
    free(&mut made, 1700, other, 0xe000);
    // It was given back without a word, for it is given again.
    alloc(&mut made, 1800, one, 11, 0xf000);
    alloc(&mut made, 1900, one, 12, 0xf000);
    made.process(2000, 2, 80, "other.exe");
    // The number is another process's, which gives back what it never had.
    made.process(3000, 1, 80, "third.exe");
    free(&mut made, 3100, other, 0xa000);
    let machine = made.finish().machine;
    let all = [(1000, 100), (1100, 200), (1200, 300), (1400, 250), (1600, 50), (1800, 11), (1900, 12)];
    assert_eq!(values(samples(&machine, "alloc_space")), all);
    assert_eq!(values(samples(&machine, "alloc_objects")), all.map(|(at, _)| (at, 1)));
    let kept = samples(&machine, "inuse_space");
    let addresses = vec![0x10, 0x20];
    let attributes = "until=end of the recording".to_owned();
    assert_eq!(kept[0], Shown { at: 1000, value: 100, pid: 70, tid: 71, addresses, attributes });
    assert_eq!((kept[1].pid, kept[1].attributes.as_str()), (80, "until=exit"));
    assert_eq!(values(kept), [(1000, 100), (1200, 300), (1400, 250), (1900, 12)]);
    assert_eq!(values(samples(&machine, "inuse_objects")).len(), 4);
    let rows = table(&machine, "native memory");
    let rows: Vec<_> = rows.iter().map(|(label, row)| (label.as_str(), row[0], row[1], row[3])).collect();
    assert_eq!(rows, [("made.exe (70)", 5, 573, 2), ("other.exe (80)", 2, 350, 1)]);
    assert_eq!(
        machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name),
        "alloc_space"
    );
}

#[test]
fn a_heap_that_is_destroyed_keeps_nothing() {
    let mut made = Made::new();
    made.process(1, 1, 70, "made.exe");
    alloc(&mut made, 1000, (70, 71), 100, 0xa000);
    heap(&mut made, 1100, 35, (70, 71), &[]);
    let machine = made.finish().machine;
    assert_eq!(values(samples(&machine, "alloc_space")), [(1000, 100)]);
    assert_eq!(values(samples(&machine, "inuse_space")), []);
}

/// `VirtualAllocEx`, and what makes a process or a thread in another one: the stack is of who does it.
#[test]
fn what_is_done_to_another_process_has_the_stack_of_who_does_it() {
    const BASE: u64 = 0x1_4000_0000;
    let mut made = Made::new();
    for (pid, image) in [(70, r"C:\maker.exe"), (80, r"C:\child.exe")] {
        made.process(1, 1, pid, &image[3..]);
        made.thread(2, pid, pid + 1, "");
        made.image(3, 10, pid, BASE, image);
    }
    for at in [1000, 1100, 1200] {
        let payload = Payload::default().u64(&[0x50_0000, 0x3000]).u32(&[80, 0x1000]);
        made.classic(at, (PAGE_FAULT, 98, 2), 0, &payload);
    }
    made.stack(1001, 1000, 70, 71, &[BASE + 0x10, BASE + 0x20]);
    made.stack(1101, 1100, 80, 81, &[BASE + 0x10, BASE + 0x20]);
    made.stack(1201, 1200, 70, 71, &[0xffff_8000_0000_0010, BASE + 0x10]);
    let machine = made.finish().machine;
    let pids: Vec<_> = samples(&machine, "mapped_space").iter().map(|it| (it.pid, it.tid)).collect();
    assert_eq!(pids, [(80, 0), (80, 81), (80, 0)]);
    let path = |frame: FrameId| machine.string(machine.module(machine.frames().get(frame).module).path);
    let mapped = machine
        .samples()
        .iter()
        .filter(|it| machine.string(machine.kinds()[usize::from(it.kind.0)].name) == "mapped_space");
    let code: Vec<Vec<_>> =
        mapped.map(|it| machine.stacks().get(it.stack).iter().map(|frame| path(*frame)).collect()).collect();
    let [maker, child] = [r"C:\maker.exe", r"C:\child.exe"];
    assert_eq!(code[..2], [[maker; 2], [child; 2]]);
    assert_eq!(code[2].last(), Some(&maker));
}

#[test]
fn memory_of_the_system_is_committed_reserved_or_given_back() {
    let mut made = Made::of(&["memory_growth"]);
    made.process(1, 1, 70, "made.exe");
    for (at, opcode, size, flags) in [
        (1000, 98, 0x1_0000, 0x2000),
        (1100, 98, 0x3000, 0x1000),
        (1200, 98, 0x2000, 0x3000),
        // It is of no page: `MEM_RESET`.
        (1300, 98, 0x9000, 0x8_0000),
        (1400, 99, 0x1000, 0x4000),
        (1500, 99, 0x2000, 0x8000),
    ] {
        let payload = Payload::default().u64(&[0x50_0000, size]).u32(&[70, flags]);
        made.classic(at, (PAGE_FAULT, opcode, 2), 0, &payload);
    }
    made.stack(1101, 1100, 70, 71, &[0x10_0010]);
    let machine = made.finish().machine;
    let said = |name| -> Vec<_> {
        samples(&machine, name).into_iter().map(|it| (it.value, it.tid, it.attributes)).collect()
    };
    let of = |value, tid, operation: &str| (value, tid, format!("operation={operation}"));
    assert_eq!(said("mapped_space"), [of(0x3000, 71, "commit"), of(0x2000, 0, "reserve and commit")]);
    assert_eq!(said("reserved_space"), [of(0x1_0000, 0, "reserve")]);
    assert_eq!(said("unmapped_space"), [of(0x1000, 0, "decommit"), of(0x2000, 0, "release")]);
    let rows = table(&machine, "virtual memory");
    assert_eq!(rows, [("made.exe (70)".to_owned(), vec![0x5000, 0x1_0000, 0x3000])]);
    assert_eq!(
        machine.string(machine.kinds()[usize::from(machine.shown_kind().unwrap().0)].name),
        "mapped_space"
    );
}
