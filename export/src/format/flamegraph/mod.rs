//! A flame graph as one SVG file, drawn by `inferno` from folded stacks.
//!
//! - `write`: the format.
//! - `drawn`: the lines of what is wide enough to be drawn.

mod drawn;
mod write;

pub use write::FlameGraph;
