//! What strings and call stacks of 5 frames take: a hit, and each insert on the way to 10 million, with the longest single one.
//! `cargo xtask bench intern`; `benches/one_collect` has hits beside `one_collect`'s.
//!
//! Each insert is clocked twice: by the wall, and by the time that this thread was on a CPU (a switch to another thread is in it in
//! part); the third line is the latter of those inserts in which no other thread took the CPU. What interrupts and a hypervisor did is in all
//! of them: how much that is tell as many hits of one item, which are clocked alike. No round is left out. The clocks' reading is part of each.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use collector_common::intern::{InternedCallstacks, InternedStrings};
use collector_common::record::FrameId;
use rustix::time::{ClockId, clock_gettime};

const ITEMS: u32 = 10_000_000;
const ROUNDS: usize = 3;
const HITS: u32 = 20_000_000;
/// Items that are hit in turn.
const FEW: u32 = 1024;
/// Nanoseconds of a pause.
const PAUSE: u32 = 1_000_000;

fn main() -> io::Result<()> {
    // Cargo asks for the tests of a bench as well: there are none.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    let texts: Vec<String> = (0..FEW).map(|number| format!("Test {number}")).collect();
    hits("strings of 6 to 9 bytes", InternedStrings::default, |strings, number| {
        strings.intern(&texts[number as usize]).0
    });
    let stacks: Vec<[FrameId; 5]> = (0..FEW).map(stack).collect();
    hits("call stacks of 5 frames", InternedCallstacks::default, |set, number| {
        set.intern(&stacks[number as usize]).0
    });
    clocked("hits of one string", InternedStrings::default, |strings, _| strings.intern("Test").0)?;
    clocked("strings of 17 bytes", InternedStrings::default, |strings, number| {
        let mut text = *b"function 00000000";
        for (at, digit) in text[9..].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (28 - 4 * at) & 15) as usize];
        }
        strings.intern(str::from_utf8(&text).unwrap_or_default()).0
    })?;
    clocked("call stacks of 5 frames", InternedCallstacks::default, |stacks, number| {
        stacks.intern(&stack(number)).0
    })
}

fn stack(number: u32) -> [FrameId; 5] {
    [number, number / 8, number / 64, 1, 0].map(FrameId)
}

/// Hits of one item, and of [`FEW`] in turn.
fn hits<S>(name: &str, new: impl Fn() -> S, intern: impl Fn(&mut S, u32) -> u32) {
    for (few, of) in [(1, "the same one"), (FEW, "each of 1024 in turn")] {
        let rounds: [String; ROUNDS] = std::array::from_fn(|_| {
            let mut set = new();
            (0..few).for_each(|number| assert_eq!(intern(&mut set, number), number + 1));
            let start = on_cpu();
            for turn in 0..HITS {
                black_box(intern(&mut set, black_box(turn & (few - 1))));
            }
            let took = on_cpu() - start;
            format!("{:.1}", took as f64 / f64::from(HITS))
        });
        println!("hit of {name}, {of}: {} ns on a CPU", rounds.join(", "));
    }
}

/// Interns [`ITEMS`] items in each of some rounds.
fn clocked<S>(name: &str, new: impl Fn() -> S, intern: impl Fn(&mut S, u32) -> u32) -> io::Result<()> {
    println!("{ITEMS} {name}, in us:");
    println!("round clock     number    mean  p99.99  longest  over 1 ms");
    // Made and touched before, so that they are not what is measured.
    let mut wall = vec![u32::MAX; ITEMS as usize];
    let [mut cpu, mut alone] = [wall.clone(), wall.clone()];
    let switches = Switches::open()?;
    for round in 1..=ROUNDS {
        let mut set = new();
        alone.clear();
        let (mut last_wall, mut last_cpu, mut last_switches) = (Instant::now(), on_cpu(), switches.read()?);
        for (number, (wall, cpu)) in (0..ITEMS).zip(wall.iter_mut().zip(&mut cpu)) {
            black_box(intern(&mut set, number));
            let (now_wall, now_cpu, now_switches) = (Instant::now(), on_cpu(), switches.read()?);
            *wall = u32::try_from((now_wall - last_wall).as_nanos()).unwrap_or(u32::MAX);
            *cpu = u32::try_from(now_cpu - last_cpu).unwrap_or(u32::MAX);
            if now_switches == last_switches {
                alone.push(*cpu);
            }
            (last_wall, last_cpu, last_switches) = (now_wall, now_cpu, now_switches);
        }
        for (clock, inserts) in [("wall", &mut wall), ("CPU", &mut cpu), ("alone", &mut alone)] {
            tell(round, clock, inserts);
        }
    }
    Ok(())
}

/// A line about a round, whose nanoseconds are put into another order.
fn tell(round: usize, clock: &str, inserts: &mut [u32]) {
    let us = |nanoseconds: u32| f64::from(nanoseconds) / 1000.0;
    let count = inserts.len();
    let mean = inserts.iter().map(|&insert| us(insert)).sum::<f64>() / count as f64;
    let pauses = inserts.iter().filter(|insert| **insert > PAUSE).count();
    let longest = us(inserts.iter().copied().max().unwrap_or(0));
    let (_, most, _) = inserts.select_nth_unstable(count - count.div_ceil(10_000));
    println!("{round:<5} {clock:<5} {count:>10} {mean:>7.2} {:>7.1} {longest:>8.1} {pauses:>10}", us(*most));
}

/// How often this thread came onto a CPU: `/proc/thread-self/schedstat`, "Documentation/scheduler/sched-stats.rst" of the kernel.
struct Switches(File);

impl Switches {
    fn open() -> io::Result<Self> {
        File::open("/proc/thread-self/schedstat").map(Self)
    }

    /// The last of three numbers, as digits.
    fn read(&self) -> io::Result<[u8; 20]> {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0)?;
        let number = text[..length].trim_ascii_end().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let mut digits = [0; 20];
        digits.iter_mut().zip(number).for_each(|(digit, byte)| *digit = *byte);
        Ok(digits)
    }
}

/// Nanoseconds that this thread has run for.
fn on_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
