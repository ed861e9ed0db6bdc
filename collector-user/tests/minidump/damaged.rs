//! Dumps that are cut, spoilt, or tell of more than they have: an error with its place, or a recording, soon, and in little memory.

use std::time::{Duration, Instant};

use crate::made::{MEMORY, MEMORY_64, MODULES, THREAD_NAMES, THREADS, arm64, longs, words, x64};
use crate::read::import;

/// The longest that any of these may take. Whole ones take less than a millisecond.
const SOON: Duration = Duration::from_secs(5);

/// Reads what may be anything.
fn try_import(bytes: &[u8]) -> Option<String> {
    let began = Instant::now();
    let error = import(bytes, None).err();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    error.map(|error| error.to_string())
}

#[test]
fn dumps_may_be_cut_and_spoilt_anywhere() {
    for whole in [x64().dump(true).finish(), x64().dump(false).finish(), arm64().dump(true).finish()] {
        assert_eq!(try_import(&whole), None);
        for at in (0..whole.len()).step_by(41) {
            let error = try_import(&whole[..at]).expect("the list of streams is at the end");
            assert!(error.contains("at byte") || error.contains("begin"), "{error}");
            for bit in [0, 3, 7] {
                let mut spoilt = whole.clone();
                spoilt[at] ^= 1 << bit;
                try_import(&spoilt);
            }
            for value in [0, u8::MAX] {
                let mut spoilt = whole.clone();
                spoilt.iter_mut().skip(at).take(4).for_each(|byte| *byte = value);
                try_import(&spoilt);
            }
        }
    }
}

/// Counts of lists, and sizes of what they have, of 0 and of what has no room.
#[test]
fn counts_and_sizes_may_be_anything() {
    for kind in [THREADS, MODULES, MEMORY, THREAD_NAMES, MEMORY_64] {
        for count in [0, 1, 1 << 16, 1 << 21, u32::MAX - 1, u32::MAX] {
            for size in [0, 4, 8, 48, u32::MAX] {
                let mut made = x64().dump(false);
                let at = made.put(&words(&[count, 0, size, size, size, size]));
                let whole = made.finish();
                let mut spoilt = whole.clone();
                // Its entry in the list of streams, which is at the end: the size, and the place.
                let entry = spoilt.windows(4).rposition(|bytes| bytes == words(&[kind]));
                let Some(entry) = entry.filter(|entry| entry + 12 <= spoilt.len()) else { continue };
                spoilt[entry + 4..entry + 12].copy_from_slice(&words(&[size, at]));
                try_import(&spoilt);
            }
        }
    }
}

/// Memory that claims to be all there is, of one byte again and again.
#[test]
fn stretches_of_memory_may_lie_on_each_other() {
    let mut made = x64().dump(false);
    let stretches: Vec<u64> = (0..100_000).flat_map(|index| [index * 0x1_0000, u64::MAX >> 1]).collect();
    let list = [longs(&[100_000, 32]), longs(&stretches)].concat();
    made.stream(MEMORY_64, &list);
    assert_eq!(try_import(&made.finish()), None);
}

/// As many threads as are read, each with the same stack, on which words lead into an image again and again.
#[test]
fn many_threads_with_one_stack() {
    let program = x64();
    let mut made = crate::made::Made::default();
    made.system(program.architecture, 2);
    let context = made.put(&program.context);
    // No return address is on it.
    let stack = made.put(&longs(&vec![crate::made::BASE + 0x1009; 8192]));
    let entry = words(&[
        1,
        0,
        0,
        0,
        0,
        0,
        crate::made::STACK as u32,
        0,
        8 * 8192,
        stack,
        program.context.len() as u32,
        context,
    ]);
    made.stream(THREADS, &[words(&[1 << 16]), entry.repeat(1 << 16)].concat());
    assert_eq!(try_import(&made.clone().finish()), None);
    made.stream(MODULES, &words(&[(1 << 16) + 1]));
    assert_eq!(try_import(&made.finish()), None);
}
