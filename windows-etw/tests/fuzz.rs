//! Any bytes as any input of the crate: what the fuzz targets do, with inputs that are kept and with noise.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod fuzzing;
#[path = "etl/written.rs"]
#[allow(dead_code, reason = "the tests of `etl` use all of it")]
mod written;
