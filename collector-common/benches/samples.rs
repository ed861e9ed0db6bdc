//! What a sample takes when it is added to a recording, and when it is read again: in the order in which they were added, and in that of
//! time. Times are of this thread on a CPU, so that others on the machine do not count; each figure is the smallest of the rounds'.

use std::hint::black_box;

use collector_common::ids::Nanos;
use collector_common::intern::StackId;
use collector_common::record::{AttributeListId, ExportMachine, Sample, SampleKindId, ThreadId};
use rustix::time::{ClockId, clock_gettime};

const SAMPLES: u64 = 4_000_000;
const ROUNDS: usize = 5;

fn main() {
    // Cargo asks for the tests of a bench as well: there are none.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    measure("of a clock", |number, spread| Sample { value: 1, ..of(number, spread) });
    measure("of times, with attributes", |number, spread| Sample {
        value: (spread >> 24).cast_signed(),
        attributes: AttributeListId((spread % 30) as u32),
        ..of(number, spread)
    });
}

/// As two CPUs have them that are drained in turn, each thousand samples after the other's.
fn of(number: u64, spread: u64) -> Sample {
    let (round, at) = (number / 2_000, number % 2_000);
    Sample {
        time: Nanos(1_000_000_000_000 + (round * 1_000 + at % 1_000) * 1_003_009),
        thread: ThreadId((spread % 200) as u32),
        stack: StackId((spread >> 32) as u32 % 10_000),
        cpu: (at / 1_000) as u16,
        kind: SampleKindId(0),
        ..Sample::default()
    }
}

fn measure(name: &str, sample: impl Fn(u64, u64) -> Sample) {
    let samples: Vec<Sample> = (0..SAMPLES)
        .map(|number| sample(number, (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number >> 7))
        .collect();
    let mut least = [u64::MAX; 3];
    for _ in 0..ROUNDS {
        let mut machine = ExportMachine::default();
        let added = time(|| samples.iter().for_each(|sample| machine.add_sample(black_box(sample))));
        let sum = |sample: Sample| sample.time.0 ^ sample.value as u64 ^ u64::from(sample.stack.0);
        let read = time(|| black_box(machine.samples().iter().map(sum).fold(0, |all, one| all ^ one)));
        let ordered = time(|| black_box(machine.in_time_order().count()));
        least = [least[0].min(added), least[1].min(read), least[2].min(ordered)];
    }
    let [added, read, ordered] = least.map(|time| time as f64 / SAMPLES as f64);
    println!(
        "{SAMPLES} samples {name}: added {added:.1} ns, read {read:.1} ns, in time order {ordered:.1} ns"
    );
}

fn time<T>(work: impl FnOnce() -> T) -> u64 {
    let before = now();
    black_box(work());
    now() - before
}

/// Nanoseconds that this thread has run for.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
