//! Writes what is recorded into a `perf.data` as it comes: the records of the sideband, and the samples with their registers and
//! stacks, to be unwound later, by [`crate::replay`] or by `perf`.
//!
//! ```text
//! what runs already (from /proc)                        names and mappings, of time 0
//! round: sideband ≤ T, samples ≤ T, FINISHED_ROUND      as often as rings are drained
//! lost samples; events, build ids, the machine          in the end
//! ```

mod attributes;
mod file;
pub(crate) mod kernel;
mod sample;

pub(crate) use file::Capture;
