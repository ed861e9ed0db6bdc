//! Which process was behind a pid at a time, and which mapping behind an address.
//!
//! Pure state, fed with the sideband in roughly time order. A query names a time, because the samples of a
//! ring are read after the sideband of the same span:
//!
//! ```text
//! sideband   fork 7 ── exec 7 ── mmap 7 ─────── exit 7 ─ fork 7 ...    applied first
//! samples            ▲         ▲        ▲  ▲                           each asks for its own time
//! watermark  ───────────────────────────────────────────► history before it is dropped
//! ```

mod mappings;
mod process;
mod space;

#[cfg(test)]
mod tests;

pub use process::Tracker;
pub use space::{MappedModule, Space};
