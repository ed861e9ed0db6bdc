//! Perfetto: the traces that ui.perfetto.dev and its trace processor read.
//!
//! Source of the format: `protos/perfetto/trace` of google/perfetto, and what its trace processor
//! (`src/trace_processor/importers/proto`) makes of it.
//!
//! - `proto`: the messages.
//! - `write`: the format; `packets` are what a file is made of, by sequences.
//! - `frames`: what frames are in a trace; `interned`: what of them a sequence has told already.
//! - `scheduling`: what the scheduler's events say of CPUs and threads.
//! - `tracks`: processes, threads, and what is drawn below them; `lanes`: slices beside each other that overlap.

mod frames;
mod interned;
mod lanes;
mod packets;
mod proto;
mod scheduling;
mod tracks;
mod write;

pub use write::Perfetto;
