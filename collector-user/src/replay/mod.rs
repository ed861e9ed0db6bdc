//! Recordings that were made earlier, by `perf record` or by [`crate::session`]: their records go the way of those that are
//! just being made.
//!
//! ```text
//! perf.data ─► collector_common::perf::file ─┬─ samples ─► closures, recorder ─► Recording
//!               (in the order of times)      └─ mappings, names, forks ──┘ ▲
//!                                         files, by path and build id ─────┘
//! ```
//!
//! Stacks are unwound from the registers and the copied stack in each sample (`perf record --call-graph dwarf`), which
//! may be those of `x86_64` or aarch64. Of a sample without those, or of another machine, the frames are the ones that the kernel
//! walked (`-g`), or the interrupted address alone.

mod error;
mod events;
mod folder;
mod groups;
mod hooked;
mod kernel;
mod late;
mod put_off;
mod run;
mod taking;

pub use error::ReplayError;
pub use folder::open_recording;
pub use hooked::ReplayedEvent;
#[cfg(target_os = "linux")]
pub(crate) use kernel::{KernelBuild, KernelPlace};
pub use run::Replay;
pub use taking::UNFINISHED;

pub use crate::event_clock::EventClock;
pub use crate::recording::{CAPTURED, Recording};
