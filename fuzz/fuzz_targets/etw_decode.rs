//! libFuzzer over `windows-etw/tests/fuzzing/etw_decode.rs`.

#![no_main]

#[path = "../../windows-etw/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::etw_decode::run(data));
