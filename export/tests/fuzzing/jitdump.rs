//! The input is a jitdump: all codes of some addresses, with names and lines.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::time::{Duration, Instant};

use export::symbolize::JitDump;

/// Bytes that any file may hold, and bytes for each of its own: a record of 57 bytes may hold every address of interest.
const FIXED_MEMORY: u64 = 4 << 20;
const PER_BYTE: u64 = 1024;

/// One of an input's size takes no more than this, instrumented or not.
const MOST_TIME: Duration = Duration::from_secs(5);

/// Asks for all that there is. Out: how many codes hold an address of interest; 0 for what is no dump.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut wanted: Vec<u64> =
        (0..0x1000).step_by(31).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX]).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let most = FIXED_MEMORY + input.len() as u64 * PER_BYTE;
    let start = Instant::now();
    let mut codes = BTreeSet::new();
    let used = allocation_counter::measure(|| {
        let Ok(mut dump) = JitDump::read(Cursor::new(input), &wanted) else { return };
        for (position, &address) in wanted.iter().enumerate() {
            let mut last = None;
            for code in dump.codes_at(position) {
                let held = dump.code(code).expect("it was named");
                assert!((held.start..held.end).contains(&address));
                assert!(last <= Some(held.since), "oldest first");
                last = Some(held.since);
                codes.insert(code);
            }
        }
        for &code in &codes {
            let name = dump.name(code).expect("it is in memory");
            assert!(name.len() <= input.len() * 3, "a byte that is no text becomes three");
            let lines = dump.lines(code, &wanted).expect("it is in memory");
            assert_eq!(lines.len(), wanted.len());
        }
    });
    assert!(start.elapsed() < MOST_TIME, "it took {:?}", start.elapsed());
    assert!(used.bytes_max <= most, "{} bytes were held, {most} are the bound", used.bytes_max);
    codes.len()
}
