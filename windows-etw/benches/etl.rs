//! How long it takes to go through all records of an `.etl` file: of real buffers, many times over, each time later.
//!
//! The files are those in `shared/data/etl` beside the checkout: `net.4.5.2.x64.etl`, of the kernel and .NET on 8 CPUs, in
//! packed buffers of 64 KiB, and `Process.etl`, of one provider on 2 CPUs, in buffers of 8 KiB. Throughput is of bytes in
//! the file; the packed one's is told once more by what it unpacks to.

#![allow(clippy::unwrap_used, reason = "a failed step of a bench should stop it")]

#[path = "../tests/etl/data.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod data;
#[path = "etl/later.rs"]
mod later;

use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windows_etw::etl::EtlFile;

/// Bytes that a file is made to have, about.
const LONG: usize = 200 << 20;

/// Goes through all records, and adds up what a reader looks at.
fn read(file: &[u8], records: u64) -> u64 {
    let mut file = EtlFile::open(Cursor::new(file)).unwrap();
    let (mut found, mut sum) = (0, 0);
    while let Some(record) = file.next_record().unwrap() {
        found += 1;
        let known = u64::from(record.provider.0[0]) + u64::from(record.descriptor.opcode);
        sum += known + record.ticks as u64 + record.payload.len() as u64 + u64::from(record.cpu);
    }
    assert!(file.losses().damages == 0 && file.losses().late_records == 0, "{:?}", file.losses());
    assert_eq!(found, records);
    sum
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("all records of an .etl file");
    group.sample_size(10);
    for (name, records) in [("net.4.5.2.x64.etl", 179_474), ("Process.etl", 10_344)] {
        let Some(bytes) = data::bytes(name) else { return };
        let unpacked = later::unpacked(&bytes);
        let rounds = LONG / unpacked.len();
        let long = later::repeated(&unpacked, rounds);
        // The first buffer is there once.
        let all =
            (records - later::first_records(&unpacked)) * rounds as u64 + later::first_records(&unpacked);
        group.throughput(Throughput::Bytes(long.len() as u64));
        group.bench_function(format!("{name}, {} MiB", long.len() >> 20), |bencher| {
            bencher.iter(|| read(black_box(&long), all));
        });
        if unpacked.len() > bytes.len() {
            for (kind, length) in [("in the file", bytes.len()), ("unpacked", unpacked.len())] {
                group.throughput(Throughput::Bytes(length as u64));
                group.bench_function(format!("{name} packed, bytes {kind}"), |bencher| {
                    bencher.iter(|| read(black_box(&bytes), records));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
