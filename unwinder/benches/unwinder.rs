//! Walks of the same captured stacks by this crate and by framehop: nanoseconds a frame (criterion's time divided by
//! its elements), hot (everything cached) and on a first pass (rules not compiled yet, caches empty). Only stacks that
//! both walk to the same length are used; how many are not is printed.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

#[path = "../tests/corpus/mod.rs"]
mod corpus;
mod framehop_peer;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use unwinder::{UnwindTable, Unwinder};

use corpus::{Captured, Run};
use framehop_peer::Peer;

struct Corpus {
    name: &'static str,
    run: Run,
    /// Indices of the stacks that both walk alike.
    common: Vec<usize>,
    frames: u64,
}

impl Corpus {
    fn new(name: &'static str, run: Option<Run>) -> Option<Self> {
        let run = run?;
        let (mut unwinder, mut peer) = (Unwinder::new(), Peer::new(&run.space));
        let mut frames = 0;
        let common: Vec<usize> = (0..run.stacks.len())
            .filter(|&index| {
                let stack = &run.stacks[index];
                let ours = walk(&mut unwinder, &run, stack);
                let same = ours == peer.walk(stack);
                frames += if same { ours } else { 0 };
                same
            })
            .collect();
        eprintln!(
            "{name}: {} stacks, {} walked alike by both, {frames} frames",
            run.stacks.len(),
            common.len()
        );
        Some(Corpus { name, run, common, frames })
    }

    fn stacks(&self) -> impl Iterator<Item = &Captured> {
        self.common.iter().map(|&index| &self.run.stacks[index])
    }
}

fn walk(unwinder: &mut Unwinder, run: &Run, stack: &Captured) -> u64 {
    let mut frames = 0;
    unwinder.unwind(&run.space, &stack.registers, &stack.stack(), |frame| {
        black_box(frame);
        frames += 1;
    });
    frames
}

fn compare(criterion: &mut Criterion) {
    let corpora = [
        Corpus::new("c", corpus::run("walks.c", &[])),
        Corpus::new("steps", corpus::run("steps.c", &["-Wl,-z,lazy"])),
        Corpus::new("cpp", corpus::run("exceptions.cc", &[])),
        Corpus::new("cpython", corpus::run_python()),
    ];
    for corpus in corpora.into_iter().flatten() {
        hot(criterion, &corpus);
        first_pass(criterion, &corpus);
    }
}

fn hot(criterion: &mut Criterion, corpus: &Corpus) {
    let mut group = criterion.benchmark_group(format!("hot/{}", corpus.name));
    group.throughput(Throughput::Elements(corpus.frames));
    let mut unwinder = Unwinder::new();
    group.bench_function("unwinder", |bencher| {
        bencher.iter(|| corpus.stacks().map(|stack| walk(&mut unwinder, &corpus.run, stack)).sum::<u64>());
    });
    let mut peer = Peer::new(&corpus.run.space);
    group.bench_function("framehop", |bencher| {
        bencher.iter(|| corpus.stacks().map(|stack| peer.walk(stack)).sum::<u64>());
    });
    group.finish();
}

fn first_pass(criterion: &mut Criterion, corpus: &Corpus) {
    let mut group = criterion.benchmark_group(format!("first_pass/{}", corpus.name));
    group.throughput(Throughput::Elements(corpus.frames));
    group.bench_function("unwinder", |bencher| {
        bencher.iter_batched_ref(
            || (Unwinder::new(), corpus.run.space.fresh()),
            |(unwinder, space)| {
                let count = |stack: &Captured| {
                    let mut frames = 0_u64;
                    unwinder.unwind(space, &stack.registers, &stack.stack(), |frame| {
                        black_box(frame);
                        frames += 1;
                    });
                    frames
                };
                corpus.stacks().map(count).sum::<u64>()
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("framehop", |bencher| {
        bencher.iter_batched_ref(
            || Peer::new(&corpus.run.space),
            |peer| corpus.stacks().map(|stack| peer.walk(stack)).sum::<u64>(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// From a file's bytes to a table, and from there to all rows compiled; the throughput is in bytes of text.
fn tables(criterion: &mut Criterion) {
    for name in ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libcrypto.so.3"] {
        let Ok(bytes) = std::fs::read(name) else {
            eprintln!("SKIPPED: {name} is not on this machine");
            continue;
        };
        let Ok(table) = <UnwindTable>::from_elf(bytes.as_slice()) else { continue };
        table.compile_all();
        let report = table.size_report();
        eprintln!("{name}: {report:?}");
        let mut group =
            criterion.benchmark_group(format!("table/{}", name.rsplit('/').next().unwrap_or(name)));
        group.throughput(Throughput::Bytes(report.text_bytes as u64));
        group
            .bench_function("from_elf", |bencher| bencher.iter(|| <UnwindTable>::from_elf(bytes.as_slice())));
        group.bench_function("compile_all", |bencher| {
            bencher.iter_batched_ref(
                || <UnwindTable>::from_elf(bytes.as_slice()),
                |table| table.iter().for_each(UnwindTable::compile_all),
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

criterion_group!(benches, compare, tables);
criterion_main!(benches);
