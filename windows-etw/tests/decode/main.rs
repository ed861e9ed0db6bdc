//! Decoders by real files, with what `PerfView` says of them.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

#[path = "../etl/baseline.rs"]
#[allow(dead_code, reason = "shared with the tests of the reader")]
mod baseline;
mod counts;
#[path = "../etl/data.rs"]
mod data;
mod dispatch;
mod fields;
mod lives;
mod methods;
mod stacks;
