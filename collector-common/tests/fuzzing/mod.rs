//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, the ways to a value agree, what is written can be read. `fuzz/` wraps them into libFuzzer binaries; the
//! tests run them over noise and over spoilt input.
#![allow(dead_code, reason = "each binary that has this module runs some of it")]

pub(crate) mod fields;
pub(crate) mod filters;
pub(crate) mod perf_file;
pub(crate) mod perf_records;
