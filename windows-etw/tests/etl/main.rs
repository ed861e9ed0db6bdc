//! The reader of `.etl` files, by real files with what `PerfView` says of them.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod baseline;
mod data;
mod headers;
mod hostile;
mod large;
mod names;
mod order;
mod real_files;
mod written;
