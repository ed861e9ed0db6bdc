//! The input is names of symbols, a line each: how they read.

use std::time::{Duration, Instant};

use export::symbolize::demangle;

/// None takes longer, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

/// No name that comes out is longer, but for a `@plt` behind it, or than what came in.
const LONGEST: usize = 64 << 10;

/// Bytes that any name may take, and for each of its own.
const FIXED_MEMORY: u64 = 8 << 20;
const PER_BYTE: u64 = 1 << 10;

/// Out: how many names read in another way than they are written.
pub(crate) fn run(input: &[u8]) -> usize {
    let text = String::from_utf8_lossy(input);
    let reads_otherwise = |name: &&str| {
        let start = Instant::now();
        let mut readable = None;
        let used = allocation_counter::measure(|| readable = Some(demangle(name)));
        assert!(start.elapsed() < MOST_TIME, "{name} took {:?}", start.elapsed());
        let most = FIXED_MEMORY + name.len() as u64 * PER_BYTE;
        assert!(used.bytes_max <= most, "{name}: {} bytes were held", used.bytes_max);
        readable.is_some_and(|readable| {
            assert!(readable.len() <= LONGEST.max(name.len()) + "@plt".len(), "{name}");
            readable != **name
        })
    };
    text.lines().filter(reads_otherwise).count()
}
