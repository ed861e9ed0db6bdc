//! libFuzzer over `collector-user/tests/fuzzing/minidump.rs`.

#![no_main]

#[path = "../../collector-user/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzzing::minidump::run(data);
});
