//! The input is a profile of pprof's, which may be compressed.

use export::import::pprof::Pprof;

use super::bounded;

/// Bytes that reading any file may hold.
const FIXED_MEMORY: u64 = 1 << 20;

/// Bytes that may be held for each of the file's.
const PER_BYTE: u64 = 128;

/// Reads all of the input. Out: whether it is a profile.
pub(crate) fn run(input: &[u8]) -> bool {
    bounded::run(&Pprof, input, FIXED_MEMORY, PER_BYTE)
}
