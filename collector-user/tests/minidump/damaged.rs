//! Dumps that are cut, spoilt, or tell of more than they have: an error with its place, or a recording, soon, and in little memory.

use std::time::{Duration, Instant};

use crate::made::{
    BASE, DATE, MEMORY, MEMORY_64, MODULES, Made, SIZE, STACK, THREAD_NAMES, THREADS, X64, arm64, longs,
    text, words, x64,
};
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
            assert!(error.contains("at byte") || at == 0 && error.starts_with("it is empty"), "{error}");
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

/// An image in memory at the end of all addresses, of which a section would lie beyond.
#[test]
fn an_image_may_lie_at_the_end_of_all_addresses() {
    let base = u64::MAX - u64::from(SIZE);
    let mut headers = x64().file();
    headers.truncate(0x400);
    headers[0x148 + 12..][..4].copy_from_slice(&0x7fff_0000_u32.to_le_bytes());
    let mut made = Made::default();
    made.system(X64, 2);
    let path = made.put(&text(r"Q:\a.exe"));
    let mut module = [longs(&[base]), words(&[SIZE, 0, DATE, path])].concat();
    module.resize(108, 0);
    made.stream(MODULES, &[words(&[1]), module].concat());
    let image = made.put(&headers);
    made.stream(MEMORY, &[words(&[1]), longs(&[base]), words(&[0x400, image])].concat());
    let mut context = x64().context;
    context[0xf8..0x100].copy_from_slice(&(base + 0x1015).to_le_bytes());
    let at = made.put(&context);
    made.stream(THREADS, &words(&[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, context.len() as u32, at]));
    // As many bytes as images may be copied.
    made.put(&[0; SIZE as usize]);
    assert_eq!(try_import(&made.finish()), None);
}

/// Names that lie in the file once and are told of by everything.
#[test]
fn names_are_told_again_and_again() {
    const MOST: u32 = 1 << 16;
    let mut made = x64().dump(false);
    let name = made.put(&text(&"x".repeat(2040)));
    let mut module = [longs(&[BASE]), words(&[SIZE, 0, DATE, name])].concat();
    module.resize(76, 0);
    module.extend(words(&[4000, name]));
    module.resize(108, 0);
    let list = [words(&[MOST]), module.repeat(MOST as usize)].concat();
    let at = made.put(&list);
    made.replace(MODULES, list.len() as u32, at);
    let entry = words(&[1, name, 0]);
    made.stream(THREAD_NAMES, &[words(&[MOST]), entry.repeat(MOST as usize)].concat());
    let dump = made.finish();
    let used = allocation_counter::measure(|| assert_eq!(try_import(&dump), None));
    // Each would be 4 KiB, several times.
    assert!(used.bytes_max < 128 << 20, "{}", used.bytes_max);
}

/// A name of a number that all threads have.
#[test]
fn a_long_name_of_many_threads() {
    const MOST: u32 = 1 << 16;
    let mut made = Made::default();
    made.system(X64, 2);
    let name = made.put(&text(&"€".repeat(2000)));
    made.stream(THREAD_NAMES, &words(&[1, 1, name, 0]));
    let thread = words(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    made.stream(THREADS, &[words(&[MOST]), thread.repeat(MOST as usize)].concat());
    let dump = made.finish();
    let used = allocation_counter::measure(|| {
        let machine = import(&dump, None).unwrap().machine;
        let first = machine.samples().iter().next().unwrap();
        assert_eq!(machine.string(machine.thread(first.thread).name).len(), 4095);
        assert_eq!(machine.samples().len(), MOST as usize);
    });
    // For each it would be 268 MB.
    assert!(used.bytes_max < 96 << 20, "{}", used.bytes_max);
}

/// Stacks of which each word is guessed, of many threads; and stacks that lie in the file here and there.
#[test]
fn stacks_that_take_long_are_left() {
    const THREADS_THERE: u32 = 1 << 14;
    for is_scattered in [false, true] {
        let mut made = Made::default();
        made.system(X64, 2);
        let path = made.put(&text(r"Q:\a.exe"));
        let mut module = [longs(&[BASE]), words(&[SIZE, 0, DATE, path])].concat();
        module.resize(108, 0);
        made.stream(MODULES, &[words(&[1]), module].concat());
        // Nothing but calls.
        let code = made.put(&[0xff, 0xd0].repeat(SIZE as usize / 2));
        let mut stack = Vec::new();
        for number in 0..128 {
            stack.extend([0; 255]);
            stack.push(BASE + 0x100 + 2 * number);
        }
        let stack = longs(&stack);
        // Pieces by turns from two places as far from each other as blocks are kept.
        let first = made.put(&stack);
        made.put(&vec![0; (4 << 20) - stack.len()]);
        let second = made.put(&stack);
        let mut memory = [longs(&[BASE]), words(&[SIZE, code])].concat();
        let pieces = if is_scattered { 1024 } else { 1 };
        let size = stack.len() as u32 / pieces;
        for piece in 0..pieces {
            let place = [first, second][piece as usize % 2] + piece * size;
            memory.extend([longs(&[STACK + u64::from(piece * size)]), words(&[size, place])].concat());
        }
        made.stream(MEMORY, &[words(&[1 + pieces]), memory].concat());
        let mut context = x64().context;
        context[0xf8..0x100].copy_from_slice(&(BASE + 0x16).to_le_bytes());
        let at = made.put(&context);
        let entry = words(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, context.len() as u32, at]);
        made.stream(THREADS, &[words(&[THREADS_THERE]), entry.repeat(THREADS_THERE as usize)].concat());
        let dump = made.finish();
        let began = Instant::now();
        let left_out = import(&dump, None).unwrap().left_out;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(left_out.iter().any(|line| line.contains("or take longer to walk")), "{left_out:?}");
    }
}
