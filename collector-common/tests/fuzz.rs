//! Any bytes as any input of the crate: what the fuzz targets do, with inputs that are kept and with noise.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod fuzzing;
#[path = "perf/layout.rs"]
#[allow(dead_code, reason = "the tests of `perf` use all of it")]
mod layout;
#[path = "perf/user_layout.rs"]
mod user_layout;
