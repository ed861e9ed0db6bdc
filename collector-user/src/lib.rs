//! Records what a machine is doing.
//!
//! Data takes one way through it:
//!
//! ```text
//! source::ebpf ──samples──┐
//!                         ├─► recorder ─► collector_common::record::ExportMachine ─► export
//! source::sideband ───────┘     │  ▲
//!                     modules ──┘  └── procfs (what ran before the recording)
//! ```
//!
//! [`session::Session`] is the way in: it opens the sources, runs the rounds and gives a [`session::Recording`].
//! Everything but [`stats`] is Linux alone; sources and sessions need the feature `ebpf`, which is what records.

pub mod stats;

#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod modules;
#[cfg(target_os = "linux")]
pub mod procfs;
#[cfg(target_os = "linux")]
pub mod recorder;
#[cfg(all(target_os = "linux", feature = "ebpf"))]
pub mod session;
#[cfg(all(target_os = "linux", feature = "ebpf"))]
pub mod source;
#[cfg(all(target_os = "linux", feature = "ebpf"))]
mod sys;

/// The README's example compiles.
#[cfg(all(doctest, target_os = "linux", feature = "ebpf"))]
#[doc = include_str!("../../README.md")]
struct Readme;
