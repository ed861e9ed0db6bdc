//! What samples take of memory, by an allocator that counts. Its own binary, because it replaces the global one.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

use allocation_counter::{AllocationInfo, measure};
use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, EventKindId, ExportMachine, Sample, SampleKindId, ThreadId};

const MILLION: u64 = 1_000_000;

/// What a sample may take.
const MOST: u64 = 24;

/// Samples in a chunk, and what those take that are not packed yet.
const CHUNK: u64 = 4096;
const OPEN: u64 = CHUNK * 40;

/// A chunk of samples of which every byte differs.
const LARGEST: u64 = CHUNK * 36;

/// Numbers that look random, the same every time.
fn spread(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 7
}

/// Of a clock at 997 Hz on 64 CPUs, which are drained in turn: 2000 threads, 100,000 stacks.
fn of_clock(number: u64) -> Sample {
    let (round, at) = (number / 6_400, number % 6_400);
    Sample {
        time: Nanos(100_000_000_000_000 + (round * 100 + at % 100) * 1_003_009),
        thread: ThreadId((spread(number) % 2_000) as u32),
        stack: StackId((spread(number) >> 40) as u32 % 100_000),
        cpu: (at / 100) as u16,
        kind: SampleKindId(0),
        value: 1,
        attributes: AttributeListId::NONE,
    }
}

/// Times off up to ten minutes, with what they waited for, between samples of a clock.
fn with_attributes(number: u64) -> Sample {
    let sample = of_clock(number);
    if number.is_multiple_of(3) {
        return sample;
    }
    let value = (spread(number) % 600_000_000_000).cast_signed();
    Sample { kind: SampleKindId(1), value, attributes: AttributeListId(number as u32 % 5_000), ..sample }
}

fn added(
    machine: &mut ExportMachine,
    of: fn(u64) -> Sample,
    numbers: std::ops::Range<u64>,
) -> AllocationInfo {
    measure(|| numbers.for_each(|number| machine.add_sample(&of(number))))
}

#[test]
fn a_sample_takes_24_bytes_at_most() {
    for (of, expected) in [(of_clock as fn(u64) -> Sample, 12), (with_attributes, 20)] {
        let mut machine = ExportMachine::default();
        let took = added(&mut machine, of, 0..MILLION);
        let bytes = took.bytes_max / MILLION;
        assert!(bytes <= expected && expected <= MOST, "{bytes} bytes");
        assert!(machine.samples().bytes().abs_diff(took.bytes_current as u64) < OPEN);
    }
    let mut machine = ExportMachine::default();
    // With raw events, whose own bytes are not the samples'.
    let mut of_events = 0;
    let took = measure(|| {
        for number in 0..MILLION {
            machine.add_sample_of_event(&with_attributes(number), EventKindId(0), &[]);
        }
        of_events = machine.event_records().bytes();
    });
    let bytes = (took.bytes_current as u64).min(machine.samples().bytes()) / MILLION;
    assert!(of_events > 0 && machine.event_records().len() as u64 == MILLION);
    assert!(bytes <= MOST, "{bytes} bytes");
}

/// There is one allocation for the bytes of a chunk and one for the chunk, and the list of chunks grows by doubling.
#[test]
fn adding_allocates_by_the_chunk() {
    let mut machine = ExportMachine::default();
    added(&mut machine, with_attributes, 0..2 * CHUNK);
    let took = added(&mut machine, with_attributes, 2 * CHUNK..MILLION);
    let chunks = MILLION / CHUNK;
    assert!((chunks..2 * chunks + 16).contains(&took.count_total), "{} of {chunks} chunks", took.count_total);
}

#[test]
fn memory_ends_at_the_cap() {
    const CAP: u64 = 2 << 20;
    let folder = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for count in [MILLION / 2, 2 * MILLION] {
        let mut machine = ExportMachine::default();
        let path = folder.path().to_owned();
        let open = move || Ok(Box::new(tempfile::tempfile_in(&path)?) as Box<_>);
        machine.samples_mut().spill_beyond(CAP, open);
        let took = added(&mut machine, with_attributes, 0..count);
        assert_eq!(machine.samples().unwritten(), None);
        assert!(
            machine.samples().bytes_in_file() > 15 * count - CAP,
            "{}",
            machine.samples().bytes_in_file()
        );
        // 48 bytes for each chunk tell where it is; a list that grows is there twice for a moment.
        let lists = 3 * 48 * (count / CHUNK).next_power_of_two();
        assert!(took.bytes_max < CAP + OPEN + 2 * LARGEST + lists, "{} bytes at most", took.bytes_max);
        let mut sum = 0;
        let read = measure(|| sum = machine.samples().iter().map(|sample| u128::from(sample.time.0)).sum());
        assert!(read.bytes_max < LARGEST, "{} bytes to read", read.bytes_max);
        assert_eq!(sum, (0..count).map(|number| u128::from(with_attributes(number).time.0)).sum());
        let ordered = measure(|| assert!(machine.in_time_order().is_sorted_by_key(|(time, _)| time)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        machine.samples().check().unwrap();
        peaks.push(ordered.bytes_max);
    }
    // What is sorted at once, and the chunks that are held.
    assert!(peaks.iter().all(|&peak| peak < (24 << 20)), "{peaks:?}");
}
