//! libFuzzer over `windows-etw/tests/fuzzing/etl.rs`.

#![no_main]

#[path = "../../windows-etw/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::etl::run(data));
