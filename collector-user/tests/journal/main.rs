//! Recordings of journals. `live` needs root. The others read journals that are kept: what becomes of the records that programs in the
//! kernel wrote, without a kernel and without rights. `recorded` has a journal for each scenario, packed, of a program of `tests/programs`
//! with known behaviour, and beside it what the program said of itself. Those that are missing are made, with what is of the
//! program's processes alone, by
//!
//! ```text
//! cargo test -p collector-user --test journal --no-run
//! env -i PATH=/usr/bin:/bin PROGRAM all_journals_are_kept
//! ```
//!
//! as root, outside of the checkout, with a copy of the program that the first line names: what a process has in its environment may be on stacks. `live` has the recorded
//! programs and their arguments.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod clocks;
mod damaged;
#[cfg(feature = "ebpf")]
mod live;
#[cfg(feature = "ebpf")]
#[path = "../live/prerequisites.rs"]
#[allow(dead_code, reason = "the live tests use all of it")]
mod prerequisites;
#[cfg(feature = "ebpf")]
#[path = "../live/programs.rs"]
#[allow(dead_code, reason = "the live tests use all of it")]
mod programs;
mod recorded;
mod scenarios;
