//! Recordings of so few things that what the page must show of them follows by hand.

use collector_common::ids::{Nanos, Pid};
use collector_common::record::{
    AttributeListId, ESTIMATED, FrameFlags, ModuleKind, SampleKindId, ThreadId, Unit,
};

use super::Recording;

const MS: u64 = 1_000;
const NS_PER_MS: i64 = 1_000_000;

/// A second of three threads. `main` runs until 100 ms, is blocked until 300 ms, runs until 400 ms, is blocked until
/// 900 ms and runs again. `worker` runs from 200 to 250 ms, has an estimate of 300 ms at 500 ms, a page fault at
/// 600 ms, a lock from 700 to 800 ms, and waits for a CPU from 850 to 900 ms. `db` runs for 10 ms.
pub(super) fn timeline() -> Recording {
    let mut made = Recording::new("known", "app", 2);
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let off_cpu = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let faults = made.machine.add_kind("page-faults", Unit::Count, 1);
    let lock = made.machine.add_kind("lock", Unit::Nanoseconds, 1);
    let wall_clock = made.machine.add_kind("wall_clock", Unit::Nanoseconds, 1);
    let app = made.machine.add_process(Pid(10), "app", None, Nanos(0));
    let db = made.machine.add_process(Pid(20), "db", None, Nanos(0));
    let [main, worker] = [(10, "main"), (11, "worker")].map(|(tid, name)| made.thread(app, tid, name));
    let other = made.thread(db, 20, "db");
    let stacks = leaves(&mut made, "/bin/app", &["compute", "wait_for_input"]);
    let [compute, wait] = [stacks[0], stacks[1]];

    let run = |made: &mut Recording, thread: ThreadId, from: u64, to: u64| {
        for ms in from..to {
            made.sample(ms * MS, thread, 0, compute, cpu, 1);
        }
    };
    for (from, to) in [(0, 100), (300, 400), (900, 1_000)] {
        run(&mut made, main, from, to);
    }
    run(&mut made, worker, 200, 250);
    run(&mut made, other, 0, 10);
    made.sample(100 * MS, main, 0, wait, off_cpu, 200 * NS_PER_MS);
    made.sample(400 * MS, main, 0, wait, off_cpu, 500 * NS_PER_MS);
    let estimated = list(&mut made, ESTIMATED, "yes");
    made.sample_with(500 * MS, worker, 1, wait, (off_cpu, 300 * NS_PER_MS, estimated));
    made.sample(600 * MS, worker, 1, compute, faults, 1);
    made.sample(700 * MS, worker, 1, wait, lock, 100 * NS_PER_MS);
    let runnable = list(&mut made, "state", "runnable");
    made.sample_with(850 * MS, worker, 1, wait, (wall_clock, 50 * NS_PER_MS, runnable));
    made.end(1_000 * MS)
}

/// 100 samples, each of 2 ms: `work` 20, `old` 30, `same` 50.
pub(super) fn base() -> Recording {
    counted("/old/bin/prog", 2_000_000, &[("work", 20), ("old", 30), ("same", 50)])
}

/// 200 samples, each of 1 ms: `work` 80, `fresh` 20, `same` 100.
pub(super) fn new() -> Recording {
    counted("/new/bin/prog", 1_000_000, &[("same", 100), ("fresh", 20), ("work", 80)])
}

/// Samples of one other kind.
pub(super) fn other_kind() -> Recording {
    let mut made = Recording::new("other", "prog", 1);
    let kind = made.machine.add_kind("alloc_space", Unit::Bytes, 1);
    one_thread(&mut made, "/bin/prog", kind, &[("work", 1)]);
    made.end(MS)
}

/// 5,000 threads, each with 20 ticks and 20 times off, and one that has most of the others.
pub(super) fn crowd(samples: usize) -> Recording {
    let mut made = Recording::new("crowd", "", 8);
    let cpu = made.machine.add_kind("cpu", Unit::Count, 1_000_000);
    let off_cpu = made.machine.add_kind("off_cpu", Unit::Nanoseconds, 1);
    let stacks = leaves(&mut made, "/bin/crowd", &["compute", "wait"]);
    let mut threads = Vec::new();
    for process in 0..50 {
        let pid = 1_000 + process * 1_000;
        let id = made.machine.add_process(Pid(pid), "crowd", None, Nanos(0));
        threads.extend((0..100).map(|thread| made.thread(id, pid + thread, &format!("thread {thread}"))));
    }
    for index in 0..samples {
        let us = index as u64 * 10;
        let thread = if index < 200_000 { threads[index % threads.len()] } else { threads[0] };
        let (stack, kind, value) =
            if index / threads.len() % 2 == 0 { (0, cpu, 1) } else { (1, off_cpu, 30 * NS_PER_MS) };
        made.sample(us, thread, (index % 8) as u16, stacks[stack], kind, value);
    }
    made.end(samples as u64 * 10)
}

fn counted(module: &str, period: u64, functions: &[(&str, u64)]) -> Recording {
    let mut made = Recording::new("known", "prog", 1);
    let kind = made.machine.add_kind("cpu", Unit::Count, period);
    one_thread(&mut made, module, kind, functions);
    let samples: u64 = functions.iter().map(|&(_, count)| count).sum();
    made.end(samples * MS)
}

fn one_thread(made: &mut Recording, module: &str, kind: SampleKindId, functions: &[(&str, u64)]) {
    let process = made.machine.add_process(Pid(7), "prog", None, Nanos(0));
    let thread = made.thread(process, 7, "prog");
    let names: Vec<&str> = functions.iter().map(|&(name, _)| name).collect();
    let stacks = leaves(made, module, &names);
    let leaves = functions.iter().zip(stacks).flat_map(|(&(_, count), stack)| (0..count).map(move |_| stack));
    for (ms, stack) in (0..).zip(leaves) {
        made.sample(ms * MS, thread, 0, stack, kind, 1);
    }
}

/// Stacks of functions that `main` calls.
fn leaves(made: &mut Recording, module: &str, names: &[&str]) -> Vec<usize> {
    let module = made.module(ModuleKind::File, module);
    let main = made.frame(module, FrameFlags::RETURN_ADDRESS, Some("main"));
    let leaf = |name: &&str| {
        let frame = made.frame(module, 0, Some(name));
        made.stack(&[frame, main])
    };
    names.iter().map(leaf).collect()
}

fn list(made: &mut Recording, name: &str, value: &str) -> AttributeListId {
    let pair = [name, value].map(|text| made.machine.intern_string(text));
    made.machine.attributes_mut().intern(&[(pair[0], pair[1])])
}
