//! Firefox Profiler: gzip-compressed JSON in its processed format, as profiler.firefox.com opens it.
//!
//! - `write`: the format, written by `parts` of profiles.
//! - `plan`: which processes, threads and libraries there are; `threads`: what each of a thread's samples becomes.
//! - `frames`: libraries with their ids and symbols, and what a frame is in them.
//! - `roles`: what the samples of a kind become; `kinds`: what is told of kinds as a whole; `markers`: those that become markers; `spans`: what went on for a time, as markers.
//! - `lines`: lines and source files, which `parts` put into what is written.
//! - `attributes`: fields of markers, which types of them have.
//! - `tracks`: which threads there are; `busiest`: which of them are shown first.
//!
//! The crate `fxprof-processed-profile` knows the format; the web application's `processed-profile-format.md` describes it. The
//! crate's newest release, 0.8.1, writes `null` for all source files (`funcTable.fileName`), lines and columns (`frameTable.line`), and has no
//! way to be told of any: they are put in their places as its JSON goes by. Columns are left out.

mod attributes;
mod busiest;
mod frames;
mod kinds;
mod lines;
mod markers;
mod parts;
mod plan;
mod roles;
mod spans;
mod threads;
mod tracks;
mod write;

pub(crate) use attributes::MOST_TYPES;
pub(crate) use frames::{GUESSED, INLINED};
pub(crate) use kinds::{KIND, OF_KINDS, PERIOD, SHOWN, UNIT, WEIGHT};
pub(crate) use plan::OF_WEIGHT;
pub(crate) use spans::{NAME as SPAN, OF_PROCESSES, OF_RECORDINGS, OF_THREADS};
pub use write::Firefox;
