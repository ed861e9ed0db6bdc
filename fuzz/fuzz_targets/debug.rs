//! libFuzzer over `unwinder/tests/fuzzing/debug.rs`.

#![no_main]

#[path = "../../unwinder/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::debug::run(data));
