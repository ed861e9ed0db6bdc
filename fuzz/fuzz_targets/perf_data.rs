//! libFuzzer over `collector-common/tests/fuzzing/perf_data.rs`.

#![no_main]

#[path = "../../collector-common/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::perf_data::run(data));
