//! The input is a profile of Firefox Profiler.

use export::import::firefox::Firefox;

use super::bounded;

/// Bytes that reading any file may hold: the frames of its stacks have a limit of their own, and so do its threads.
const FIXED_MEMORY: u64 = 256 << 20;

/// Bytes that may be held for each of the file's.
const PER_BYTE: u64 = 128;

/// Reads all of the input. Out: whether it is a profile.
pub(crate) fn run(input: &[u8]) -> bool {
    bounded::run(&Firefox, input, FIXED_MEMORY, PER_BYTE)
}
