//! Dumps that are cut, spoilt, or tell of more than they have: an error with its place, or a recording, soon, and in little memory.

use std::time::{Duration, Instant};

use crate::made::{BASE, MEMORY, MEMORY_64, MODULES, STACK, THREAD_NAMES, THREADS, arm64, longs, words, x64};
use crate::read::import;

/// The longest that any of these may take, without optimisation and on a machine that others use, too. Whole ones take less than a millisecond.
const SOON: Duration = Duration::from_mins(1);

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
    for has_all_memory in [false, true] {
        let memory = if has_all_memory { MEMORY_64 } else { MEMORY };
        for kind in [THREADS, MODULES, THREAD_NAMES, memory] {
            for count in [0, 1, 1 << 16, 1 << 21, u32::MAX - 1, u32::MAX] {
                for size in [0, 4, 8, 48, u32::MAX] {
                    let mut made = x64().dump(has_all_memory);
                    let at = made.put(&words(&[count, 0, size, size, size, size]));
                    made.replace(kind, size, at);
                    try_import(&made.finish());
                }
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

/// As many threads as are read, each with a stack that has more frames than are walked; and more modules than are read.
#[test]
fn many_threads_with_one_stack() {
    let mut program = x64();
    // Each word is a return address in a function that has unwind codes.
    program.stack = longs(&[BASE + 0x1009]).repeat(8192);
    let mut made = program.dump(true);
    let context = made.put(&program.context);
    let entry = [1, 0, 0, 0, 0, 0, STACK as u32, 0, 8 * 8192, 0, program.context.len() as u32, context];
    let list = [words(&[1 << 16]), words(&entry).repeat(1 << 16)].concat();
    let at = made.put(&list);
    made.replace(THREADS, list.len() as u32, at);
    assert_eq!(try_import(&made.clone().finish()), None);
    let at = made.put(&words(&[(1 << 16) + 1]));
    made.replace(MODULES, 4, at);
    assert_eq!(try_import(&made.finish()), None);
}
