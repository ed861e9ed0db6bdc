//! libFuzzer over `export/tests/fuzzing/demangle.rs`.

#![no_main]

#[path = "../../export/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzzing::demangle::run(data);
});
