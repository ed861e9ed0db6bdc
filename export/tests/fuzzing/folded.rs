//! The input is lines of folded stacks.

use export::import::folded::Folded;

use super::bounded;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the file's.
const PER_BYTE: u64 = 256;

/// Reads all of the input. Out: whether it is a profile.
pub(crate) fn run(input: &[u8]) -> bool {
    bounded::run(&Folded, input, FIXED_MEMORY, PER_BYTE)
}
