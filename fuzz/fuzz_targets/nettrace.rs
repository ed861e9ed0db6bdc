//! libFuzzer over `export/tests/fuzzing/nettrace.rs`.

#![no_main]

#[path = "../../export/tests/fuzzing/mod.rs"]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzzing::nettrace::run(data);
});
