//! A million samples on 40,000 stacks to pprof, and back to the hottest functions.

mod busy;

use std::hint::black_box;
use std::io::Cursor;

use busy::busy;
use criterion::{Criterion, criterion_group, criterion_main};
use export::format::folded::Folded;
use export::format::pprof::Pprof;
use export::format::{ExportFormat, Profile};
use export::hottest::Hottest;
use export::import::{self, ImportFormat as _};

const SAMPLES: u64 = 1_000_000;
const STACKS: usize = 40_000;

fn bench(criterion: &mut Criterion) {
    let (machine, symbols) = busy(SAMPLES, STACKS);
    let profile = Profile { machine: &machine, symbols: &symbols };
    let mut group = criterion.benchmark_group("1,000,000 samples");
    group.sample_size(10);
    let mut written = Vec::new();
    group.bench_function("to pprof", |bencher| {
        bencher.iter(|| {
            written.clear();
            Pprof.write(profile, &mut written).map(|()| black_box(written.len()))
        });
    });
    println!("pprof: {} bytes", written.len());
    group.bench_function("to folded", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::new();
            Folded.write(profile, &mut out).map(|()| black_box(out.len()))
        });
    });
    group.bench_function("to the hottest functions", |bencher| {
        bencher.iter(|| Hottest::of(profile, collector_common::record::SampleKindId(0)).rows.len());
    });
    group.bench_function("from pprof to the hottest functions", |bencher| {
        bencher.iter(|| {
            let imported = import::pprof::Pprof.import(&mut Cursor::new(&written));
            imported.map(|it| {
                let profile = Profile { machine: &it.machine, symbols: &it.symbols };
                Hottest::of_main(profile).rows.len()
            })
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
