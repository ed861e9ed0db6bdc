//! How long it takes to read records, beside the crate `linux-perf-event-reader`.

use byteorder::LittleEndian;
use collector_common::ids::{Avma, FileOffset, Nanos, Pid, Tid};
use collector_common::perf::{
    Attr, AttrFlags, ByteOrder, Bytes, Callchain, Misc, Mmap2, ParseConfig, Parsed, Record, Registers,
    RegistersAbi, Sample, SampleId, SampleType, Text, UserStack, Words, records,
};
use collector_common::perf::{MappedFile, Switch};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use linux_perf_event_reader::{
    EventRecord, PerfEventAttr, RawData, RawEventRecord, RecordParseInfo, RecordType,
};

/// Those of a call-graph recording.
const REGISTERS: u64 = 0xff_0fff;

/// Records of one kind.
const COUNT: usize = 1000;

fn attr() -> Attr {
    Attr {
        sample_type: SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::PERIOD
            | SampleType::CALLCHAIN
            | SampleType::REGS_USER
            | SampleType::STACK_USER,
        sample_regs_user: REGISTERS,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

fn sample<'a>(frames: &'a [u64], registers: &'a [u64], stack: &'a [u8]) -> Record<'a> {
    Record::Sample(Sample {
        ip: Some(Avma(0x1000)),
        pid: Some(Pid(1)),
        tid: Some(Tid(2)),
        time: Some(Nanos(3)),
        cpu: Some(4),
        period: Some(5),
        callchain: Some(Callchain::from(Words::from(frames))),
        user_registers: Registers::new(RegistersAbi::BITS_64, REGISTERS, Words::from(registers)),
        user_stack: Some(UserStack { data: Bytes::from(stack), dyn_size: stack.len() as u64 }),
        ..Sample::default()
    })
}

/// A buffer with records of one kind.
fn buffer(record: &Record<'_>, config: &ParseConfig) -> Vec<u8> {
    let sample_id = SampleId {
        pid: Some(Pid(1)),
        tid: Some(Tid(2)),
        time: Some(Nanos(3)),
        cpu: Some(4),
        ..SampleId::default()
    };
    let parsed = Parsed { misc: Misc(2), record: *record, sample_id, rest: Bytes::default() };
    let mut bytes = Vec::new();
    for _ in 0..COUNT {
        parsed.write(config, &mut bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    bytes
}

/// The sum of what a profiler looks at.
fn ours(bytes: Bytes<'_>, config: &ParseConfig) -> u64 {
    let mut sum = 0;
    for raw in records(bytes, config.byte_order).flatten() {
        let Ok(parsed) = raw.parse(config) else { continue };
        sum += parsed.sample_id.time.map_or(0, |time| time.0);
        sum += match parsed.record {
            Record::Sample(sample) => {
                let frames: u64 = sample.callchain.map_or(0, |chain| chain.words.iter().sum());
                let stack_pointer = sample.user_registers.and_then(|registers| registers.get(7));
                let stack = sample.user_stack.map_or(0, |stack| stack.copied().len() as u64);
                frames.wrapping_add(stack_pointer.unwrap_or(0)) + stack
            }
            Record::Mmap2(mmap) => mmap.start.0 + mmap.path.bytes().len() as u64,
            _ => 0,
        };
    }
    sum
}

fn theirs(bytes: &[u8], info: &RecordParseInfo) -> u64 {
    let mut sum = 0;
    for raw in records(bytes, ByteOrder::NATIVE).flatten() {
        let data = RawData::from(raw.body.as_slice().unwrap_or_default());
        let record = RawEventRecord::new(RecordType(raw.kind.0), raw.misc.0, data, *info);
        sum += record.timestamp().unwrap_or(0);
        sum += match record.parse() {
            Ok(EventRecord::Sample(sample)) => {
                let frames = sample
                    .callchain
                    .map_or(0, |chain| (0..chain.len()).filter_map(|at| chain.get(at)).sum::<u64>());
                let stack_pointer = sample.user_regs.and_then(|registers| registers.get(7));
                let stack = sample.user_stack.map_or(0, |(data, size)| size.min(data.len() as u64));
                frames.wrapping_add(stack_pointer.unwrap_or(0)) + stack
            }
            Ok(EventRecord::Mmap2(mmap)) => mmap.address + mmap.path.len() as u64,
            _ => 0,
        };
    }
    sum
}

fn parse(criterion: &mut Criterion) {
    let attr = attr();
    let config = ParseConfig::from(&attr, ByteOrder::NATIVE);
    let mut bytes = Vec::new();
    attr.write(ByteOrder::Little, &mut bytes);
    let Ok((peer_attr, _)) = PerfEventAttr::parse::<_, LittleEndian>(bytes.as_slice()) else { return };
    let info = RecordParseInfo::new(&peer_attr, linux_perf_event_reader::Endianness::NATIVE);
    let frames = [0x1234_u64; 20];
    let registers = [0x7000_u64; REGISTERS.count_ones() as usize];
    let stack = [7_u8; 1024];
    let mmap = Mmap2 {
        pid: Pid(1),
        tid: Tid(2),
        start: Avma(0x1000),
        len: 0x1000,
        file_offset: FileOffset(0),
        file: MappedFile::Inode { major: 8, minor: 1, inode: 12345, generation: 0 },
        protection: 5,
        flags: 2,
        path: Text::new(b"/usr/lib/x86_64-linux-gnu/libc.so.6"),
    };
    let kinds = [
        ("sample", sample(&frames, &registers, &stack)),
        ("mmap2", Record::Mmap2(mmap)),
        ("switch", Record::Switch(Switch)),
    ];
    let mut group = criterion.benchmark_group("perf/parse");
    group.throughput(Throughput::Elements(COUNT as u64));
    for (name, record) in kinds {
        let bytes = buffer(&record, &config);
        assert_eq!(ours(Bytes::from(&bytes), &config), theirs(&bytes, &info), "{name}");
        group.bench_function(BenchmarkId::new("collector", name), |bencher| {
            bencher.iter(|| ours(Bytes::from(&bytes), &config));
        });
        let (first, second) = bytes.split_at(bytes.len() / 2 + 4);
        group.bench_function(BenchmarkId::new("collector, wrapped", name), |bencher| {
            bencher.iter(|| ours(Bytes::wrapped(first, second), &config));
        });
        group.bench_function(BenchmarkId::new("linux-perf-event-reader", name), |bencher| {
            bencher.iter(|| theirs(&bytes, &info));
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
