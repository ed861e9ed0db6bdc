//! libFuzzer over `collector-common/tests/fuzzing/event_filter.rs`.

#![no_main]

#[path = "../../collector-common/tests/fuzzing/mod.rs"]
#[allow(dead_code, reason = "each target uses its own part")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::event_filter::run(data));
