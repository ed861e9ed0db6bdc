//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken. `fuzz/`
//! wraps each into a libFuzzer binary; the tests of `perf` run them over noise and over spoilt recordings.

pub(crate) mod perf_file;
pub(crate) mod perf_records;
