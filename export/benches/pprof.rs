//! A million samples to pprof, and back to the hottest functions.
//!
//! The recording has the shape of a busy machine's: 200 threads, 40,000 distinct stacks of 5 to 45 frames out of
//! 12,000, most samples on few of them.

use std::hint::black_box;
use std::io::Cursor;

use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Svma, Tid};
use collector_common::record::{
    AttributeListId, ExportMachine, Frame, FrameFlags, FrameId, Module, ModuleKind, ModuleMapping, Sample,
    Unit,
};
use criterion::{Criterion, criterion_group, criterion_main};
use export::format::folded::Folded;
use export::format::pprof::Pprof;
use export::format::{ExportFormat, Profile};
use export::hottest::Hottest;
use export::import::{self, ImportFormat as _};
use export::symbolize::Symbols;

const SAMPLES: u64 = 1_000_000;

/// xorshift64*: the same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % limit.max(1)
    }
}

fn busy() -> (ExportMachine, Symbols) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut machine = ExportMachine::default();
    let kind = machine.add_kind("cpu", Unit::Count, 1_003_009);
    let mut threads = Vec::new();
    for index in 0..200_u32 {
        let process = machine.add_process(Pid(1_000 + index / 4), "program", None, Nanos(0));
        let name = machine.intern_string(&format!("worker {index}"));
        threads.push(machine.intern_thread(process, Tid(1_000 + index), name));
    }
    let mut frames: Vec<FrameId> = Vec::new();
    for index in 0..12_u32 {
        let path = machine.intern_string(&format!("/usr/lib/libbusy{index}.so.1"));
        let module = machine.add_module(Module { kind: ModuleKind::File, path, build_id: None });
        machine.add_mapping(ModuleMapping {
            process: machine.thread(threads[0]).process,
            module,
            start: Avma(0x7f00_0000_1000),
            end: Avma(0x7f00_0010_0000),
            file_offset: FileOffset(0x1000),
            bias: 0x7f00_0000_0000,
            since: Nanos(0),
        });
        for function in 0..1_000 {
            let flags = FrameFlags(FrameFlags::RETURN_ADDRESS);
            let address = Svma(0x1000 + function * 0x40 + 5);
            frames.push(machine.intern_frame(Frame { module, address, flags }));
        }
    }
    let mut symbols = Symbols::unresolved(&machine);
    for frame in &frames {
        let name = format!("program::module_{}::function_{}", frame.0 % 97, frame.0 / 2);
        symbols.set(*frame, &name, &name);
    }
    let stacks: Vec<_> = (0..40_000)
        .map(|_| {
            let depth = 5 + random.below(41);
            let stack: Vec<FrameId> = (0..depth).map(|_| frames[random.below(frames.len())]).collect();
            machine.intern_stack(&stack)
        })
        .collect();
    for tick in 0..SAMPLES {
        let spread = random.below(1 << 15) as f64 / f64::from(1 << 15);
        machine.add_sample(&Sample {
            time: Nanos(tick * 1_000),
            thread: threads[random.below(threads.len())],
            stack: stacks[(spread.powi(4) * stacks.len() as f64) as usize],
            cpu: (tick % 8) as u16,
            kind,
            value: 1,
            attributes: AttributeListId::NONE,
        });
    }
    (machine, symbols)
}

fn bench(criterion: &mut Criterion) {
    let (machine, symbols) = busy();
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
