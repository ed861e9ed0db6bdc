//! A flame graph as one SVG file, drawn by `inferno` from folded stacks: with its root at the bottom, or on top.
//!
//! - `write`: the formats.
//! - `drawn`: the lines of what is wide enough to be drawn.

mod drawn;
mod write;

pub use write::{FlameGraph, Icicle};
