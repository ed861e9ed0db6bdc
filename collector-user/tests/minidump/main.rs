//! Minidumps as recordings: those that Wine writes of a program whose source tells its stacks, and some that are made by hand, byte by byte.
//!
//! - `made`: a dump by hand, and an image in it. `read`: what becomes of such. `damaged`: dumps that are cut, spoilt, or tell of too much.
//! - `pdb`: names by PDBs.
//! - `written`: dumps that Wine's `MiniDumpWriteDump` writes.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod damaged;
mod made;
#[cfg(target_os = "linux")]
mod pdb;
#[cfg(target_os = "linux")]
#[path = "../live/prerequisites.rs"]
#[allow(dead_code, reason = "tests that record use all of it")]
mod prerequisites;
mod read;
#[cfg(target_os = "linux")]
#[path = "../wine/mod.rs"]
mod windows;
#[cfg(target_os = "linux")]
mod written;
