//! Walks of real stacks, compared with what the programs knew themselves, and of hostile bytes.

#![allow(clippy::unwrap_used, reason = "a failed step of a test should stop it")]

mod corpus;
mod debug_files;
#[path = "../benches/framehop_peer/mod.rs"]
mod framehop_peer;
mod fuzzing;
mod guesses;
mod hostile;
mod jit;
mod objects;
mod replay;
mod walks;
