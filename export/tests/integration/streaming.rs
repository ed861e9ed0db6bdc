//! Formats that are written as the recording is read: what they hold meanwhile does not depend on how many samples there are.

use std::io::Write as _;

use collector_common::ids::{Nanos, Pid, Svma, Tid};
use collector_common::record::{
    ClockAnchor, ExportMachine, Frame, FrameFlags, ModuleId, Sample, SampleKindId, Unit,
};
use export::format::otlp::Requests;
use export::format::{Profile, by_name};
use export::symbolize::Symbols;

use crate::counted::Counted;

/// Samples of a shorter and of a longer recording. Both are beyond what is sorted at once.
const SAMPLES: [u64; 2] = [600_000, 900_000];

/// And beyond the list that speedscope's writer holds.
const SAMPLES_OF_SPEEDSCOPE: [u64; 2] = [1_100_000, 1_400_000];

/// So many samples of two kinds, on 500 stacks of ten frames, of 50 threads: every 64 are out of order.
fn long(samples: u64) -> (ExportMachine, Symbols) {
    let mut machine = ExportMachine::default();
    machine.system_mut().clocks.start =
        Some(ClockAnchor { monotonic: Nanos(0), realtime: 1_750_000_000_000_000_000, boottime: None });
    machine.add_kind("cpu", Unit::Count, 1_000_000);
    machine.add_kind("heap", Unit::Bytes, 1);
    let process = machine.add_process(Pid(7), "app", None, Nanos(0));
    let threads: Vec<_> = (0..50)
        .map(|at| {
            let name = machine.intern_string(&format!("thread {at}"));
            machine.intern_thread(process, Tid(7 + at), name)
        })
        .collect();
    let mut frame = |address| {
        let flags = FrameFlags(FrameFlags::KERNEL);
        machine.intern_frame(Frame { module: ModuleId::KERNEL, address: Svma(address), flags })
    };
    let outer: Vec<_> = (0..9).map(|at| frame(1 << 40 | at)).collect();
    let inner: Vec<_> = (0..500).map(frame).collect();
    let stacks: Vec<_> =
        inner.into_iter().map(|inner| machine.intern_stack(&[&[inner], &outer[..]].concat())).collect();
    for at in 0..samples {
        let of = |count: usize, factor: u64| (at * factor) as usize % count;
        machine.add_sample(&Sample {
            time: Nanos((at ^ (at % 7) << 3) * 1_000),
            thread: threads[of(threads.len(), 7)],
            stack: stacks[of(stacks.len(), 11)],
            kind: SampleKindId(u16::from(at % 4 == 0)),
            value: 1,
            cpu: (at % 3) as u16,
            ..Sample::default()
        });
    }
    let symbols = Symbols::unresolved(&machine);
    (machine, symbols)
}

/// What is held at most while each recording is written, and what was written.
fn held(samples: [u64; 2], write: impl Fn(Profile<'_>, &mut Counted)) -> [(u64, u64); 2] {
    samples.map(|samples| {
        let (machine, symbols) = long(samples);
        let mut out = Counted::default();
        let used = allocation_counter::measure(|| {
            write(Profile { machine: &machine, symbols: &symbols }, &mut out);
        });
        (used.bytes_max, out.0)
    })
}

/// The longer one takes no more memory, but for lists of what is in each chunk of 4096 samples: a byte for two samples is too much. And all of it
/// is written.
fn assert_flat(name: &str, samples: [u64; 2], write: impl Fn(Profile<'_>, &mut Counted)) {
    let [(less, shorter), (more, longer)] = held(samples, write);
    println!("{name}: {less} and {more} bytes for {shorter} and {longer}");
    let further = samples[1] - samples[0];
    assert!(more < less + further / 2, "{name}: {less} bytes, then {more}");
    assert!(longer - shorter > further, "{name}: {shorter} bytes were written, then {longer}");
}

fn format_is_flat(name: &str, samples: [u64; 2]) {
    let format = by_name(name).unwrap();
    assert_flat(name, samples, |profile, out| format.export(profile, out).unwrap());
}

#[test]
fn nettrace_does_not_grow_with_samples() {
    format_is_flat("nettrace", SAMPLES);
}

#[test]
fn jfr_does_not_grow_with_samples() {
    format_is_flat("jfr", SAMPLES);
}

#[test]
fn perfetto_does_not_grow_with_samples() {
    format_is_flat("perfetto", SAMPLES);
}

#[test]
fn speedscope_does_not_grow_with_samples() {
    format_is_flat("speedscope", SAMPLES_OF_SPEEDSCOPE);
}

#[test]
fn requests_of_otlp_do_not_grow_with_samples() {
    assert_flat("requests of OTLP", SAMPLES, |profile, out| {
        for request in Requests::new(profile, 500_000) {
            out.write_all(&request.unwrap().bytes).unwrap();
        }
    });
}
