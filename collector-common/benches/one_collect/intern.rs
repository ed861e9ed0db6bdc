//! Hits of strings and call stacks beside `one_collect`'s, in the manner of its own bench `intern`, in turns in one process:
//! `cargo xtask bench one_collect`. A frame of theirs is an address of 8 bytes, one of ours an id of 4. Times are of this thread on a CPU.

use std::hint::black_box;
use std::time::Duration;

use collector_common::intern::{InternedCallstacks, InternedStrings};
use collector_common::record::FrameId;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};

const TURNS: usize = 3;
/// Items that are hit in turn in a set that holds as many.
const MANY: u32 = 1024;

/// Measures `hit` by the time that this thread runs for, so that others on the machine do not count.
fn measure<T>(group: &mut BenchmarkGroup<'_, WallTime>, name: String, mut hit: impl FnMut() -> T) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let start = now();
            for _ in 0..times {
                black_box(hit());
            }
            now() - start
        });
    });
}

/// How long this thread has run.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn one_string(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("string hit");
    let mut ours = InternedStrings::default();
    let mut theirs = one_collect::intern::InternedStrings::new(8);
    for turn in 1..=TURNS {
        ours.intern("Test");
        measure(&mut group, format!("collector {turn}"), || ours.intern(black_box("Test")));
        theirs.to_id("Test");
        measure(&mut group, format!("one_collect {turn}"), || theirs.to_id(black_box("Test")));
    }
    group.finish();
}

fn one_stack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call stack hit, 5 frames");
    let mut ours = InternedCallstacks::default();
    let mut theirs = one_collect::intern::InternedCallstacks::new(8);
    let (frames, addresses) = ([0, 1, 2, 3, 4].map(FrameId), [0, 1, 2, 3, 4]);
    for turn in 1..=TURNS {
        ours.intern(&frames);
        measure(&mut group, format!("collector {turn}"), || ours.intern(black_box(&frames)));
        theirs.to_id(&addresses);
        measure(&mut group, format!("one_collect {turn}"), || theirs.to_id(black_box(&addresses)));
    }
    group.finish();
}

/// The same among many, which their sets have buckets for.
fn one_of_many(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("string hit, each of 1024");
    let mut ours = InternedStrings::default();
    let mut theirs = one_collect::intern::InternedStrings::new(MANY as usize);
    let words: Vec<String> = (0..MANY).map(|number| format!("Test {number}")).collect();
    for turn in 1..=TURNS {
        for word in &words {
            ours.intern(word);
            theirs.to_id(word);
        }
        let mut next = words.iter().cycle();
        measure(&mut group, format!("collector {turn}"), || next.next().map(|word| ours.intern(word)));
        measure(&mut group, format!("one_collect {turn}"), || next.next().map(|word| theirs.to_id(word)));
    }
    group.finish();
}

criterion_group!(benches, one_string, one_stack, one_of_many);
criterion_main!(benches);
