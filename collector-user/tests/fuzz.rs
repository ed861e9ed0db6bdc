//! Any bytes as any input of the crate: what the fuzz targets do, with inputs that are kept and with noise.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod fuzzing;
#[path = "minidump/made.rs"]
#[allow(dead_code, reason = "the tests of the reader use all of it")]
mod made;
#[path = "../../windows-etw/tests/etl/written.rs"]
#[allow(dead_code, reason = "the tests of the reader use all of it")]
mod written;
