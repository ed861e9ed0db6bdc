//! What fuzzing does with an input, one file per target, each a `run(&[u8])` that panics where a promise is broken: no
//! input panics, the ways to a value agree, what is written can be read.

pub(crate) mod fields;
pub(crate) mod filters;
