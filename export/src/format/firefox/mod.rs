//! Firefox Profiler: gzip-compressed JSON in its processed format, as profiler.firefox.com opens it.
//!
//! - `write`: the format: processes and threads, and what each of their samples becomes.
//! - `frames`: libraries with their ids and symbols, and what a frame is in them.
//! - `roles`: what the samples of a kind become; `markers`: those that become markers.
//! - `tracks`: which threads there are.
//!
//! The crate `fxprof-processed-profile` knows the format; the web application's `processed-profile-format.md` describes it.

mod frames;
mod markers;
mod roles;
mod tracks;
mod write;

pub use write::Firefox;
