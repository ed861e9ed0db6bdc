//! What a new string and a new call stack take on the way to 10 million of each: on average, and the longest single one.
//!
//! Times are of this thread on a CPU, so that others on the machine do not count; the clock itself takes part of each. What
//! growth takes is there in each of the rounds, what an interrupt takes is not: the figure is the smallest of the rounds'
//! longest. `benches/one_collect` has hits beside `one_collect`'s.

use collector_common::intern::{InternedCallstacks, InternedStrings};
use collector_common::record::FrameId;
use rustix::time::{ClockId, clock_gettime};

const ITEMS: u32 = 10_000_000;
const ROUNDS: usize = 3;

fn main() {
    // Cargo asks for the tests of a bench as well: there are none.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    measure("strings", InternedStrings::default, |strings, number| {
        let mut text = *b"function 00000000";
        for (at, digit) in text[9..].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (28 - 4 * at) & 15) as usize];
        }
        strings.intern(str::from_utf8(&text).unwrap_or_default()).0
    });
    measure("call stacks of 5", InternedCallstacks::default, |stacks, number| {
        stacks.intern(&[number, number / 8, number / 64, 1, 0].map(FrameId)).0
    });
}

/// Interns [`ITEMS`] different items in each of some rounds.
fn measure<S>(name: &str, new: impl Fn() -> S, intern: impl Fn(&mut S, u32) -> u32) {
    let mut longest = [0; ROUNDS];
    let mut total = [0; ROUNDS];
    for (longest, total) in longest.iter_mut().zip(&mut total) {
        let mut set = new();
        let start = now();
        let mut before = start;
        for number in 0..ITEMS {
            assert_eq!(intern(&mut set, number), number + 1, "the empty one is the first");
            let after = now();
            *longest = (after - before).max(*longest);
            before = after;
        }
        *total = before - start;
    }
    let [longest, total] = [longest, total].map(|rounds| rounds.into_iter().min().unwrap_or(0));
    println!("{ITEMS} {name}: {} ns each, longest {} us", total / u64::from(ITEMS), longest.div_ceil(1000));
}

/// Nanoseconds that this thread has run for.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
